"""The clause that calls a user's function three times and observes its results.

It runs in a worker, and only for `compare` or `bisect`: it is in no catalogue.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from conformance.spec.clause import clause
from conformance.spec.expectation import Finding
from conformance.spec.names import IMPLEMENTATIONS, SECONDS
from conformance.spec.observation import Observation, to_json
from conformance.spec.topology import Topology
from conformance.worker.compiling import compilations, compiled_as_by_default
from conformance.worker.describing import MOST_ELEMENTS
from conformance.worker.implementations import wrapper_kind
from conformance.worker.programs import executables, program_record
from conformance.worker.protocols import Cluster, Implementation
from harness.usercode.arguments import Argument
from harness.usercode.function import import_function
from harness.usercode.steps import (
    CALLS,
    CLAUSE,
    FETCH,
    FIRST_ROW,
    NEGATIVE,
    PLUS_ONE,
    PREPARE,
    TIMED,
)

SAMPLED = 512  # values of an array that is too large to carry
INTEGERS_BELOW = 10  # of the values of an integer argument


@dataclass(frozen=True, slots=True)
class Unjudged:
    """No expectation: observations are compared with each other."""

    text: str = "compared with other runs"

    def check(self, topology: Topology, observations: Sequence[Observation]) -> list[Finding]:
        """Return no findings."""
        return []


@dataclass
class Program:
    """What is called: a function, its arguments for each call, and how often it was traced.

    `fed` of its results become its first arguments in the next call; `donated` are positions.
    """

    function: Callable[..., Any]
    make: Callable[[], list[Any]]
    fed: int
    donated: tuple[int, ...]
    traced: list[None]
    maps: list[str] = field(default_factory=list)

    def after(self, result: Any) -> list[Any]:
        """Return the next call's arguments."""
        arguments = self.make()
        if self.fed and result is not None:
            results = result if isinstance(result, tuple | list) else (result,)
            arguments[: self.fed] = results[: self.fed]
        return arguments


@clause(CLAUSE, claim="", expect=dict.fromkeys(IMPLEMENTATIONS, Unjudged()), topologies=("1x8",))
def calls(
    impl: Implementation,
    cluster: Cluster,
    program: Mapping[str, Any],
    timed: int = 0,
    later: bool = True,
) -> None:
    """Call a user's function three times from the same inputs."""
    with compiled_as_by_default():
        made: list[Program] = []
        maps = _noted_maps()
        cluster.step(PREPARE, lambda: made.append(_prepared(impl, cluster, program)))
        if not made:
            return
        result = _three_calls(cluster, made[0], maps)
        if timed and _returned(cluster):
            result = _timed(cluster, made[0], result, timed)
        if later and _returned(cluster):
            _later(cluster, result)


def _prepared(impl: Implementation, cluster: Cluster, program: Mapping[str, Any]) -> Program:
    impl.select()  # before the import: a module may map as it is loaded
    function = import_function(program["function"])
    traced: list[None] = []
    fed, donated = int(program["feed"]), tuple(program["donate"])
    if program["mapped"]:
        devices = jax.local_device_count()
        mapped: Any = impl.adopt(function, wrapper_kind(function))
        return Program(mapped, lambda: _inputs(program, devices), fed, donated, traced)
    inputs = _inputs(program, cluster.topology.devices)
    axes = _axes(program["in_axes"], len(inputs))
    name = program["axis_name"]

    @functools.wraps(function)
    def body(*args: Any) -> Any:
        traced.append(None)
        return function(*args)

    options: dict[str, Any] = {"donate_argnums": donated} if donated else {}
    mapped = impl.map(body, name, in_axes=axes, out_axes=program["out_axes"], **options)

    def make() -> list[Any]:
        return [
            _placed(impl, cluster, one, axis, name, number in donated)
            for number, (one, axis) in enumerate(zip(inputs, axes, strict=True))
        ]

    return Program(mapped, make, fed, donated, traced)


def _inputs(program: Mapping[str, Any], devices: int) -> list[Any]:
    """Return the whole arguments: of --inputs' function, or random ones with --args' shapes."""
    if program["inputs"] is None:
        random = np.random.default_rng(program["seed"])
        found = [Argument(a["dtype"], tuple(a["shape"])) for a in program["arguments"]]
        return [_random(random, one, devices) for one in found]
    make = import_function(program["inputs"])
    takes = inspect.signature(make).parameters.values()
    wanted = [p for p in takes if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    made = make(devices) if wanted else make()
    return list(made) if isinstance(made, tuple | list) else [made]


def _random(random: np.random.Generator, argument: Argument, devices: int) -> NDArray[Any]:
    shape, dtype = argument.sizes(devices), np.dtype(jax.numpy.dtype(argument.dtype))
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(0, INTEGERS_BELOW, shape).astype(dtype)
    values = random.standard_normal(shape)
    if dtype.kind == "c":
        return (values + 1j * random.standard_normal(shape)).astype(dtype)
    return values.astype(dtype)


def _axes(axes: Sequence[int | None], count: int) -> tuple[int | None, ...]:
    if len(axes) not in (1, count):
        raise ValueError(f"--in-axes has {len(axes)} axes for {count} arguments")
    return tuple(axes) if len(axes) == count else tuple(axes) * count


def _placed(
    impl: Implementation, cluster: Cluster, tree: Any, axis: int | None, name: str, donated: bool
) -> Any:
    """Return an argument as this process passes it: its rows of what is mapped.

    Donated arguments are placed on the map's devices, as an output of the same map would be.
    """
    if axis is None:
        return tree

    def one(leaf: Any) -> Any:
        rows = np.asarray(leaf)
        here = cluster.topology.devices_per_process
        if rows.ndim <= axis or rows.shape[axis] != cluster.topology.devices:
            raise ValueError(
                f"an input of shape {rows.shape} is mapped over axis {axis}, which must have one "
                f"row for each of the {cluster.topology.devices} devices"
            )
        own = np.take(rows, range(cluster.first_row, cluster.first_row + here), axis)
        if impl.is_pmap:
            return own
        return jax.make_array_from_process_local_data(impl.sharding(name, axis=axis), own)

    own = jax.tree.map(one, tree)
    if donated and impl.is_pmap:
        return impl.map(lambda x: x, name, in_axes=(axis,), out_axes=axis)(own)
    return own


def _three_calls(cluster: Cluster, program: Program, maps: Maps) -> Any:
    result = None
    for number, name in enumerate(CALLS):
        arguments = program.make() if number == 0 else program.after(result)
        known = {id(one): one for one in executables()}  # kept, so that no id is given again
        traced, compiled = len(program.traced), len(compilations())
        result = cluster.step(name, program.function, *arguments)
        again = {"traced": len(program.traced) - traced, "compiled": len(compilations()) - compiled}
        cluster.note("again", again)
        fresh = [one for one in executables() if id(one) not in known]
        if len(fresh) >= again["compiled"]:  # else some are gone, and with them their collectives
            cluster.note("programs", [program_record(one) for one in reversed(fresh)])
        cluster.note("samples", [_sample(one) for one in jax.tree.leaves(result)])
        if program.donated:
            cluster.note("donated deleted", _deleted(arguments, program.donated))
        if number == 0:
            cluster.note("maps", sorted(maps.kinds))
            cluster.note("axes", sorted(maps.axes))
    return result


def _sample(leaf: Any) -> dict[str, Any] | None:
    """Return values of this process's shards at even distances, for an array too large to record.

    `local_shape` is that of the rows that the process holds: all shards along the sharded axes.
    """
    if not isinstance(leaf, jax.Array) or leaf.size <= MOST_ELEMENTS or leaf.is_deleted():
        return None
    shards = sorted(leaf.addressable_shards, key=lambda s: [part.start or 0 for part in s.index])
    once = {str(s.index): s for s in shards}.values()  # of what is replicated one copy
    flat = np.concatenate([np.asarray(s.data).reshape(-1) for s in once])
    spans = [
        [part.indices(size)[:2] for part, size in zip(s.index, leaf.shape, strict=True)]
        for s in once
    ]
    ends = zip(*spans, strict=True)
    shape = [max(b for _, b in axis) - min(a for a, _ in axis) for axis in ends]
    values = to_json(flat[:: max(1, flat.size // SAMPLED)][:SAMPLED])
    return {"values": values, "local_shape": shape}


def _deleted(arguments: Sequence[Any], donated: Sequence[int]) -> list[bool]:
    leaves = jax.tree.leaves([arguments[n] for n in donated if n < len(arguments)])
    return [bool(one.is_deleted()) for one in leaves if isinstance(one, jax.Array)]


def _timed(cluster: Cluster, program: Program, result: Any, count: int) -> Any:
    """Note the seconds of each of `count` further calls, without placing their arguments."""
    taken = []
    for _ in range(count):
        arguments = jax.block_until_ready(program.after(result))
        began = time.perf_counter()
        result = jax.block_until_ready(program.function(*arguments))
        taken.append(time.perf_counter() - began)
    cluster.step(TIMED, lambda: None)
    cluster.note(SECONDS, taken)
    return result


def _later(cluster: Cluster, result: Any) -> None:
    """Observe what later operations do with the result: their placement and communication."""
    leaves = [one for one in jax.tree.leaves(result) if isinstance(one, jax.Array)]
    rows = [one for one in leaves if one.ndim]
    for name, some, operation in (
        (PLUS_ONE, leaves, lambda one: one + 1),
        (FIRST_ROW, rows, lambda one: one[0]),
    ):
        if some:
            done = cluster.compiled(name, _each, operation, some)
            if done is not None:
                cluster.note("samples", [_sample(one) for one in done.result])
    if leaves:
        cluster.step(FETCH, lambda: [np.asarray(one) for one in leaves])


def _each(operation: Callable[[Any], Any], some: Sequence[Any]) -> list[Any]:
    return [operation(one) for one in some]


def _returned(cluster: Cluster) -> bool:
    return all(one["outcome"] == "returned" for one in cluster.steps)


@dataclass
class Maps:
    """The maps that a function makes: their kinds, and words for their axes.

    What is made is kept: a compiled program ends with the function that it was compiled for, and
    with it what is known of its collectives.
    """

    kinds: set[str] = field(default_factory=set)
    axes: set[str] = field(default_factory=set)
    kept: list[Any] = field(default_factory=list)


def _noted_maps() -> Maps:
    """Return what notes all maps and jitted functions that are made from now on."""
    maps = Maps()

    def noted_pmap(made: Any, options: Mapping[str, Any]) -> None:
        maps.kinds.add(wrapper_kind(made))
        axes = jax.tree.leaves([options.get("in_axes"), options.get("out_axes")])
        if any(isinstance(one, int) and one < 0 for one in axes):
            maps.axes.add(NEGATIVE)

    _keep(maps, "pmap", noted_pmap)
    _keep(maps, "jit", lambda made, options: None)
    return maps


def _keep(maps: Maps, name: str, noted: Callable[[Any, Mapping[str, Any]], None]) -> None:
    original = getattr(jax, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def making(*args: Any, **options: Any) -> Any:
        made = original(*args, **options)
        maps.kept.append((args, made))
        noted(made, options)
        return made

    setattr(jax, name, making)
