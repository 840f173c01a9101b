"""Helpers of reinforcement learning, second-order optimizers, tests and samplers, in any number of
processes.

Each is written as it survives the move to new pmap and to shard_map, with one body for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.idioms import (
    AXIS,
    DESCENT,
    FLOAT_BYTES,
    WIDTH,
    Idiom,
    Turn,
    Watch,
    batch,
    descend,
    examples,
    follow,
    mapped_argument,
    mine,
    own_losses,
)
from conformance.sections.idioms.checks import OTHER_TITLES, in_a_loop
from conformance.sections.idioms.evaluation import WEIGHTS
from conformance.sections.idioms.generator import SEED, folded, seeded, split, uniform
from conformance.sections.idioms.helpers import DRAWS, checked, level_of
from conformance.spec.family import table
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation


def to_devices(impl: Implementation, cluster: Cluster, tree: Any) -> Any:
    """Return a tree whose leaves have a leading axis, of one copy for each local device."""
    count = len(cluster.local_devices)

    def copies(value: Any) -> Any:
        rows = jnp.broadcast_to(value, (count, *jnp.shape(value)))
        return mapped_argument(impl, rows)

    return jax.tree.map(copies, tree)


def first(tree: Any) -> Any:
    """Return the first local device's copy of each leaf, on the host."""
    return jax.tree.map(lambda one: np.asarray(one.addressable_shards[0].data)[0], tree)


# --- Copies by broadcast_to -----------------------------------------------------------------------


def broadcast_rows(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Weights get a leading axis by jnp.broadcast_to; a map compares the copies.

    What the check has to find unequal is each device's own examples.
    """

    def equal(tree: Any) -> Any:
        mark = sum(leaf.sum() for leaf in jax.tree.leaves(tree))
        return jax.lax.pmin(mark, AXIS) == jax.lax.pmax(mark, AXIS)

    step = impl.map(watch.traced(descend()), AXIS)
    check = impl.map(watch.traced(lambda copies, own: (equal(copies), equal(own))), AXIS)
    weights = to_devices(impl, cluster, jnp.zeros(WIDTH))

    def turn(n: int) -> Any:
        nonlocal weights
        x, y = batch(impl, cluster, n)
        weights, loss = step(weights, x, y)
        return weights, loss, check({"weights": weights}, x)

    return turn


# --- Keys and sums of second-order optimizers -----------------------------------------------------


def keys_by_process(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """Each process folds its index into a key and splits it for its devices, which carry it."""

    def draw(key: Any) -> Any:
        key, now = jax.random.split(key)
        return key, jax.random.uniform(now, (WIDTH,))

    own = jax.random.fold_in(jax.random.PRNGKey(SEED), jax.process_index())
    rows = np.asarray(jax.random.split(own, len(cluster.local_devices)))
    place = impl.map(watch.traced(lambda key: key), AXIS)
    step = impl.map(watch.traced(draw), AXIS)
    keys = place(mapped_argument(impl, rows))

    def turn(n: int) -> Any:
        nonlocal keys
        keys, numbers = step(keys)
        return numbers

    return turn


def drawn_by_process(place: Place, n: int) -> Any:
    """What the devices of a process draw in step `n`."""
    keys = split(folded(seeded(), place.process), place.topology.devices_per_process)
    for _ in range(n):
        pairs = [split(key) for key in keys]
        keys = [key for key, _ in pairs]
    return np.stack([uniform(now) for _, now in pairs])


def host_mean(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A number of each process's host is averaged over all processes by a map of copies."""
    average = impl.map(watch.traced(lambda x: jax.lax.pmean(x, AXIS)), AXIS)

    def turn(n: int) -> Any:
        number = np.float32(cluster.mine(losses(cluster, n)).mean())
        return first(average(to_devices(impl, cluster, number)))

    return turn


def losses(place: Place, n: int) -> Any:
    """The loss of each device's examples; its mean differs from process to process."""
    return own_losses(WEIGHTS, *examples(place, n))


# --- A test's function on all devices -------------------------------------------------------------


def variant(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """A function's arguments are copied to all devices, and the first device's result returned."""

    def on_devices(function: Callable[..., Any]) -> Callable[..., Any]:
        mapped = impl.map(watch.traced(function), AXIS)
        return lambda *args: first(mapped(*to_devices(impl, cluster, args)))

    def tested(tree: Any, scale: Any) -> Any:
        scaled = jax.tree.map(lambda leaf: leaf * scale, tree)
        return {"own": scaled, "all": jax.lax.psum(scaled["a"], AXIS)}

    step = on_devices(tested)
    return lambda n: step({"a": np.full(WIDTH, n, np.float32), "b": np.int32(n)}, 2)


def of_the_variant(place: Place, n: int) -> Any:
    """The tree, doubled, and a sum over all devices."""
    doubled = np.full(WIDTH, 2 * n, np.float32)
    own = {"a": doubled, "b": np.int32(2 * n)}
    return {"own": own, "all": doubled * place.topology.devices}


# --- Chains of a kernel ---------------------------------------------------------------------------


class State(NamedTuple):
    """A chain's position, and the density there."""

    position: Any
    logdensity: Any


class Info(NamedTuple):
    """What a kernel says of a step: whether it accepted its proposal."""

    accepted: Any


def begun(position: Any) -> State:
    """Return the state of a chain at a position."""
    return State(position, -(position**2).sum() / 2)


def kernel(key: Any, state: State) -> tuple[State, Info]:
    """Make one step of a random walk."""
    move, accept = jax.random.split(key)
    new = begun(state.position + jax.random.uniform(move, (WIDTH,)) - 0.5)
    accepted = jnp.log(jax.random.uniform(accept)) < new.logdensity - state.logdensity
    return State(*(jnp.where(accepted, *both) for both in zip(new, state, strict=True))), Info(
        accepted
    )


def inference_loop(key: Any, state: State) -> tuple[State, Any, Any]:
    """Return a chain's last state, its positions, and how many proposals it accepted."""

    def one_step(state: State, key: Any) -> Any:
        state, info = kernel(key, state)
        return state, (state.position, info)

    state, (positions, info) = jax.lax.scan(one_step, state, jax.random.split(key, DRAWS))
    return state, positions, info.accepted.sum()


def starts(place: Place) -> Any:
    """The positions at which the chains begin, a row for each device."""
    return place.all_rows(WIDTH) / place.all_rows(WIDTH).size


def chains_of_a_kernel(impl: Implementation, cluster: Cluster, watch: Watch) -> Turn:
    """The host splits a key for the chains, one on each device, and a mean is taken over them."""

    def sample(key: Any, state: State) -> Any:
        state, positions, accepted = inference_loop(key, state)
        return state, (positions, accepted, jax.lax.pmean(state.position, AXIS))

    begin = impl.map(watch.traced(begun), AXIS)
    run_chains = impl.map(watch.traced(sample), AXIS)
    state = begin(mapped_argument(impl, cluster.mine(starts(cluster))))
    key = jax.random.PRNGKey(SEED)

    def turn(n: int) -> Any:
        nonlocal state, key
        key, now = jax.random.split(key)
        keys = np.asarray(jax.random.split(now, cluster.topology.devices))
        state, results = run_chains(mapped_argument(impl, cluster.mine(keys)), state)
        return results

    return turn


def all_chains(place: Place, n: int) -> tuple[Any, Any]:
    """NumPy's positions of all chains in step `n`, and how many proposals each accepted.

    In float32, as the chains are: where a position is small, what is added to it is not.
    """
    at, key = starts(place), seeded()
    for _ in range(n):
        key, now = split(key)
        paths, accepted = [], []
        for chain, own in enumerate(split(now, place.topology.devices)):
            path, count = [], 0
            for one in split(own, DRAWS):
                move, accept = split(one)
                new = at[chain] + uniform(move) - np.float32(0.5)
                if np.log(level_of(accept)) < ((at[chain] ** 2).sum() - (new**2).sum()) / 2:
                    at[chain], count = new, count + 1
                path.append(at[chain].copy())
            paths.append(path)
            accepted.append(count)
    return np.array(paths), np.array(accepted, np.int32)


def chained(place: Place, n: int) -> Any:
    """The positions, how many proposals were accepted, and the mean of the last positions."""
    paths, accepted = all_chains(place, n)
    mean = np.broadcast_to(paths[:, -1].mean(0), paths[:, -1].shape)
    return mine(place, paths), place.mine(accepted), mine(place, mean)


PROJECT_HELPERS: Mapping[str, Idiom] = table(
    Idiom(
        "broadcast-rows",
        "Copies by jnp.broadcast_to, passed to a map as they are,",
        broadcast_rows,
        checked,
        lambda place: {"all-reduce": DESCENT["all-reduce"] + 4 * FLOAT_BYTES},
    ),
    Idiom(
        "keys-by-process",
        "Keys that each process splits for its devices",
        keys_by_process,
        drawn_by_process,
    ),
    Idiom(
        "host-mean",
        "A number of the host, averaged over the processes by a map,",
        host_mean,
        lambda place, n: np.float32(losses(place, n).mean()),
        lambda place: {"all-reduce": FLOAT_BYTES},
        order=None,
    ),
    Idiom(
        "first-device-output",
        "A function with copied arguments, of whose results the first is taken,",
        variant,
        of_the_variant,
        lambda place: {"all-reduce": WIDTH * FLOAT_BYTES},
        order=None,
    ),
    Idiom(
        "kernel-chains",
        "Chains of a sampling kernel, with keys split on the host,",
        chains_of_a_kernel,
        chained,
        lambda place: {"all-reduce": WIDTH * FLOAT_BYTES},
    ),
)


@in_a_loop(titles=OTHER_TITLES).family(
    "idioms.helpers.{idiom}",
    idiom=PROJECT_HELPERS,
    claim="pmap-silence.helpers-around-maps",
)
def run(impl: Implementation, cluster: Cluster, idiom: Idiom) -> None:
    """A loop around a map, with helpers of a project's own."""
    follow(impl, cluster, idiom)
