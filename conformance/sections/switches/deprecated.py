"""The names that went with the old pmap: whether they say so, and what to use once they are gone.

A name that is deprecated should say so where it is used, and once it is gone say what to use: both
are judged by what the user of a main file gets to see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.switches import (
    DEADLINE_S,
    OF_A_PROCESS,
    PROGRAM,
    PROGRAMS,
    REMOVED_IN,
    of_program,
    saw_warnings,
)
from conformance.spec.clause import devices
from conformance.spec.columns import of_jax
from conformance.spec.combining import of_result
from conformance.spec.comparing import Model, difference
from conformance.spec.expectation import every, noted, raises, returns, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.observation import Step
from conformance.spec.releases import by_release
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker import child
from conformance.worker.child_programs import ROWS
from conformance.worker.protocols import Cluster, Implementation

SILENT = "pmap-silence.deprecated-names-warn-and-go"


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the old pmap's; what a call of it returns, and the document's claim of a call.

    `instead` is what its warning names, and what an error is to name once it is gone.
    """

    key: str
    module: str
    name: str
    instead: str
    result: Any
    claim: str = SILENT

    @property
    def deprecated(self) -> str:
        """Return the warning that a user gets."""
        return f"{self.module}.{self.name} is deprecated; use {self.instead} instead."


NAMES: Mapping[str, Name] = table(
    Name(
        "device-put-sharded",
        "jax",
        "device_put_sharded",
        "jax.device_put",
        np.array(ROWS, np.float32),
        "migrate-pmap.device-put-sharded-deprecated",
    ),
    Name(
        "device-put-replicated",
        "jax",
        "device_put_replicated",
        "jax.device_put",
        np.array([ROWS[0], ROWS[0]], np.float32),
        "migrate-pmap.device-put-replicated-deprecated",
    ),
    Name(
        "pmap-sharding",
        "jax.sharding",
        "PmapSharding",
        "jax.sharding.NamedSharding",
        np.array(ROWS, np.float32),
    ),
)


@dataclass(frozen=True, slots=True)
class Form:
    """The way in which a main file uses a name: one of `child_programs.FORMS`."""

    key: str
    text: str


FORMS: Mapping[str, Form] = table(
    Form("attribute", "looked up as an attribute of its module"),
    Form("import", "imported by name"),
    Form("call", "called"),
)


def claim_of(name: Name, form: Form) -> str:
    """The document speaks of the two functions' use alone; it is silent on all else."""
    return name.claim if form.key == "call" else SILENT


def shown(name: Name, form: Form) -> Expectation:
    """A DeprecationWarning that says what to use is shown, and the name does what it did."""
    called = form.key == "call"

    def check_step(place: Place, step: Step) -> tuple[bool, str]:
        problem: str | None
        if len(step.leaves) != 1:
            problem = f"{len(step.leaves)} leaves in place of one: {step}"
        elif called:
            problem = difference(step.leaves[0], name.result)
        else:
            problem = None if step.leaves[0].text == repr(name.name) else str(step)
        told = [w for w in step.extra["warned"] if w["shown"] and w["message"] == name.deprecated]
        right = [w["category"] for w in told] == ["DeprecationWarning"]
        return right and problem is None, problem or saw_warnings(step)

    return of_program(of_result(f"shows the DeprecationWarning {name.deprecated!r}", check_step))


def warns_of(name: Name, form: Form) -> Expectation:
    """A warning; and, where the document is silent, once it is gone an error says what to use.

    Deprecated, as the document says of a call, is not yet removed.
    """
    warned = shown(name, form)
    if claim_of(name, form) != SILENT:
        return warned
    gone = of_program(
        raises(child.ChildError, f"^(Attribute|Import)Error: .*use {name.instead} instead")
    )
    return by_release(REMOVED_IN, before=warned, since=gone)


def fact_of(name: Name, form: Form) -> str:
    """The two functions share their fate, which shows by form; the class has its own."""
    of_class = name.key == "pmap-sharding"
    return "switches.pmap-sharding" if of_class else f"switches.stacking-utilities.{form.key}"


@family(
    "switches.{name}.{form}",
    name=NAMES,
    form=FORMS,
    claim=claim_of,
    fact=fact_of,
    title="{name.name} is {form.text}.",
    left_out=OF_A_PROCESS,
    expect=lambda name, form: of_jax(warns_of(name, form)),
    deadline_s=DEADLINE_S,
)
def reach_for(impl: Implementation, cluster: Cluster, name: Name, form: Form) -> None:
    """The name is used twice in a new process, in the main file."""
    answers: list[child.Answer] = []

    def wait() -> Any:
        words = ("deprecated", name.name, form.key)
        answers.append(child.run(PROGRAMS, *words, environment=child.ON_TWO_DEVICES))
        result = answers[0].result()
        return np.array(result, np.float32) if form.key == "call" else result

    cluster.step(PROGRAM, wait)
    if answers:
        cluster.note("warned", answers[0].warnings)


# --- The functions' results -----------------------------------------------------------------------


ONE_ROW_EACH = noted(
    "shard shapes",
    "each device holds one row",
    lambda place, shapes: shapes == [[1, 2]] * place.topology.devices_per_process,
)


@described("the first row, once for each device")
def first_row_repeated(place: Place) -> Any:
    return np.repeat(place.rows(2)[:1], place.topology.devices_per_process, 0)


@dataclass(frozen=True, slots=True)
class Utility:
    """A function that stacks; `argument` of a process's rows, and what comes of it."""

    key: str
    name: str
    argument: Callable[[Any], Any]
    result: Model


UTILITIES: Mapping[str, Utility] = table(
    Utility("device-put-sharded", "device_put_sharded", list, lambda place: place.rows(2)),
    Utility(
        "device-put-replicated",
        "device_put_replicated",
        lambda rows: rows[0],
        first_row_repeated,
    ),
)


@family(
    "switches.{utility}.stacks",
    utility=UTILITIES,
    claim="migrate-pmap.stacking-utilities-shard",
    fact="switches.stacking-utilities.stacks",
    title="{utility.name} returns an array that is sharded over the devices, not replicated.",
    needs=devices(2),
    topologies=ONE_AND_FOUR,
    expect=lambda utility: of_jax(
        twice(every(returns(utility.result, text="the stacked rows"), ONE_ROW_EACH))
    ),
)
def stack(impl: Implementation, cluster: Cluster, utility: Utility) -> None:
    """Call a deprecated stacking utility."""
    impl.select()  # as a user finds the switch, which decides their sharding
    argument = utility.argument(cluster.rows(2))
    for step in ("first call", "second call"):
        result = cluster.step(
            step, lambda: getattr(jax, utility.name)(argument, cluster.local_devices)
        )
        if result is not None:
            cluster.note("shard shapes", [list(s.data.shape) for s in result.addressable_shards])
