"""The environment variable, set before the process starts: which values it takes, and for what."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.sections.switches import (
    DEADLINE_S,
    OF_A_PROCESS,
    VARIABLE,
    Value,
    follow,
    of_program,
    only_old,
    results,
)
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import raises
from conformance.spec.family import table
from conformance.worker import child
from conformance.worker.protocols import Cluster, Implementation

OBEYED = "switches.environment.obeyed"
FALSE_LIKE = "migrate-pmap.environment-variable-false-like"

DIGIT = Value("digit", OBEYED, "0", "1")
VALUES: Mapping[str, Value] = table(
    DIGIT,
    Value("word", OBEYED, "false", "true"),
    Value("capitalised", OBEYED, "False"),
    Value("upper-case", OBEYED, "FALSE"),
    Value("no", OBEYED, "no", "yes"),
    Value("off", OBEYED, "off", "on"),
    Value("letter-n", OBEYED, "n"),
    Value("letter-f", OBEYED, "f"),
    Value("empty", "switches.environment.empty", ""),
)

DEFAULTS = Defaults(left_out=OF_A_PROCESS, deadline_s=DEADLINE_S, selects=True)


def title(value: Value) -> str:
    """Return a title: the value for each of the two implementations."""
    also = "" if value.true is None else f", {VARIABLE}={value.true} for new pmap"
    return f"{VARIABLE}={value.false} for legacy pmap{also}."


@DEFAULTS.family(
    "switches.environment.{value}",
    value=VALUES,
    claim=lambda value: "migrate-pmap.environment-variable" if value is DIGIT else FALSE_LIKE,
    title=title,
    expect=lambda value: value.columns,
)
def environment_variable(impl: Implementation, cluster: Cluster, value: Value) -> None:
    """The environment variable is set before the process starts."""
    variable = {VARIABLE: value.setting_for(impl.name)}
    follow(cluster, "session", "map", "call", "call", environment=variable)


REFUSED = raises(
    child.ChildError,
    f"^ValueError: invalid truth value 'maybe' for environment '{VARIABLE}'$",
    otherwise=results(2),
)


@DEFAULTS.clause(
    "switches.environment.wrong-value", claim=FALSE_LIKE, expect=only_old(of_program(REFUSED))
)
def wrong_value(impl: Implementation, cluster: Cluster) -> None:
    """A value that is neither true nor false is refused by an error that names the variable."""
    follow(cluster, "session", "map", "call", "call", environment={VARIABLE: "maybe"})
