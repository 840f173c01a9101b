"""Common patterns of training and inference code with pmap, each as a small complete program.

A program makes its mapped functions and its state, and returns a function that runs one step of its
loop. Every program runs the same number of steps, and is tested for four things: values, later
traces or compilations, the devices of its outputs, and its communication.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from conformance.spec import hlo
from conformance.spec.combining import of_result
from conformance.spec.topology import ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.bodies import Body
from conformance.worker.programs import executables
from conformance.worker.protocols import Cluster, Implementation

STEPS = ("step 1", "step 2", "step 3", "step 4")

AGAIN = "again"  # what a step traced and compiled
LIES = "lies"  # the local devices of the rows of its results, in order
GIVEN_UP = "given up"  # of each array that a step donated, whether it is deleted
MOVED = "moved"

IN_ONE_PROCESS = "each process runs the same program on its own devices only"

Turn = Callable[[int], Any]


@dataclass
class Watch:
    """Records of a running program: how often its bodies are traced, and what it donates."""

    times: int = 0
    donated: list[Any] = field(default_factory=list)

    def traced(self, body: Body) -> Body:
        """The body, each trace of which is counted."""

        @functools.wraps(body)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.times += 1
            return body(*args, **kwargs)

        return watched

    def gives(self, tree: Any) -> Any:
        """A tree that is donated in this step, as it is."""
        self.donated += jax.tree.leaves(tree)
        return tree


Program = Callable[[Implementation, Cluster, Watch], Turn]


@dataclass(frozen=True, slots=True)
class Idiom:
    """A pattern: `program` takes an implementation, a cluster and a watch, and returns a function
    that runs one step.

    `model(place, n)` is this process's part of the result of step `n`, counted from 1;
    `moves(place)` are the bytes on one device of each kind of collective in one step. `gives` says
    that a step donates its state; `order(place)` lists the local devices of the result's rows, None
    if they are on the host; `mistakes` are models of wrong results. `of_legacy` is `moves` of
    legacy pmap, if that communicates more; a program that `compiles` in each step is not tested for
    it; one that was `refused` is tested for its values only.
    """

    key: str
    text: str
    program: Program
    model: Callable[[Place, int], Any]
    moves: Callable[[Place], Mapping[str, int]] = lambda place: {}
    gives: bool = False
    refused: bool = False
    compiles: bool = False
    of_legacy: Callable[[Place], Mapping[str, int]] | None = None
    mistakes: Mapping[str, Callable[[Place, int], Any]] = field(default_factory=dict)
    order: Callable[[Place], list[int]] | None = lambda place: list(
        range(place.topology.devices_per_process)
    )
    topologies: tuple[str, ...] = ONE_AND_TWO
    requires: tuple[str, ...] = ()

    @property
    def left_out(self) -> str:
        """Return why it is not run in several processes."""
        return IN_ONE_PROCESS if self.topologies == ONE_PROCESS else ""


def follow(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """The steps of a program one after the other, each with what it compiled; at first, all."""
    watch = Watch()
    turn = idiom.program(impl, cluster, watch)
    jax.clear_caches()
    for n, name in enumerate(STEPS, 1):
        mark, known = watch.times, executables()
        watch.donated.clear()
        result = cluster.step(name, turn, n)
        seen = {id(one) for one in known}
        fresh = [one for one in executables() if id(one) not in seen]
        cluster.note(AGAIN, {"traced": watch.times - mark, "compiled": len(fresh)})
        cluster.note(LIES, _orders(result, cluster.local_devices))
        cluster.note(GIVEN_UP, [one.is_deleted() for one in watch.donated])
        cluster.note(MOVED, {"collectives": _collectives(fresh)})


def _orders(result: Any, devices: list[jax.Device]) -> list[list[int]]:
    """The positions of devices on which the arrays' rows lie, each order once."""
    orders: list[list[int]] = []
    for array in jax.tree.leaves(result):
        if not isinstance(array, jax.Array) or array.is_deleted():
            continue
        shards = sorted(
            array.addressable_shards,
            key=lambda shard: (shard.index[0].start or 0) if shard.index else 0,
        )
        order = [devices.index(shard.device) for shard in shards]
        if order not in orders:
            orders.append(order)
    return orders


def _collectives(executables: list[Any]) -> dict[str, int]:
    """The bytes of each kind of collective; how many XLA makes of them is its own choice."""
    found: Counter[str] = Counter()
    for module in (one for executable in executables for one in executable.hlo_modules()):
        for collective in hlo.collectives(module.to_string()):
            found[collective.operation] += collective.bytes
    return dict(found)


# Of the clauses on other things than the numbers, which another clause compares in the same run.
ENDS_WELL = of_result("no error", lambda _, step: (True, str(step)), claims=())

AXIS = "batch"  # what the programs call the devices' axis


def mapped_argument(impl: Implementation, rows: Any) -> Any:
    """Return this process's rows as a mapped argument; under shard_map on its own mesh."""
    return impl.given(rows, AXIS)


def copies(impl: Implementation, cluster: Cluster, tree: Any) -> Any:
    """A replicated state: each leaf once for each of this process's devices."""
    count = len(cluster.local_devices)
    return jax.tree.map(
        lambda leaf: mapped_argument(impl, np.stack([np.asarray(leaf)] * count)), tree
    )


def on_each(place: Place, leaf: Any) -> Any:
    """Return a process's part of a replicated value, in float32."""
    leaf = np.asarray(leaf, np.float32)
    return np.broadcast_to(leaf, (place.topology.devices_per_process, *leaf.shape))


def mine(place: Place, rows: Any) -> Any:
    """Return a process's part of an array with one row per device, in float32."""
    return place.mine(np.asarray(rows, np.float32))


WIDTH, BATCH = 3, 2  # features, and examples on each device
FLOAT_BYTES = 4
RATE = 2.0**-3


def examples(place: Place, n: int) -> tuple[Any, Any]:
    """The features and targets of step `n`, of all devices: small whole numbers."""
    features = (place.all_rows(BATCH, WIDTH) * 3 + n) % 5 - 1
    return features, (place.all_rows(BATCH) + n) % 4


def batch(impl: Implementation, cluster: Cluster, n: int) -> tuple[Any, Any]:
    """Return this process's part of the examples of step `n`, as a mapped argument."""
    features, targets = examples(cluster, n)
    return mapped_argument(impl, cluster.mine(features)), mapped_argument(
        impl, cluster.mine(targets)
    )


def square_loss(weights: Any, features: Any, targets: Any) -> Any:
    """The mean square error of a linear model, in the body."""
    return ((features @ weights - targets) ** 2).mean()


def own_losses(weights: Any, features: Any, targets: Any) -> Any:
    """NumPy's `square_loss` of each device."""
    return ((features @ weights - targets) ** 2).mean(-1)


def own_gradients(weights: Any, features: Any, targets: Any) -> Any:
    """The gradient of each device's own loss."""
    rest = features @ weights - targets
    return np.einsum("db,dbw->dw", rest, features) * 2 / targets.shape[-1]


def descend() -> Body:
    """A step of data-parallel descent: the new weights, and the mean of all devices' losses."""

    def update(weights: Any, features: Any, targets: Any) -> Any:
        loss, gradient = jax.value_and_grad(square_loss)(weights, features, targets)
        loss, gradient = jax.lax.pmean((loss, gradient), AXIS)
        return weights - RATE * gradient, loss

    return update


def descent(place: Place, n: int, rate: float = RATE) -> tuple[Any, Any]:
    """NumPy's weights after `n` steps of `descend` from zero, and the loss of the last step."""
    weights, loss = np.zeros(WIDTH), 0.0
    for k in range(1, n + 1):
        loss = own_losses(weights, *examples(place, k)).mean()
        weights = weights - rate * own_gradients(weights, *examples(place, k)).mean(0)
    return weights, loss


def zeros(impl: Implementation, cluster: Cluster) -> Any:
    """Replicated weights to begin with."""
    return copies(impl, cluster, np.zeros(WIDTH, np.float32))


DESCENT = {"all-reduce": (WIDTH + 1) * FLOAT_BYTES}  # a gradient and a loss are averaged
