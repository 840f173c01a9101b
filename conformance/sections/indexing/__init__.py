"""The cost of reading from an output, measured in the programs that JAX compiles for it.

Time is noisy; the collectives of a compiled program are not. So a cell's figure is the bytes that
the access communicates over the bytes of its result, and whether the array is read through the
host; the section `timing` shows the time beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.spec.expectation import along, every, in_steps, noted, returns, sharded
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.names import SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import Place
from conformance.worker.bodies import Body, double
from conformance.worker.calls import THROUGH_THE_HOST
from conformance.worker.programs import Compiled
from conformance.worker.protocols import Cluster, Implementation

ROW = (3, 4)
MOVED = "moved"
ACCESS = "access"  # the step that reads an output

Use = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Form:
    """One way to read an output. `use` serves NumPy as well, where no `model` is given.

    `arguments` follow the array; `jitted` puts all of it under jit. `bounces` says that legacy
    brings the whole array to the host for it; `loops`, that it reads row by row, so that what one
    program moves is moved once per row; `split`, that the result is still one row per device.
    Forms of one `sort` vary one fact.
    """

    key: str
    text: str
    use: Use
    model: Use | None = None
    arguments: tuple[Any, ...] = ()
    jitted: bool = False
    bounces: bool = False
    loops: bool = False
    split: bool = False
    sort: str = ""

    def by_numpy(self, array: Any) -> Any:
        """Return NumPy's result: a list if the access returns several arrays."""
        return (self.model or self.use)(array, *self.arguments)

    def local_part(self, place: Place, implementation: str) -> Any:
        """Return a process's part of the result: its own rows of a sharded result of all
        processes.
        """
        answer = self.by_numpy(rows_of(place, implementation))
        return place.mine(answer) if self.split and implementation == SHARD_MAP else answer

    def right(self, implementation: str) -> Expectation:
        """The rows that NumPy picks."""

        def model(place: Place) -> Any:
            return self.local_part(place, implementation)

        return returns(model, text=f"what NumPy gives for {self.text}")


INTEGERS: Mapping[str, Form] = table(
    Form("zero", "`x[0]`", lambda x: x[0]),
    Form("python", "`x[1]`", lambda x: x[1]),
    Form("unreplicate", "`jax.tree.map(lambda x: x[0], x)`", lambda x: unreplicated(x)),
    Form("numpy", "`x[np.int32(1)]`", lambda x: x[np.int32(1)], bounces=True),
    Form(
        "array",
        "`x[i]` with a jax.Array `i`",
        lambda x: x[jnp.int32(1)],
        model=lambda x: x[1],
        bounces=True,
    ),
    Form("last", "`x[-1]`", lambda x: x[-1], bounces=True),
    Form("jit-zero", "`x[0]` under jit", lambda x: x[0], jitted=True, bounces=True),
    Form("jit-last", "`x[-1]` under jit", lambda x: x[-1], jitted=True, bounces=True),
    Form(
        "jit-traced",
        "`x[i]` under jit with a traced `i`",
        lambda x, i: x[i],
        arguments=(1,),
        jitted=True,
        bounces=True,
    ),
)


def unreplicated(tree: Any) -> Any:
    """Return the first row of every leaf, as flax's unreplicate does."""
    return jax.tree.map(lambda x: x[0], tree)


def output(
    impl: Implementation,
    cluster: Cluster,
    body: Body | None = None,
    row: tuple[int, ...] = ROW,
    **options: Any,
) -> Any:
    """A map's output: one `row` per device, through `body`, which unless given doubles it."""
    return impl.map(body or double(), **options)(impl.given(cluster.rows(*row)))


def rows_of(place: Place, implementation: str) -> Any:
    """NumPy's `output`: this process's rows, or under shard_map those of all."""
    rows = place.all_rows(*ROW) if implementation == SHARD_MAP else place.rows(*ROW)
    return rows * 2


def double_sum() -> Body:
    """The sum over the devices of all processes of the row, doubled."""
    return lambda x: jax.lax.psum(x * 2, "i")


@described("the sum of all rows, doubled")
def double_summed(place: Place) -> Any:
    return place.all_rows(*ROW).sum(0) * 2


def access(
    cluster: Cluster, name: str, form: Form, x: Any, *, watched: str | None = None
) -> Compiled | None:
    """A step that reads `x` and notes, as `MOVED`, what that moved."""
    use = jax.jit(form.use) if form.jitted else form.use
    seen: Compiled | None = cluster.compiled(name, use, x, *form.arguments, watched=watched)
    if seen is not None:
        cluster.note(MOVED, moved(seen, x, rows=len(x) if form.loops else 1))
    return seen


def moved(seen: Compiled, x: Any, *, rows: int = 1) -> dict[str, Any]:
    """Return what an access communicated: `bytes` to each device by all `collectives`, and `host`.

    `result` and `array` are the bytes of the whole result and of the whole array that was read;
    `gather` is whether JAX's `_gather` ran, which the document names as the mark of the cost.
    `runs` is how often each program that communicates ran: once for each of the `rows` that the
    access reads one by one, unless there is such a program for each of them.
    """
    communicating = [one["collectives"] for one in seen.programs if one["collectives"]]
    found = [one for collectives in communicating for one in collectives]
    runs = 1 if len(communicating) == rows else rows
    return {
        "collectives": dict(Counter(one["operation"] for one in found)),
        "runs": runs,
        "bytes": runs * sum(one["bytes"] for one in found),
        "result": sum(leaf.nbytes for leaf in jax.tree.leaves(seen.result)),
        "array": x.nbytes,
        "host": bool(seen.calls.counts[THROUGH_THE_HOST]),
        "gather": any(name.endswith(":_gather") for name in seen.calls.counts),
        "programs": len(seen.programs),
    }


def describe_moved(seen: dict[str, Any]) -> str:
    """`MOVED` in words: `1 all-reduce, 48 B: 1 x the result, 0.125 x the array; ...`."""
    operations = ", ".join(f"{count} {name}" for name, count in seen["collectives"].items())
    where = "through the host" if seen["host"] else "on the devices"
    if not operations:
        return f"no collective; {where}"
    result, array = (seen["bytes"] / max(1, seen[key]) for key in ("result", "array"))
    times = f" {seen['runs']} times" if seen["runs"] > 1 else ""
    return (
        f"{operations}{times}, {seen['bytes']} B: {result:.3g} x the result, "
        f"{array:.3g} x the array; {where}"
    )


def moves(
    text: str,
    holds: Callable[[dict[str, Any]], bool],
    *parts: str,
    at_most: bool = False,
) -> Expectation:
    """A step's `MOVED` fulfils `holds`, which looks at these `parts` of it."""
    return noted(
        MOVED,
        text,
        lambda _, seen: holds(seen),
        show=describe_moved,
        parts=parts,
        at_most=at_most,
        compiled=True,
    )


def accessed(*parts: Expectation) -> Expectation:
    """All of `parts` of the step that reads an output, which must occur."""
    return in_steps(every(*parts), ACCESS)


COMMUNICATES = moves(
    "communicates between devices, not through the host, and at most the whole array",
    lambda m: 0 < m["bytes"] <= m["array"] and not m["host"],
    "bytes",
    "host",
)
MOVES_WHOLE = moves(
    "all-gathers the whole array once, not through the host",
    lambda m: m["bytes"] == m["array"] > 0 and not m["host"],
    "bytes",
    "host",
)
NO_COLLECTIVE = moves(
    "no communication between devices", lambda m: not m["collectives"], "collectives"
)
STAYS = moves(
    "no communication between devices, and not through the host",
    lambda m: not m["collectives"] and not m["host"],
    "collectives",
    "host",
)
BOUNCES = moves(
    "no communication between devices, but through the host",
    lambda m: not m["collectives"] and m["host"],
    "collectives",
    "host",
)


def moves_at_most_its_result(bounces: bool) -> Expectation:
    """No more bytes between devices than the result has, and off them only where legacy is."""
    text = "moves no more bytes between devices than its result has"
    if bounces:
        return moves(text, lambda m: m["bytes"] <= m["result"], "bytes", at_most=True)
    return moves(
        f"{text}, and not through the host",
        lambda m: m["bytes"] <= m["result"] and not m["host"],
        "bytes",
        "host",
        at_most=True,
    )


def over_the_map(place: Place, implementation: str, sharding: Mapping[str, Any]) -> bool:
    """Return whether the sharding covers as many devices as the mapped function: a pmap's are the
    process's own.
    """
    topology = place.topology
    count = topology.devices if implementation == SHARD_MAP else topology.devices_per_process
    return len(set(sharding["devices"])) == len(sharding["devices"]) == count


def named(implementation: str, *spec: str | None) -> Expectation:
    """Expect a NamedSharding with the spec (trailing Nones apart) over all devices of the mapped
    function.
    """
    holds = along(*spec)
    return sharded(
        f"a NamedSharding with the spec {list(spec)} over all mapped devices",
        lambda place, s: holds(place, s) and over_the_map(place, implementation, s),
    )


REPLICATES = "a NamedSharding that replicates over all mapped devices"


def replicated(implementation: str) -> Expectation:
    """Expect a NamedSharding whose spec names no axis, over all devices of the mapped function."""
    holds = along()
    return sharded(
        REPLICATES,
        lambda place, s: holds(place, s) and over_the_map(place, implementation, s),
    )


ONE_DEVICE = sharded(
    "a SingleDeviceSharding",
    lambda _, s: s["type"] == "SingleDeviceSharding" and len(s["devices"]) == 1,
)


@described("this process's first row")
def first_row(place: Place) -> Any:
    return place.rows(*ROW)[0] * 2


@described("the first row of all")
def first_of_all(place: Place) -> Any:
    return place.all_rows(*ROW)[0] * 2
