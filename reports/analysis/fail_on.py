"""The policies of `--fail-on`, by name; `policies` counts the cases of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.store.input_error import InputError

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
    """An unknown policy; the message names the command's policies."""


def named(text: str | None, known: Sequence[str], default: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the policies that `--fail-on` names, separated by commas; PolicyError lists the valid
    ones.
    """
    if text is None:
        return tuple(default)
    some = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if some == (NONE,):
        return ()
    for one in some:
        if one not in known:
            there = ", ".join(known)
            raise PolicyError(
                f"--fail-on: {one!r} is not a policy of this command; name one or more, "
                "separated by commas: "
                f"{there}; or {NONE} alone"
            )
    return some


def broken(counted: Mapping[str, int]) -> str:
    """Return which policies are violated and how often, as one line; empty if none is."""
    return ", ".join(f"{name} {count}" for name, count in counted.items() if count)
