"""What a mapped function's output keeps: containers, devices under a default device, copies."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.silences.answers import answers, ask
from conformance.spec.aspects import COMMITTED, DEVICES, SHARDING_TYPE, SPEC
from conformance.spec.clause import clause, devices
from conformance.spec.columns import Columns, everywhere, unless_legacy
from conformance.spec.combining import of_result
from conformance.spec.containers import Node
from conformance.spec.expectation import along, every, returns, sharded, twice
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.observation import Step
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import double, doubled
from conformance.worker.protocols import Cluster, Implementation

COUNT = 8  # devices
WIDTH = 3  # of a row
COMMITTED_OUTPUTS = "pmap-silence.committed-outputs"
LEFT_OUT = "multi_controller.fetch tests several processes"

# --- The container of a result -----------------------------------------------------------------


class Pair(NamedTuple):
    """Two results, by name."""

    first: Any
    second: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Fields:
    """Two results, as the fields of a dataclass."""

    first: Any
    second: Any


FIELDS = "CustomNode(Fields[()], [*, *])"  # as JAX prints it


@dataclass(frozen=True, slots=True)
class Container:
    """What `make` builds of two results; `model` builds what a model returns of them."""

    key: str
    text: str
    make: Callable[[Any, Any], Any]
    model: Callable[[Any, Any], Any] | None = None

    def expected(self, place: Place) -> Any:
        """Return the rows doubled and tripled in this container."""
        rows = place.rows(WIDTH)
        return (self.model or self.make)(rows * 2, rows * 3)


CONTAINERS: Mapping[str, Container] = table(
    Container("tuple", "a tuple", lambda a, b: (a, b)),
    Container("list", "a list", lambda a, b: [a, b]),
    Container("dict", "a dict", lambda a, b: {"a": a, "b": b}),
    Container("named-tuple", "a named tuple", Pair),
    Container("dataclass", "a dataclass", Fields, lambda a, b: Node(FIELDS, [a, b])),
    Container("tuple-of-one", "a tuple of one", lambda a, b: (a + b - a * 2,)),
    Container("tuple-of-five", "a tuple of five", lambda a, b: (a, b, a, b, a)),
    Container("list-of-five", "a list of five", lambda a, b: [a, b, a, b, a]),
    Container("with-none", "a list with a None", lambda a, b: [a, None, b]),
    Container("nested", "a tuple of a dict and lists", lambda a, b: ({"a": [a]}, [(b,)])),
)


@family(
    "silences.result.{container}",
    container=CONTAINERS,
    claim="pmap-silence.pytrees-and-keywords",
    title="A mapped function returns its results in {container.text}.",
    fact="silences.result.container",
    left_out="the result does not depend on the number of processes",
    expect=lambda container: everywhere(
        twice(returns(container.expected, text=f"the rows doubled and tripled, {container.text}"))
    ),
)
def contained(impl: Implementation, cluster: Cluster, container: Container) -> None:
    """Two results in a container."""
    function = impl.map(lambda x: container.make(x * 2, x * 3))
    cluster.twice(function, impl.given(cluster.rows(WIDTH)))


# --- Where an output and its copies are ----------------------------------------------------------


def on(count: int, committed: bool) -> Expectation:
    """Expect each array on this many devices, committed to them or not."""

    def check_step(_: Place, step: Step) -> tuple[bool, str]:
        seen = [
            (len((leaf.sharding or {}).get("devices", ())), leaf.committed) for leaf in step.leaves
        ]
        return bool(seen) and set(seen) == {(count, committed)}, f"devices, committed: {seen}"

    text = f"on {count} devices, {'committed' if committed else 'not committed'}"
    return of_result(text, check_step, claims={COMMITTED, SHARDING_TYPE})


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of an output, on `count` devices and committed to them or not."""

    key: str
    text: str
    make: Callable[[Any], Any]
    count: int
    committed: bool


COPIES: Mapping[str, Copy] = table(
    Copy(
        "pickled", "written and read by pickle", lambda x: pickle.loads(pickle.dumps(x)), 1, False
    ),
    Copy("deep-copied", "copied by copy.deepcopy", copy.deepcopy, COUNT, True),
    Copy("copied-by-copy", "copied by copy.copy", copy.copy, COUNT, True),
)


@family(
    "silences.output.copy.{form}",
    form=COPIES,
    claim=COMMITTED_OUTPUTS,
    title="A mapped function's output {form.text} is on {form.count} devices.",
    fact=lambda form: f"silences.output.copy.{form.key}",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda form: everywhere(
        twice(every(returns(doubled(WIDTH)), on(form.count, form.committed)))
    ),
)
def copied(impl: Implementation, cluster: Cluster, form: Copy) -> None:
    """A copy of an output."""
    output = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    cluster.twice(form.make, output)


@dataclass(frozen=True, slots=True)
class Given:
    """What a mapped function is given under a default device."""

    key: str
    text: str
    make: Callable[[Any], Any]


GIVEN: Mapping[str, Given] = table(
    Given("numpy", "NumPy rows", lambda rows: rows),
    Given("array", "an array made there", jnp.asarray),
)


@family(
    "silences.default-device.{given}",
    given=GIVEN,
    claim=COMMITTED_OUTPUTS,
    title="Under jax.default_device, a mapped function of {given.text} runs on all its devices.",
    fact="silences.default-device",
    needs=devices(COUNT),
    left_out="the result does not depend on the number of processes",
    expect=lambda given: everywhere(twice(every(returns(doubled(WIDTH)), on(COUNT, True)))),
)
def under_a_default_device(impl: Implementation, cluster: Cluster, given: Given) -> None:
    """A map that is called while the last device is the default."""
    function = impl.map(double())
    with jax.default_device(cluster.devices[-1]):
        cluster.twice(lambda: function(given.make(cluster.rows(WIDTH))))


@clause(
    "silences.output.properties",
    claim=COMMITTED_OUTPUTS,
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=everywhere(
        answers(
            {
                "nbytes": COUNT * WIDTH * 4,
                "size": COUNT * WIDTH,
                "ndim": 2,
                "fully replicated": False,
                "fully addressable": True,
                "shards": COUNT,
                "deleted": False,
            }
        )
    ),
)
def properties(impl: Implementation, cluster: Cluster) -> None:
    """The properties of an output that programs read."""
    output = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    ask(
        cluster,
        "properties",
        lambda: {
            "nbytes": output.nbytes,
            "size": output.size,
            "ndim": output.ndim,
            "fully replicated": output.is_fully_replicated,
            "fully addressable": output.is_fully_addressable,
            "shards": len(output.addressable_shards),
            "deleted": output.is_deleted(),
        },
    )


# --- An output given to a jit with in_shardings ------------------------------------------------


@described("the rows, times six")
def times_six(place: Place) -> Any:
    return place.rows(WIDTH) * 6


@clause(
    "silences.output.jit-in-shardings",
    claim=COMMITTED_OUTPUTS,
    needs=devices(COUNT),
    left_out="in several processes, the array is on one process's devices only",
    expect=unless_legacy(
        twice(every(returns(times_six), sharded("rows along 'q'", along("q")))),
        twice(every(returns(times_six), sharded("rows along the map's 'i'", along("i")))),
    ),
)
def jit_in_shardings(impl: Implementation, cluster: Cluster) -> None:
    """A jit with `in_shardings` over the map's devices, whose axis has another name."""
    mesh = jax.sharding.Mesh(np.array(cluster.devices), ("q",))
    wanted = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("q"))
    output = impl.map(double())(impl.given(cluster.rows(WIDTH)))
    cluster.twice(jax.jit(lambda x: x * 3, in_shardings=wanted), output)


# --- The sharding of an output -------------------------------------------------------------------


EVERY = (None, None, 1)  # the slice of all devices


@dataclass(frozen=True, slots=True)
class Output:
    """A map of rows, its results by NumPy and their specs over an axis `i`.

    `order` is the slice of all devices that are the map's; it has as many rows.
    """

    key: str
    text: str
    body: Callable[[Any], Any]
    model: Callable[[Any], Any]
    specs: tuple[tuple[str | None, ...], ...] = (("i",),)
    out_axes: int | None = 0
    order: tuple[int | None, int | None, int] = EVERY

    def values(self, place: Place) -> Any:
        """Return what NumPy gives for all rows of the map."""
        return self.model(place.rows(WIDTH)[: len(self.devices(place))])

    def devices(self, place: Place) -> list[int]:
        """Return the numbers of the map's devices, in order."""
        return list(range(place.topology.devices_per_process))[slice(*self.order)]

    def check_legacy(self, place: Place, step: Step) -> tuple[bool, str]:
        """Return whether each result is a PmapSharding's, over the map's devices in order."""
        return self._all(step, lambda one, _: one["type"] == "PmapSharding", place)

    def check_named(self, place: Place, step: Step) -> tuple[bool, str]:
        """Return whether each result has its spec over a mesh of the map's devices in order."""
        mesh = {"i": len(self.devices(place))}
        return self._all(
            step,
            lambda one, spec: (
                (one["type"], one["spec"], one["mesh"]) == ("NamedSharding", [*spec], mesh)
            ),
            place,
        )

    def _all(self, step: Step, holds: Callable[[Any, Any], bool], place: Place) -> tuple[bool, str]:
        seen = [leaf.sharding or {} for leaf in step.leaves]
        right = len(seen) == len(self.specs) and all(
            one and one["devices"] == self.devices(place) and holds(one, spec)
            for one, spec in zip(seen, self.specs, strict=True)
        )
        parts = ("type", "spec", "mesh", "devices")
        return right, "; ".join(str([one.get(part) for part in parts]) for one in seen)

    def expected(self) -> Columns:
        """Expect the values, and the sharding of the implementation."""
        said = f"each result over the map's devices in order, of the spec {list(self.specs)}"
        right = returns(self.values, text="what NumPy gives")
        claims = {SHARDING_TYPE, SPEC, DEVICES}
        return unless_legacy(
            twice(every(right, of_result(said, self.check_legacy, claims=claims))),
            twice(every(right, of_result(said, self.check_named, claims=claims))),
        )


OUTPUTS: Mapping[str, Output] = table(
    Output("scalar", "one number per row", lambda x: x.sum(), lambda a: a.sum(1)),
    Output("row", "a row", lambda x: x * 2, lambda a: a * 2),
    Output(
        "matrix", "a matrix per row", lambda x: x[:, None] * x, lambda a: a[:, :, None] * a[:, None]
    ),
    Output("bool", "a truth value per number", lambda x: x > 2, lambda a: a > 2),
    Output("unchanged", "the row itself", lambda x: x, lambda a: a),
    Output(
        "several",
        "two results in a dict",
        lambda x: {"a": x * 2, "b": x.sum()},
        lambda a: {"a": a * 2, "b": a.sum(1)},
        (("i",), ("i",)),
    ),
    Output(
        "out-axes-1",
        "a row, with out_axes=1",
        lambda x: x * 2,
        lambda a: a.T * 2,
        ((None, "i"),),
        1,
    ),
    Output(
        "out-axes-none",
        "a psum, with out_axes=None",
        lambda x: jax.lax.psum(x, "i"),
        lambda a: a.sum(0),
        ((),),
        None,
    ),
    Output(
        "reversed",
        "a row, over the devices in reverse order",
        lambda x: x * 2,
        lambda a: a * 2,
        order=(None, None, -1),
    ),
    Output(
        "half",
        "a row, over the second half of the devices",
        lambda x: x * 2,
        lambda a: a * 2,
        order=(4, None, 1),
    ),
)


@family(
    "silences.output.sharding.{output}",
    output=OUTPUTS,
    claim=COMMITTED_OUTPUTS,
    title="The result of a mapped function is over its devices in order: {output.text}.",
    fact=lambda output: f"silences.output.sharding.{output.key}",
    needs=devices(COUNT),
    left_out=LEFT_OUT,
    expect=lambda output: output.expected(),
)
def sharded_output(impl: Implementation, cluster: Cluster, output: Output) -> None:
    """A map of rows, and where its results are."""
    chosen = cluster.devices[slice(*output.order)] if output.order != EVERY else None
    function = impl.map(lambda x: output.body(x), out_axes=output.out_axes, devices=chosen)
    rows = cluster.rows(WIDTH)[: len(chosen or cluster.devices)]
    cluster.twice(function, rows)
