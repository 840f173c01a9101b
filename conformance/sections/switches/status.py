"""What became of the switches, release by release.

Deprecation is judged by what a user gets: a warning counts as shown only where Python's default
filters show it to a user who runs a main file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax

from conformance.catalogue.clause import clause
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    OfEachStep,
    not_applicable,
)
from conformance.judging.observation import Step
from conformance.probing.child_programs import FLAG
from conformance.sections.switches import (
    ASKS_FOR_OLD,
    DEADLINE_S,
    NO_SWITCH,
    VARIABLE,
    WORDS,
    follow,
    name_of,
    saw_run,
    saw_warnings,
    what_ran,
)

NEW_BY_DEFAULT = (0, 8, 0)
AFTER_THE_PROMISE = (0, 9, 0)  # the first minor release after 15 January 2026

OLD, NEW = name_of(LEGACY_PMAP), name_of(NEW_PMAP)


def release(step: Step) -> tuple[int, ...]:
    """The JAX release that the step noted."""
    return tuple(int(part) for part in re.findall(r"\d+", step.extra["jax"])[:3])


def only_old(expectation: Expectation) -> dict[str, Expectation]:
    """Of a program that asks for the old pmap."""
    return {LEGACY_PMAP: expectation, NEW_PMAP: ASKS_FOR_OLD, SHARD_MAP: NO_SWITCH}


# --- The default, and for how long the old pmap may be asked for ----------------------------------


def by_release() -> Expectation:
    """The new pmap from the release on in which the document says that it became the default."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        wanted = NEW if release(step) >= NEW_BY_DEFAULT else OLD
        return what_ran(step) == [wanted, wanted], saw_run(step)

    return OfEachStep("the calls run the new pmap from 0.8.0 on, the old one before", of)


@clause(
    "switches.default",
    claim="migrate-pmap.new-default",
    expect={
        LEGACY_PMAP: not_applicable("nothing asks for it"),
        NEW_PMAP: by_release(),
        SHARD_MAP: NO_SWITCH,
    },
    deadline_s=DEADLINE_S,
    selects=True,
)
def default(impl: Any, cluster: Any) -> None:
    """No switch is set."""
    follow(cluster, "session", "map", "call", "call")
    cluster.note("jax", jax.__version__)


def promised() -> Expectation:
    """The old pmap in every release before the date; then the old pmap still, or an error."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        refused = release(step) >= AFTER_THE_PROMISE and names_switch(step)
        return what_ran(step) == [OLD, OLD] or refused, saw_run(step)

    return OfEachStep("the old pmap runs; from 0.9.0 on it may be refused by an error", of)


def names_switch(step: Step) -> bool:
    """Whether the program failed with an error that names the switch."""
    return step.raised is not None and FLAG in step.raised.message.lower()


@clause(
    "switches.temporary",
    claim="migrate-pmap.switches-are-temporary",
    expect=only_old(promised()),
    deadline_s=DEADLINE_S,
    selects=True,
)
def temporary(impl: Any, cluster: Any) -> None:
    """The option gives the old pmap in every release up to January 2026."""
    follow(cluster, "session", "False", "map", "call", "call")
    cluster.note("jax", jax.__version__)


# --- Each switch while it is deprecated and once it is gone ---------------------------------------


def obeyed_or_told() -> Expectation:
    """The old pmap runs, or the user learns that it does not."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        told = names_switch(step) or any(w["shown"] for w in about_switch(step))
        return what_ran(step) == [OLD, OLD] or told, f"{saw_run(step)}; {saw_warnings(step)}"

    return OfEachStep("the old pmap runs, or an error or a warning names the switch", of)


def about_switch(step: Step) -> list[dict[str, Any]]:
    """The DeprecationWarnings that name the switch."""
    return [
        w
        for w in step.extra.get("warned", ())
        if w["category"] == "DeprecationWarning" and FLAG in w["message"].lower()
    ]


def warned(text: str, enough: Callable[[dict[str, Any]], bool]) -> Expectation:
    """A DeprecationWarning names the switch, and is `enough`."""

    def of(place: Place, step: Step) -> tuple[bool, str]:
        saw = saw_warnings(step) if step.raised is None else f"{step}; {saw_warnings(step)}"
        return any(enough(w) for w in about_switch(step)), saw

    return OfEachStep(text, of)


GIVEN = warned("a DeprecationWarning names the switch", lambda w: w["count"] > 0)
SHOWN = warned("a DeprecationWarning is shown by default filters", lambda w: w["shown"] > 0)
HELPFUL = warned(
    "a DeprecationWarning says what to do instead",
    lambda w: bool(re.search(r"shard_map|migrat|instead|https?:", w["message"], re.IGNORECASE)),
)

# Set three times, so that how often is told can be seen too.
SET_OFTEN = ("session", "False", "False", "False", "map", "call", "call")
WAYS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "environment": (("session", "map", "call", "call"), {VARIABLE: "0"}),
    "absl-flag": (("absl", "config_with_absl", WORDS.false), {}),
    "absl-parse-flags": (("absl", "parse_flags_with_absl", WORDS.false), {}),
    "config-update": (SET_OFTEN, {}),
}


def old_by_switch(impl: Any, cluster: Any, way: str) -> None:
    """The old pmap is asked for by one of the switches."""
    words, environment = WAYS[way]
    follow(cluster, *words, environment=environment)


def _declare(name: str, claim: str, way: str, title: str, expected: Expectation) -> None:
    clause(
        f"switches.{name}",
        claim=f"pmap-silence.{claim}",
        expect=only_old(expected),
        deadline_s=DEADLINE_S,
        parameters={"way": way},
        title=title,
        requires=("absl-py",) if way.startswith("absl") else (),
        selects=True,
    )(old_by_switch)


for _way, _what in (
    ("environment", f"The variable {VARIABLE}=0"),
    ("absl-flag", f"The flag {WORDS.false}"),
    ("config-update", "The option"),
):
    _declare(
        f"obeyed-or-told.{_way}",
        "switches-after-removal",
        _way,
        f"{_what} is obeyed, or its user is told that it is not.",
        obeyed_or_told(),
    )
    _declare(
        f"deprecation.{_way}",
        "switch-deprecation-warning",
        _way,
        f"{_what} gives a DeprecationWarning, whether or not it is shown.",
        GIVEN,
    )
_declare(
    "obeyed-or-told.absl-parse-flags",
    "switches-after-removal",
    "absl-parse-flags",
    f"{WORDS.false}, read by parse_flags_with_absl, is obeyed, or its user is told that it is not.",
    obeyed_or_told(),
)
_declare(
    "deprecation.shown",
    "switch-deprecation-warning",
    "config-update",
    "A user who sets the option in the main file sees the DeprecationWarning by default.",
    SHOWN,
)
_declare(
    "deprecation.text",
    "switch-deprecation-warning",
    "config-update",
    "The DeprecationWarning of the option says what to do instead.",
    HELPFUL,
)
