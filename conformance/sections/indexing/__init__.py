"""What an access to a map's output costs, told from the programs that JAX compiles for it.

Time is noisy; the collectives of a compiled program are not. So the figure of a cell is the bytes
that the access moves between devices over the bytes of its result, and whether the whole array went
through the host; how long it takes is shown beside it by the section `timing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.catalogue.family import table
from conformance.catalogue.names import SHARD_MAP
from conformance.catalogue.topology import Place
from conformance.judging.expectation import Expectation, noted, returns, sharded
from conformance.probing.bodies import Body, double
from conformance.probing.calls import THROUGH_THE_HOST
from conformance.probing.programs import Compiled

ROW = (3, 4)
MOVED = "moved"

Use = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Form:
    """One way to read an output. `use` serves NumPy as well, where no `model` is given.

    `arguments` follow the array; `jitted` puts all of it under jit. `bounces` says that legacy
    brings the whole array to the host for it; `loops`, that one program runs once per row, so that
    what it moves is not what the access does; `split`, that the result is still one row per device.
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

    def of(self, array: Any) -> Any:
        """What NumPy makes of it: a list where several arrays come."""
        return (self.model or self.use)(array, *self.arguments)

    def held(self, place: Place, implementation: str) -> Any:
        """What a process holds of it: of a split result of all processes its own rows."""
        answer = self.of(rows_of(place, implementation))
        return place.mine(answer) if self.split and implementation == SHARD_MAP else answer

    def right(self, implementation: str) -> Expectation:
        """The rows that NumPy picks."""

        def model(place: Place) -> Any:
            return self.held(place, implementation)

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
    """What flax's unreplicate does."""
    return jax.tree.map(lambda x: x[0], tree)


def output(
    impl: Any,
    cluster: Any,
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


def double_summed(place: Place) -> Any:
    """the sum of all rows, doubled"""
    return place.all_rows(*ROW).sum(0) * 2


def access(
    cluster: Any, name: str, form: Form, x: Any, *, watched: str | None = None
) -> Compiled | None:
    """A step that reads `x` and notes, as `MOVED`, what that moved, and whether the form loops."""
    use = jax.jit(form.use) if form.jitted else form.use
    seen: Compiled | None = cluster.compiled(name, use, x, *form.arguments, watched=watched)
    if seen is not None:
        cluster.note(MOVED, moved(seen, x) | {"loops": form.loops})
    return seen


def moved(seen: Compiled, x: Any) -> dict[str, Any]:
    """What an access moved: `bytes` to each device by all `collectives`, and `host`.

    `result` and `array` are the bytes of the whole result and of the whole array that was read;
    `gather` is whether JAX's `_gather` ran, which the document names as the mark of the cost.
    """
    found = [one for program in seen.programs for one in program["collectives"]]
    return {
        "collectives": dict(Counter(one["operation"] for one in found)),
        "bytes": sum(one["bytes"] for one in found),
        "result": sum(leaf.nbytes for leaf in jax.tree.leaves(seen.result)),
        "array": x.nbytes,
        "host": bool(seen.calls.counts[THROUGH_THE_HOST]),
        "gather": any(name.endswith(":_gather") for name in seen.calls.counts),
        "programs": len(seen.programs),
    }


def told(seen: dict[str, Any]) -> str:
    """`MOVED` in words: `1 all-reduce, 48 B: 1 x the result, 0.125 x the array; ...`."""
    operations = ", ".join(f"{count} {name}" for name, count in seen["collectives"].items())
    where = "through the host" if seen["host"] else "on the devices"
    if not operations:
        return f"no collective; {where}"
    if seen["loops"]:
        return f"{operations}, {seen['bytes']} B each time that it runs; {where}"
    result, array = (seen["bytes"] / max(1, seen[key]) for key in ("result", "array"))
    return (
        f"{operations}, {seen['bytes']} B: {result:.3g} x the result, {array:.3g} x the array; "
        f"{where}"
    )


def moves(text: str, holds: Callable[[dict[str, Any]], bool]) -> Expectation:
    """A step's `MOVED` fulfils `holds`."""
    return noted(MOVED, text, lambda _, seen: holds(seen), show=told)


def stays_unless_legacy_bounces(bounces: bool) -> Expectation:
    """Off the devices only where legacy is."""
    return moves("not through the host, as legacy", lambda m: bounces or not m["host"])


COMMUNICATES = moves("communicates between devices", lambda m: m["bytes"] > 0)
MOVES_WHOLE = moves("moves the whole array to every device", lambda m: m["bytes"] >= m["array"] > 0)
NO_COLLECTIVE = moves("no communication between devices", lambda m: not m["collectives"])
STAYS = moves(
    "no communication between devices, and not through the host",
    lambda m: not m["collectives"] and not m["host"],
)
BOUNCES = moves(
    "no communication between devices, but through the host",
    lambda m: not m["collectives"] and m["host"],
)


def moves_at_most_its_result(bounces: bool) -> Expectation:
    """No more bytes between devices than the result has, and off them only where legacy is."""
    text = "moves no more bytes between devices than its result has"
    if bounces:
        return moves(text, lambda m: m["bytes"] <= m["result"])
    return moves(
        f"{text}, and not through the host",
        lambda m: m["bytes"] <= m["result"] and not m["host"],
    )


REPLICATED = sharded(
    "a NamedSharding that replicates over all devices of the map",
    lambda place, s: s["type"] == "NamedSharding" and not any(s["spec"]) and len(s["devices"]) > 1,
)
ONE_DEVICE = sharded(
    "a SingleDeviceSharding",
    lambda _, s: s["type"] == "SingleDeviceSharding" and len(s["devices"]) == 1,
)
