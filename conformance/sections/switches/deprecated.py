"""The names that went with the old pmap: whether they say so, and what to use once they are gone.

A name that is deprecated should say so where it is used, and once it is gone say what to use: both
are judged by what the user of a main file gets to see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.catalogue.clause import devices
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import Place
from conformance.judging.columns import of_new_pmap, of_pmaps
from conformance.judging.expectation import (
    Expectation,
    Model,
    OfEachStep,
    difference,
    every,
    noted,
    returns,
)
from conformance.judging.observation import Step
from conformance.probing import child
from conformance.probing.child_programs import ROWS
from conformance.sections.switches import (
    DEADLINE_S,
    NO_DIFFERENCE,
    ON_TWO_DEVICES,
    PROGRAMS,
    saw_warnings,
)

SILENT = "pmap-silence.deprecated-names-warn-and-go"


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the old pmap's; what a call of it returns, and the document's claim of a call."""

    key: str
    name: str
    result: Any
    claim: str = SILENT


NAMES: Mapping[str, Name] = table(
    Name(
        "device-put-sharded",
        "device_put_sharded",
        np.array(ROWS, np.float32),
        "migrate-pmap.device-put-sharded-deprecated",
    ),
    Name(
        "device-put-replicated",
        "device_put_replicated",
        np.array([ROWS[0], ROWS[0]], np.float32),
        "migrate-pmap.device-put-replicated-deprecated",
    ),
    Name("pmap-sharding", "PmapSharding", np.array(ROWS, np.float32)),
)


@dataclass(frozen=True, slots=True)
class Form:
    """How a main file reaches for a name: one of `child_programs.FORMS`."""

    key: str
    text: str


FORMS: Mapping[str, Form] = table(
    Form("attribute", "looked up as an attribute of its module"),
    Form("import", "imported by name"),
    Form("call", "called"),
)

A_REPLACEMENT = r"use jax\.|https?:"


def _is_deprecation(warning: dict[str, Any], name: str) -> bool:
    return warning["category"] == "DeprecationWarning" and name in warning["message"]


def claim_of(name: Name, form: Form) -> str:
    """The document speaks of the two functions' use alone; it is silent on all else."""
    return name.claim if form.key == "call" else SILENT


def warns_of(name: Name, form: Form) -> Expectation:
    """A DeprecationWarning is shown; or, where the document is silent, an error says what to use.

    Deprecated, as the document says, is not yet removed. A call that returns must return the right
    values besides.
    """
    or_refers = claim_of(name, form) == SILENT

    def of(place: Place, step: Step) -> tuple[bool, str]:
        if step.raised is not None:
            refers = re.search(A_REPLACEMENT, step.raised.message) is not None
            return or_refers and refers, str(step)
        problem = difference(step.leaves[0], name.result) if form.key == "call" else None
        shown = any(w["shown"] and _is_deprecation(w, name.name) for w in step.extra["warned"])
        return shown and problem is None, problem or saw_warnings(step)

    either = ", or an error names a replacement" if or_refers else ""
    return OfEachStep(f"a DeprecationWarning about {name.name} is shown{either}", of)


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
    expect=lambda name, form: of_new_pmap(warns_of(name, form), NO_DIFFERENCE),
    deadline_s=DEADLINE_S,
    selects=True,
)
def reach_for(impl: Any, cluster: Any, name: Name, form: Form) -> None:
    """The name is used twice in a new process, in the main file."""
    answers: list[child.Answer] = []

    def wait() -> Any:
        words = ("deprecated", name.name, form.key)
        answers.append(child.run(PROGRAMS, *words, environment=ON_TWO_DEVICES))
        result = answers[0].result()
        return np.array(result, np.float32) if form.key == "call" else result

    cluster.step("the program", wait)
    if answers:
        cluster.note("warned", answers[0].warnings)


# --- What the functions are for -------------------------------------------------------------------


ONE_ROW_EACH = noted(
    "shard shapes",
    "each device holds one row",
    lambda place, shapes: shapes == [[1, 2]] * place.topology.devices_per_process,
)


def first_row_repeated(place: Place) -> Any:
    """the first row, once for each device"""
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
    title="What {utility.name} returns is sharded over the devices, not replicated.",
    needs=devices(2),
    expect=lambda utility: of_pmaps(
        every(returns(utility.result, text="the stacked rows"), ONE_ROW_EACH),
        "the utilities make arguments for pmap",
    ),
    selects=True,
)
def stack(impl: Any, cluster: Any, utility: Utility) -> None:
    """What a stacking utility returns is sharded over the devices, not replicated."""
    impl.select()
    argument = utility.argument(cluster.rows(2))
    for step in ("first call", "second call"):
        result = cluster.step(
            step, lambda: getattr(jax, utility.name)(argument, cluster.local_devices)
        )
        if result is not None:
            cluster.note("shard shapes", [list(s.data.shape) for s in result.addressable_shards])
