"""Helpers of projects without a mapped function: plain jit over sharded arrays.

Where a helper keeps a leading axis of devices, `jax.vmap` with an axis name takes the place of
`jax.pmap` under a jit: the body stays, collectives included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    AXIS,
    DESCENT,
    FLOAT_BYTES,
    RATE,
    WIDTH,
    Idiom,
    Program,
    Turn,
    Watch,
    examples,
    follow,
    own_losses,
)
from conformance.sections.idioms import descend as descend_in_a_map
from conformance.sections.idioms.checks import in_a_jit, of_the_mapped
from conformance.sections.idioms.evaluation import WEIGHTS
from conformance.sections.idioms.evaluation import mean_loss as mean_loss_of_all
from conformance.sections.idioms.generator import SEED
from conformance.sections.idioms.helpers import DRAWS, averaged, checked, drawn
from conformance.sections.idioms.jitted import ZERO, mean_loss
from conformance.sections.idioms.models import reduced
from conformance.sections.idioms.project_helpers import drawn_by_process, of_the_variant
from conformance.sections.idioms.sharded import sharded, sharded_batch, split, whole
from conformance.spec.family import table
from conformance.spec.topology import ONE_PROCESS
from conformance.worker.protocols import Cluster, Implementation


def put_copies(impl: Implementation, cluster: Cluster, value: Any) -> Any:
    """A copy for each device by NumPy's broadcast_to and device_put."""
    return jax.device_put(
        np.broadcast_to(value, (cluster.topology.devices, *np.shape(value))), split(impl)
    )


def broadcast_copies(impl: Implementation, cluster: Cluster, value: Any) -> Any:
    """A copy for each local device by jnp.broadcast_to, as this process's part."""
    rows = jnp.broadcast_to(value, (len(cluster.local_devices), *jnp.shape(value)))
    return sharded(impl, rows)


def compared(copies: Callable[[Implementation, Cluster, Any], Any]) -> Program:
    """Weights with a row for each device, trained under a vmap; another compares the rows.

    What the check has to find unequal is each device's own examples.
    """

    def equal(tree: Any) -> Any:
        mark = sum(leaf.sum() for leaf in jax.tree.leaves(tree))
        return jax.lax.pmin(mark, AXIS) == jax.lax.pmax(mark, AXIS)

    def program(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
        def mapped(body: Any) -> Any:
            return jax.jit(jax.vmap(watch.traced(body), axis_name=AXIS), out_shardings=split(impl))

        step = mapped(descend_in_a_map())
        check = mapped(lambda copies, own: (equal(copies), equal(own)))
        weights = copies(impl, cluster, ZERO)

        def turn(n: int) -> Any:
            nonlocal weights
            x, y = sharded_batch(impl, cluster, n)
            weights, loss = step(weights, x, y)
            return weights, loss, check({"weights": weights}, x)

        return turn

    return program


def first(array: Any) -> Any:
    """The first local device's copy, on the host."""
    return np.asarray(array.addressable_shards[0].data)


def inside_or_outside(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A mean that is taken over the axis where there is one: nowhere under a plain jit, whose
    gradient is of the mean over all rows."""

    def average(value: Any) -> Any:
        try:
            jax.lax.axis_index(AXIS)
        except NameError:
            return value
        return jax.lax.pmean(value, AXIS)

    def update(weights: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(mean_loss)(weights, x, y)
        return weights - RATE * average(gradient), average(value)

    step = jax.jit(watch.traced(update), out_shardings=whole(impl))
    weights = jax.device_put(ZERO, whole(impl))

    def turn(n: int) -> Any:
        nonlocal weights
        own = [cluster.mine(part)[0] for part in examples(cluster, n)]
        alone = average(mean_loss(first(weights), *own))
        weights, loss = step(weights, *sharded_batch(impl, cluster, n))
        return first(weights), first(loss), np.asarray(alone)

    return turn


def sampled(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Metropolis chains in a vmap: a scan of draws, whose states stay on their devices."""

    def log_density(x: Any) -> Any:
        return -(x**2).sum() / 2

    def draw(state: Any, _: Any) -> Any:
        key, move, accept = jax.random.split(state["key"], 3)
        old = state["position"]
        new = old + jax.random.uniform(move, (WIDTH,)) - 0.5
        level = jnp.log(jax.random.uniform(accept))
        taken = level < log_density(new) - log_density(old)
        position = jnp.where(taken, new, old)
        return {"key": key, "position": position}, (position, taken)

    def chain(state: Any) -> Any:
        state, (positions, taken) = jax.lax.scan(draw, state, None, length=DRAWS)
        return state, positions, taken.sum()

    def start(key: Any, number: Any) -> Any:
        key = jax.random.fold_in(key, number)
        return {"key": key, "position": jax.random.uniform(key, (WIDTH,))}

    rows = split(impl)
    begin = jax.jit(watch.traced(jax.vmap(start, in_axes=(None, 0))), out_shardings=rows)
    sample = jax.jit(watch.traced(jax.vmap(chain)), out_shardings=rows)
    key = np.asarray(jax.random.PRNGKey(SEED))
    state = begin(key, np.arange(cluster.topology.devices))

    def turn(n: int) -> Any:
        nonlocal state
        state, positions, accepted = sample(state)
        return positions, accepted

    return turn


def keys_by_process(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each process folds its index into a key and splits it for its rows, which carry it."""

    def draw(key: Any) -> Any:
        key, now = jax.random.split(key)
        return key, jax.random.uniform(now, (WIDTH,))

    own = jax.random.fold_in(jax.random.PRNGKey(SEED), jax.process_index())
    keys = sharded(impl, jax.random.split(own, len(cluster.local_devices)))
    step = jax.jit(watch.traced(jax.vmap(draw)), out_shardings=split(impl))

    def turn(n: int) -> Any:
        nonlocal keys
        keys, numbers = step(keys)
        return numbers

    return turn


def host_mean(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A number of each process's host, copied for its devices, is averaged over all rows."""
    average = jax.jit(watch.traced(lambda rows: rows.mean()), out_shardings=whole(impl))

    def turn(n: int) -> Any:
        losses = own_losses(WEIGHTS, *examples(cluster, n))
        number = np.float32(cluster.mine(losses).mean())  # another one in each process
        return first(average(broadcast_copies(impl, cluster, number)))

    return turn


def variant(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A function's arguments are copied to all devices, and the first device's result returned."""

    def on_devices(function: Callable[..., Any]) -> Callable[..., Any]:
        mapped = jax.jit(
            jax.vmap(watch.traced(function), axis_name=AXIS), out_shardings=split(impl)
        )

        def call(*args: Any) -> Any:
            copies = jax.tree.map(lambda leaf: broadcast_copies(impl, cluster, leaf), args)
            return jax.tree.map(lambda rows: first(rows)[0], mapped(*copies))

        return call

    def tested(tree: Any, scale: Any) -> Any:
        scaled = jax.tree.map(lambda leaf: leaf * scale, tree)
        return {"own": scaled, "all": jax.lax.psum(scaled["a"], AXIS)}

    step = on_devices(tested)
    return lambda n: step({"a": np.full(WIDTH, n, np.float32), "b": np.int32(n)}, 2)


HELPERS: Mapping[str, Idiom] = table(
    Idiom(
        "broadcast-copies",
        "Copies by broadcast_to, and a vmap that compares them,",
        compared(put_copies),
        checked,
        lambda place: {"all-reduce": DESCENT["all-reduce"] + 4 * FLOAT_BYTES},
        topologies=ONE_PROCESS,
    ),
    Idiom(
        "broadcast-rows",
        "Copies by jnp.broadcast_to, passed to a vmap as rows,",
        compared(broadcast_copies),
        checked,
        lambda place: {"all-reduce": DESCENT["all-reduce"] + 4 * FLOAT_BYTES},
    ),
    Idiom(
        "mean-where-mapped",
        "A mean that asks whether the axis is there",
        inside_or_outside,
        averaged,
        lambda place: DESCENT,
        order=None,
    ),
    Idiom("sampler", "A Metropolis sampler with a chain in each row", sampled, drawn),
    Idiom(
        "keys-by-process",
        "Keys that each process splits for its rows",
        keys_by_process,
        drawn_by_process,
    ),
    Idiom(
        "host-number",
        "A number of the host, averaged over the processes,",
        host_mean,
        mean_loss_of_all,
        lambda place: {"all-reduce": FLOAT_BYTES},
        order=None,
    ),
    Idiom(
        "first-device-output",
        "A function with copied arguments, of whose results the first is taken,",
        variant,
        of_the_variant,
        reduced(WIDTH),
        order=None,
    ),
)


@in_a_jit().family("idioms.jit.{idiom}", idiom=HELPERS, left_out=of_the_mapped)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a plain jit, with helpers of a project's own."""
    follow(impl, cluster, idiom)
