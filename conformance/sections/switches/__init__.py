"""The switches between the old and the new pmap: what each of them selects.

Every program runs in a process of its own, which nothing has touched before. What ran is proved by
what came out: the kind of the wrapper and the sharding of its results, never by a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.catalogue.clause import clause
from conformance.catalogue.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import (
    Expectation,
    Model,
    OfEachStep,
    every,
    not_applicable,
    raises,
    returns,
)
from conformance.judging.observation import Step
from conformance.probing import child
from conformance.probing.child_programs import ROWS

PROGRAMS = "conformance.probing.child_programs"
VARIABLE = "JAX_PMAP_SHMAP_MERGE"
DEADLINE_S = 90.0  # of a case; a child's own deadline ends before it

# The child's two devices are of its own making, whatever the cluster runs on.
ON_TWO_DEVICES = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}

WRAPPER = {LEGACY_PMAP: "legacy pmap", NEW_PMAP: "new pmap"}
SHARDING = {LEGACY_PMAP: "PmapSharding", NEW_PMAP: "NamedSharding"}
OTHER = {LEGACY_PMAP: NEW_PMAP, NEW_PMAP: LEGACY_PMAP}
# What the option is set to for each implementation.
OPTION = {LEGACY_PMAP: "False", NEW_PMAP: "True"}

NO_SWITCH = not_applicable("the switch chooses between the two pmaps")
ASKS_FOR_OLD = not_applicable("the value asks for the old pmap")


def follow(
    cluster: Any, program: str, *words: str, environment: Mapping[str, str] | None = None
) -> None:
    """Run a program of `child_programs` in a new process, as one step.

    Its value is the result of each of the program's calls; noted are, for each call, what ran, and
    the warnings that the program caused.
    """
    answers: list[child.Answer] = []

    def wait() -> list[Any]:
        variables = ON_TWO_DEVICES | dict(environment or {})
        answers.append(child.run(PROGRAMS, program, *words, environment=variables))
        return [np.array(call["values"], np.float32) for call in answers[0].result()]

    cluster.step("the program", wait)
    if answers:
        cluster.note("warned", answers[0].warnings)
        if answers[0].failure is None:
            ran = [f"{call['wrapper']} -> {call['sharding']}" for call in answers[0].value]
            cluster.note("ran", ran)


def results(calls: int) -> Model:
    """The child's rows plus their sum, as many times as there are calls."""
    rows = np.array(ROWS, np.float32)
    return lambda place: [rows + rows.sum(0)] * calls


def ran(*implementations: str) -> Expectation:
    """Each call ran the implementation named, and returned the right values."""
    wanted = [name_of(name) for name in implementations]

    def of(place: Place, step: Step) -> tuple[bool, str]:
        return what_ran(step) == wanted, saw_run(step)

    said = f"the calls run the {', '.join(WRAPPER[name] for name in implementations)}"
    values = returns(results(len(wanted)), text="the rows plus their sum, at every call")
    return every(OfEachStep(said, of), values)


def name_of(implementation: str) -> str:
    """What `follow` notes of a call that ran this implementation."""
    return f"{WRAPPER[implementation]} -> {SHARDING[implementation]}"


def what_ran(step: Step) -> list[str] | None:
    """What each of the child's calls ran; None where it made none."""
    return step.extra.get("ran")


def saw_run(step: Step) -> str:
    """What ran, or how the program failed, in words."""
    return str(step) if step.raised else f"ran {', '.join(what_ran(step) or ['nothing'])}"


def saw_warnings(step: Step) -> str:
    """All warnings of the program, in words."""
    texts = [
        f"{w['category']} given {w['count']}x, shown {w['shown']}x: {w['message']}"
        for w in step.extra.get("warned", ())
    ]
    return "; ".join(texts) or "no warning"


def selects(*implementations: str) -> dict[str, Expectation]:
    """Under each implementation named, two calls must run it; it means nothing to the others."""
    chosen = {name: ran(name, name) for name in implementations}
    rest = dict.fromkeys((LEGACY_PMAP, NEW_PMAP), ASKS_FOR_OLD)
    return {**rest, **chosen, SHARD_MAP: NO_SWITCH}


BOTH = selects(LEGACY_PMAP, NEW_PMAP)


@dataclass(frozen=True, slots=True)
class Value:
    """A value that says false, and the one of the same kind that says true where it is tried."""

    name: str
    false: str
    true: str | None = None

    def of(self, implementation: str) -> str:
        """What asks for this implementation."""
        return self.false if implementation == LEGACY_PMAP else self.true or ""

    @property
    def expect(self) -> dict[str, Expectation]:
        """Both implementations where both values are tried, else the old one."""
        return BOTH if self.true is not None else selects(LEGACY_PMAP)


# --- The environment variable ---------------------------------------------------------------------

IN_ENVIRONMENT = (
    Value("digit", "0", "1"),
    Value("word", "false", "true"),
    Value("capitalised", "False"),
    Value("upper-case", "FALSE"),
    Value("no", "no", "yes"),
    Value("off", "off", "on"),
    Value("letter-n", "n"),
    Value("letter-f", "f"),
    Value("empty", ""),
)


def environment_variable(impl: Any, cluster: Any, value: str) -> None:
    """The environment variable is set before the process starts."""
    value = next(v for v in IN_ENVIRONMENT if v.name == value).of(impl.name)
    follow(cluster, "session", "map", "call", "call", environment={VARIABLE: value})


for _row in IN_ENVIRONMENT:
    _also = "" if _row.true is None else f", {VARIABLE}={_row.true} for the new pmap"
    clause(
        f"switches.environment.{_row.name}",
        claim="migrate-pmap.environment-variable"
        if _row.name == "digit"
        else "migrate-pmap.environment-variable-false-like",
        expect=_row.expect,
        deadline_s=DEADLINE_S,
        parameters={"value": _row.name},
        title=f"{VARIABLE}={_row.false} for the old pmap{_also}.",
        selects=True,
    )(environment_variable)


@clause(
    "switches.environment.wrong-value",
    claim="migrate-pmap.environment-variable-false-like",
    expect={
        LEGACY_PMAP: raises(
            child.ChildError, f"ValueError: .*maybe.*{VARIABLE}", otherwise=results(2)
        ),
        NEW_PMAP: ASKS_FOR_OLD,
        SHARD_MAP: NO_SWITCH,
    },
    deadline_s=DEADLINE_S,
    selects=True,
)
def wrong_value(impl: Any, cluster: Any) -> None:
    """A value that is neither true-like nor false-like is refused, and the variable named."""
    follow(cluster, "session", "map", "call", "call", environment={VARIABLE: "maybe"})


# --- The absl flag --------------------------------------------------------------------------------

ON_COMMAND_LINE = (
    Value("word", "--jax_pmap_shmap_merge=false", "--jax_pmap_shmap_merge=true"),
    Value("digit", "--jax_pmap_shmap_merge=0"),
    Value("bare", "--nojax_pmap_shmap_merge", "--jax_pmap_shmap_merge"),
    Value("off", "--jax_pmap_shmap_merge=off"),
)
WORDS = ON_COMMAND_LINE[0]


def absl_flag(impl: Any, cluster: Any, value: str) -> None:
    """The flag on the command line of a program that calls `config_with_absl`, then `app.run`."""
    flag = next(v for v in ON_COMMAND_LINE if v.name == value).of(impl.name)
    follow(cluster, "absl", "config_with_absl", flag)


for _row in ON_COMMAND_LINE:
    clause(
        f"switches.absl-flag.{_row.name}",
        claim="migrate-pmap.absl-flag",
        expect=_row.expect,
        deadline_s=DEADLINE_S,
        parameters={"value": _row.name},
        title=f"{_row.false}, in a program that calls config_with_absl before app.run.",
        requires=("absl-py",),
        selects=True,
    )(absl_flag)


def absl_parsing(impl: Any, cluster: Any, way: str) -> None:
    """The flag on the command line of a program that parses it in another way."""
    follow(cluster, "absl", way, WORDS.of(impl.name))


for _way, _claim, _title in (
    (
        "parse_flags_with_absl",
        "migrate-pmap.absl-flag-parsing",
        "The program calls parse_flags_with_absl, and never app.run.",
    ),
    (
        "flags-by-hand",
        "migrate-pmap.absl-flag-parsing",
        "The program calls config_with_absl, then hands its command line to absl's FLAGS itself.",
    ),
    (
        "app-run-alone",
        "migrate-pmap.absl-flag",
        "The program parses its flags with app.run, and calls nothing of JAX's for it.",
    ),
):
    clause(
        f"switches.absl-flag.{_way.replace('_', '-')}",
        claim=_claim,
        expect=BOTH,
        deadline_s=DEADLINE_S,
        parameters={"way": _way},
        title=_title,
        requires=("absl-py",),
        selects=True,
    )(absl_parsing)


# --- The option -----------------------------------------------------------------------------------


@clause(
    "switches.config-update.before-construction",
    claim="migrate-pmap.config-update",
    expect=BOTH,
    deadline_s=DEADLINE_S,
    selects=True,
)
def before_construction(impl: Any, cluster: Any) -> None:
    """`config.update` stands before `jax.pmap(f)`."""
    follow(cluster, "session", OPTION[impl.name], "map", "call", "call")


@clause(
    "switches.config-update.over-environment",
    claim="migrate-pmap.config-update",
    expect=BOTH,
    deadline_s=DEADLINE_S,
    selects=True,
)
def over_environment(impl: Any, cluster: Any) -> None:
    """`config.update` in a process whose environment variable says the opposite."""
    opposite = {VARIABLE: OPTION[OTHER[impl.name]]}
    words = (OPTION[impl.name], "map", "call", "call")
    follow(cluster, "session", *words, environment=opposite)


@clause(
    "switches.config-update.before-first-call",
    claim="migrate-pmap.switch-before-first-call",
    expect=BOTH,
    deadline_s=DEADLINE_S,
    selects=True,
)
def before_first_call(impl: Any, cluster: Any) -> None:
    """`config.update` stands after `jax.pmap(f)`, and before the map's first call."""
    opposite = OPTION[OTHER[impl.name]]
    follow(cluster, "session", opposite, "map", OPTION[impl.name], "call", "call")


@clause(
    "switches.config-update.after-first-call",
    claim="migrate-pmap.switch-before-construction",
    expect=BOTH,
    deadline_s=DEADLINE_S,
    selects=True,
)
def after_first_call(impl: Any, cluster: Any) -> None:
    """A map that was called stays what it was when the option changes, and is called again."""
    opposite = OPTION[OTHER[impl.name]]
    follow(cluster, "session", OPTION[impl.name], "map", "call", opposite, "call")


@clause(
    "switches.config-update.toggled",
    claim="migrate-pmap.switch-before-construction",
    expect={
        LEGACY_PMAP: ran(*(LEGACY_PMAP, LEGACY_PMAP, NEW_PMAP, NEW_PMAP) * 2),
        NEW_PMAP: ran(*(NEW_PMAP, NEW_PMAP, LEGACY_PMAP, LEGACY_PMAP) * 2),
        SHARD_MAP: NO_SWITCH,
    },
    deadline_s=DEADLINE_S,
    selects=True,
)
def toggled(impl: Any, cluster: Any) -> None:
    """One function mapped four times in one process, the option changed each time."""
    mine = (OPTION[impl.name], "map", "call", "call")
    other = (OPTION[OTHER[impl.name]], "map", "call", "call")
    follow(cluster, "session", *mine, *other, *mine, *other)
