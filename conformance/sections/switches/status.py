"""The status of the switches, release by release.

Deprecation is judged by what a user sees: a warning counts as shown only if Python's default
filters show it to a user who runs a main file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.sections.switches import (
    DEADLINE_S,
    FLAG_FALSE,
    NEW_BY_DEFAULT,
    OF_A_PROCESS,
    REMOVED_IN,
    VARIABLE,
    follow,
    of_program,
    only_old,
    ran,
    results,
    saw_run,
    saw_warnings,
)
from conformance.spec.clause import clause
from conformance.spec.columns import of_jax
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import OfEachStep, every, raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP
from conformance.spec.observation import Step
from conformance.spec.releases import by_release
from conformance.spec.topology import Place
from conformance.worker import child
from conformance.worker.child_programs import FLAG
from conformance.worker.protocols import Cluster, Implementation

OLD_RAN = ran(LEGACY_PMAP, LEGACY_PMAP)

# The notice to users of each removed switch.
NO_OPTION = of_program(
    raises(child.ChildError, f"^AttributeError: Unrecognized config option: {FLAG}$")
)
NO_FLAG = of_program(
    raises(
        child.ChildError,
        f"^exit status 1: FATAL Flags parsing error: Unknown command line flag '{FLAG}' ",
    )
)

DEFAULTS = Defaults(left_out=OF_A_PROCESS, deadline_s=DEADLINE_S, selects=True)


# --- The default, and until when legacy pmap can be selected --------------------------------------


@clause(
    "switches.default",
    claim="migrate-pmap.new-default",
    cause="new-pmap-by-default",
    left_out=OF_A_PROCESS,
    expect=of_jax(by_release(NEW_BY_DEFAULT, before=OLD_RAN, since=ran(NEW_PMAP, NEW_PMAP))),
    deadline_s=DEADLINE_S,
)
def default(impl: Implementation, cluster: Cluster) -> None:
    """No switch is set."""
    follow(cluster, "session", "map", "call", "call")


@DEFAULTS.clause(
    "switches.temporary",
    claim="migrate-pmap.switches-are-temporary",
    expect=only_old(by_release(REMOVED_IN, before=OLD_RAN, since=NO_OPTION)),
)
def temporary(impl: Implementation, cluster: Cluster) -> None:
    """The option selects legacy pmap until the first releases of 2026, and then is removed."""
    follow(cluster, "session", "False", "map", "call", "call")


# --- Each switch while it is deprecated and once it is gone ---------------------------------------

DEPRECATED = f"Setting `{FLAG}` is deprecated in JAX v0.9.0 and will be removed in JAX v0.10.0."


def notice_of_removal() -> Expectation:
    """The user learns that the old pmap does not run: by a warning that names the switch."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        named = [
            w for w in step.extra.get("warned", ()) if w["shown"] and FLAG in w["message"].lower()
        ]
        return bool(named) and step.raised is None, f"{saw_run(step)}; {saw_warnings(step)}"

    return of_program(
        every(
            OfEachStep("a warning that names the switch is shown", check_step),
            returns(results(2), text="the rows plus their sum, at both calls"),
        )
    )


def obeyed_or(notice: Expectation) -> Expectation:
    """Expect legacy pmap while it exists; afterwards expect `told`, the notice to its user."""
    return by_release(REMOVED_IN, before=OLD_RAN, since=notice)


def warned(text: str, *, shown: bool = False, says: str = DEPRECATED) -> Expectation:
    """A DeprecationWarning with this text is given, or `shown`; and the old pmap runs."""

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        saw = saw_warnings(step) if step.raised is None else f"{step}; {saw_warnings(step)}"
        about = [
            w
            for w in step.extra.get("warned", ())
            if w["category"] == "DeprecationWarning" and says in w["message"]
        ]
        return len(about) == 1 and about[0]["shown" if shown else "count"] > 0, saw

    return of_program(OfEachStep(text, check_step))


def until_removed(expected: Expectation, gone: Expectation) -> Expectation:
    """This of the old pmap's switches, with which it runs; and this once they are gone."""
    return by_release(REMOVED_IN, before=every(expected, OLD_RAN), since=gone)


GIVEN = warned("a DeprecationWarning names the switch")
SHOWN = warned("the DeprecationWarning is shown by default filters", shown=True)
HELPFUL = warned("a DeprecationWarning names what to use instead", says="shard_map")

AFTER_REMOVAL = "pmap-silence.switches-after-removal"
WARNING = "pmap-silence.switch-deprecation-warning"

WARNING_GIVEN = "switches.deprecation.given"  # whichever switch it is of


@dataclass(frozen=True, slots=True)
class Way:
    """A way to ask for the old pmap from outside: the program's `words` and `environment`.

    `gone` is what is expected once the switch is.
    """

    key: str
    text: str
    words: tuple[str, ...]
    gone: Expectation
    environment: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()


FROM_OUTSIDE: Mapping[str, Way] = table(
    Way(
        "environment",
        f"The variable {VARIABLE}=0",
        ("session", "map", "call", "call"),
        notice_of_removal(),
        environment={VARIABLE: "0"},
    ),
    Way(
        "absl-flag",
        f"The flag {FLAG_FALSE}",
        ("absl", "config_with_absl", FLAG_FALSE),
        NO_FLAG,
        requires=("absl-py",),
    ),
)
PARSED_ALONE: Mapping[str, Way] = table(
    Way(
        "absl-parse-flags",
        f"{FLAG_FALSE}, read by parse_flags_with_absl,",
        ("absl", "parse_flags_with_absl", FLAG_FALSE),
        notice_of_removal(),
        requires=("absl-py",),
    ),
)


@DEFAULTS.family(
    "switches.obeyed-or-told.{way}",
    way={**FROM_OUTSIDE, **PARSED_ALONE},
    claim=AFTER_REMOVAL,
    title=(
        "{way.text} takes effect; in versions without legacy pmap, using it gives a warning "
        "or an error."
    ),
    expect=lambda way: only_old(obeyed_or(way.gone)),
)
@DEFAULTS.family(
    "switches.deprecation.{way}",
    way=FROM_OUTSIDE,
    claim=WARNING,
    fact=WARNING_GIVEN,
    title="{way.text} gives a DeprecationWarning, visible or not; once it is removed, an error.",
    expect=lambda way: only_old(until_removed(GIVEN, way.gone)),
)
def old_from_outside(impl: Implementation, cluster: Cluster, way: Way) -> None:
    """Select legacy pmap by one of the switches."""
    follow(cluster, *way.words, environment=way.environment)


@DEFAULTS.clause(
    "switches.obeyed-or-told.config-update",
    claim=AFTER_REMOVAL,
    title=(
        "The option takes effect; in versions without legacy pmap, using it gives a warning "
        "or an error."
    ),
    expect=only_old(obeyed_or(NO_OPTION)),
)
@DEFAULTS.clause(
    "switches.deprecation.config-update",
    claim=WARNING,
    fact=WARNING_GIVEN,
    title="The option gives a DeprecationWarning, visible or not; once it is removed, an error.",
    expect=only_old(until_removed(GIVEN, NO_OPTION)),
)
@DEFAULTS.clause(
    "switches.deprecation.shown",
    claim=WARNING,
    title="A user who sets the option in the main file sees the DeprecationWarning by default.",
    expect=only_old(until_removed(SHOWN, NO_OPTION)),
)
@DEFAULTS.clause(
    "switches.deprecation.text",
    claim=WARNING,
    title="The DeprecationWarning of the option says what to do instead.",
    expect=only_old(until_removed(HELPFUL, of_program(raises(child.ChildError, "shard_map")))),
)
def old_by_option(impl: Implementation, cluster: Cluster) -> None:
    """Select legacy pmap by the option, set three times: the number of warnings shows too."""
    follow(cluster, "session", "False", "False", "False", "map", "call", "call")
