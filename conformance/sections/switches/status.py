"""What became of the switches, release by release.

Deprecation is judged by what a user gets: a warning counts as shown only where Python's default
filters show it to a user who runs a main file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from conformance.catalogue.clause import clause
from conformance.catalogue.family import family, table
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import Expectation, OfEachStep, not_applicable
from conformance.judging.observation import Step
from conformance.probing.child_programs import FLAG
from conformance.sections.switches import (
    DEADLINE_S,
    FLAG_FALSE,
    NO_SWITCH,
    VARIABLE,
    follow,
    name_of,
    only_old,
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

AFTER_REMOVAL = "pmap-silence.switches-after-removal"
WARNING = "pmap-silence.switch-deprecation-warning"

WARNING_GIVEN = "switches.deprecation.given"  # whichever switch it is of


@dataclass(frozen=True, slots=True)
class Way:
    """A way to ask for the old pmap from outside: the program's `words` and `environment`."""

    key: str
    text: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()


FROM_OUTSIDE: Mapping[str, Way] = table(
    Way(
        "environment",
        f"The variable {VARIABLE}=0",
        ("session", "map", "call", "call"),
        environment={VARIABLE: "0"},
    ),
    Way(
        "absl-flag",
        f"The flag {FLAG_FALSE}",
        ("absl", "config_with_absl", FLAG_FALSE),
        requires=("absl-py",),
    ),
)
PARSED_ALONE: Mapping[str, Way] = table(
    Way(
        "absl-parse-flags",
        f"{FLAG_FALSE}, read by parse_flags_with_absl,",
        ("absl", "parse_flags_with_absl", FLAG_FALSE),
        requires=("absl-py",),
    ),
)


@family(
    "switches.obeyed-or-told.{way}",
    way={**FROM_OUTSIDE, **PARSED_ALONE},
    claim=AFTER_REMOVAL,
    title="{way.text} is obeyed, or its user is told that it is not.",
    expect=only_old(obeyed_or_told()),
    deadline_s=DEADLINE_S,
    requires=lambda way: way.requires,
    selects=True,
)
@family(
    "switches.deprecation.{way}",
    way=FROM_OUTSIDE,
    claim=WARNING,
    fact=WARNING_GIVEN,
    title="{way.text} gives a DeprecationWarning, whether or not it is shown.",
    expect=only_old(GIVEN),
    deadline_s=DEADLINE_S,
    requires=lambda way: way.requires,
    selects=True,
)
def old_from_outside(impl: Any, cluster: Any, way: Way) -> None:
    """The old pmap is asked for by one of the switches."""
    follow(cluster, *way.words, environment=way.environment)


@clause(
    "switches.obeyed-or-told.config-update",
    claim=AFTER_REMOVAL,
    title="The option is obeyed, or its user is told that it is not.",
    expect=only_old(obeyed_or_told()),
    deadline_s=DEADLINE_S,
    selects=True,
)
@clause(
    "switches.deprecation.config-update",
    claim=WARNING,
    fact=WARNING_GIVEN,
    title="The option gives a DeprecationWarning, whether or not it is shown.",
    expect=only_old(GIVEN),
    deadline_s=DEADLINE_S,
    selects=True,
)
@clause(
    "switches.deprecation.shown",
    claim=WARNING,
    title="A user who sets the option in the main file sees the DeprecationWarning by default.",
    expect=only_old(SHOWN),
    deadline_s=DEADLINE_S,
    selects=True,
)
@clause(
    "switches.deprecation.text",
    claim=WARNING,
    title="The DeprecationWarning of the option says what to do instead.",
    expect=only_old(HELPFUL),
    deadline_s=DEADLINE_S,
    selects=True,
)
def old_by_option(impl: Any, cluster: Any) -> None:
    """The old pmap is asked for by the option, set three times: how often is told shows too."""
    follow(cluster, "session", "False", "False", "False", "map", "call", "call")
