"""The policies that `--fail-on` takes, by name; `policies` counts what each is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.input_error import InputError

NONE = "none"  # fails on nothing, where a command would by default
REGRESSIONS = "regressions"

OF_RUNS = ("red", "deviations", "crashes", "hangs", "wrong-numbers", "flaky", "not-run")
OF_CHANGES = (REGRESSIONS, *(name for name in OF_RUNS if name != "not-run"))
OF_UPGRADES = (
    "crashes",
    "wrong-numbers",
    "raises",
    "other-errors",
    "moves-more",
    "memory",
    "elsewhere",
    "warnings",
    "fixes",
    "anything",
)


class PolicyError(InputError):
    """A policy is none of the command's; the message names those that are."""


def named(text: str | None, known: Sequence[str], default: Sequence[str] = ()) -> tuple[str, ...]:
    """The policies that `--fail-on` names, parted by commas; PolicyError says which there are."""
    if text is None:
        return tuple(default)
    some = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if some == (NONE,):
        return ()
    for one in some:
        if one not in known:
            there = ", ".join(known)
            raise PolicyError(
                f"--fail-on: {one!r} is no policy here; name one or more, parted by commas: "
                f"{there}; or {NONE} alone"
            )
    return some


def broken(counted: Mapping[str, int]) -> str:
    """Which policies are broken and how often, as one line; empty where none is."""
    return ", ".join(f"{name} {count}" for name, count in counted.items() if count)
