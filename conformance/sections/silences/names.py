"""Names of axes: whatever can be hashed; and the one that is chosen where none is given."""

from __future__ import annotations

import enum
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CONTROLLED,
    ONE_PROCESS_ALONE,
    WIDTH,
    answers,
    ask,
    control,
    doubled,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import everywhere, of_pmaps
from conformance.spec.expectation import TWICE, every, in_steps, returns
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker import child
from conformance.worker.protocols import Cluster, Implementation

DEFAULT = "pmap-silence.default-axis-name"


class Axis(enum.Enum):
    """Names of axes as a code base may keep them."""

    DATA = 1


@dataclass(frozen=True, slots=True)
class Named:
    """A name of a class of one's own."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A name of an axis; `unsaid` where it means something else to a collective."""

    key: str
    text: str
    name: Any
    unsaid: bool = False


NAMES: Mapping[str, Name] = table(
    Name("words", "a string with a space", "data axis"),
    Name("no-ascii", "a string that is not ASCII", "\N{LATIN SMALL LETTER A WITH RING ABOVE}"),
    Name("backslash", "a string with a backslash", "data\\job"),
    Name("empty-text", "an empty string", ""),
    Name("int", "a number", 3),
    Name("zero", "zero", 0),
    Name("float", "a float", 1.5),
    Name("bytes", "bytes", b"i"),
    Name("enum", "a member of an enum", Axis.DATA),
    Name("dataclass", "an object of a user's class", Named("i")),
    Name("frozenset", "a frozenset", frozenset({"i"})),
    Name("type", "a class", Named),
    Name("tuple", "a tuple of strings", ("a", "b"), unsaid=True),
)


@described("each row plus ten times the number of its device")
def numbered(place: Place) -> Any:
    return place.rows(WIDTH) + 10 * np.arange(8, dtype=np.float32)[:, None]


@family(
    "silences.axis-name.{name}",
    name=NAMES,
    claim="pmap-silence.axis-name-types",
    title="The axis name is {name.text}.",
    left_out=ONE_PROCESS_ALONE,
    needs=lambda name: devices(2) if name.unsaid else devices(8),
    expect=lambda name: everywhere(in_steps(returns(doubled if name.unsaid else numbered), *TWICE)),
)
def named(impl: Implementation, cluster: Cluster, name: Name) -> None:
    """Call a mapped function whose body calls axis_index with the axis name, or has no name."""

    def body(x: Any) -> Any:
        return x * 2 if name.unsaid else x + 10 * jax.lax.axis_index(name.name)

    cluster.twice(impl.map(body, name.name), cluster.rows(WIDTH))


# --- the default one ------------------------------------------------------------------------------


@clause(
    "silences.default-name.two-maps",
    claim=DEFAULT,
    fact="silences.default-name.text",
    left_out=ONE_PROCESS_ALONE,
    expect=of_pmaps(
        every(CONTROLLED, in_steps(answers(True), "the same text")),
        "a mesh has no default name",
    ),
)
def two_maps(impl: Implementation, cluster: Cluster) -> None:
    """Two mapped functions of equal functions without an axis name lower to the same text."""
    control(impl, cluster)

    def text() -> str:
        # By position jax.pmap's own default is not to be had from impl.map.
        function = impl.adopt(jax.pmap(lambda x: x * 2))
        return str(function.lower(cluster.rows(WIDTH)).as_text())

    ask(cluster, "the same text", lambda: text() == text())


MODULE = "conformance.sections.silences.cached"


@dataclass(frozen=True, slots=True)
class Run:
    """The property of two runs of one program that is compared."""

    key: str
    text: str
    answer: Callable[[list[dict[str, Any]]], Any]
    wanted: Any
    name: str = ""


RUNS: Mapping[str, Run] = table(
    Run(
        "text",
        "lowers to the same text",
        lambda runs: len({run["text"] for run in runs}) == 1,
        True,
    ),
    Run(
        "cache",
        "is found in the compilation cache",
        lambda runs: [[run["hits"], run["misses"]] for run in runs],
        [[0, 1], [1, 0]],
    ),
    Run(
        "cache-of-a-name",
        "in which the program sets one is found in the compilation cache",
        lambda runs: [[run["hits"], run["misses"]] for run in runs],
        [[0, 1], [1, 0]],
        name="batch",
    ),
)


@family(
    "silences.default-name.two-runs-{run}",
    run=RUNS,
    claim=DEFAULT,
    title="In a second run of a program, a mapped function without an axis name {run.text}.",
    fact="silences.default-name.{run}",
    left_out=ONE_PROCESS_ALONE,
    deadline_s=160.0,
    expect=lambda run: of_pmaps(
        every(CONTROLLED, in_steps(answers(run.wanted), "two runs")), "a mesh has no default name"
    ),
)
def two_runs(impl: Implementation, cluster: Cluster, run: Run) -> None:
    """Run one program twice, in two processes, with one compilation cache."""
    control(impl, cluster)

    def runs() -> Any:
        with tempfile.TemporaryDirectory(prefix="conformance-cache-") as folder:
            answers = [
                child.run(
                    MODULE, "lowered", impl.name, run.name, folder, environment=child.ON_TWO_DEVICES
                ).result()
                for _ in range(2)
            ]
        return run.answer(answers)

    ask(cluster, "two runs", runs)
