"""Compile for TPU what JAX compiles here, without a TPU. Runs in a worker of that tier.

The probe's steps run on CPU devices: JAX's Python code, which decides what is compiled, is the same
on every platform. Each program is then lowered a second time, for TPU, and libtpu compiles it for
chips in place of those devices. Nothing runs there, so no values are known.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from conformance.spec import hlo
from conformance.spec.topology import Topology
from conformance.worker import programs
from conformance.worker.compiling import compilations, compiled_as_by_default

VARIABLE = "CONFORMANCE_COMPILES_FOR"  # the topology, as a worker of this tier is told it
GENERATION = "v5e"
PLATFORM = "tpu"

# How the chips of one host lie, by their number. More than eight are of no real host.
HOSTS: Mapping[int, tuple[int, int]] = {1: (1, 1), 2: (1, 2), 4: (2, 2), 8: (2, 4)}
LONGEST = 16  # chips along a side: beyond it the compiler does not refuse, it aborts
MOST_SAID = 300  # characters of an error
SIZE = "_size_in_bytes"  # how the runtime's counts of memory are called


class NoChipsError(RuntimeError):
    """There are no such chips, or there is no compiler for them."""


class Program:
    """A program for absent chips, with the interface of the runtime's executables."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def hlo_modules(self) -> list[Any]:
        """Return its modules after compilation."""
        return list(self._compiled.hlo_modules())

    def get_compiled_memory_stats(self) -> SimpleNamespace:
        """Return bytes on one chip; aliased bytes are without padding, which the compiler's count
        includes.
        """
        stats = self._compiled.get_compiled_memory_stats()
        said = {name: getattr(stats, name) for name in dir(stats) if name.endswith(SIZE)}
        aliased = sum(hlo.aliased(module.to_string()) for module in self.hlo_modules())
        return SimpleNamespace(**{**said, f"alias{SIZE}": aliased})


class Elsewhere:
    """`programs` compiled for the chips since the case began, newest first.

    `failed` names those that could not be compiled; `differing` those that would place a result
    elsewhere than the program that ran.
    """

    def __init__(self, chips: Sequence[Any]) -> None:
        self.chips = list(chips)
        self.programs: list[Program] = []
        self.failed: list[str] = []
        self.differing: list[str] = []

    def begin(self) -> None:
        """Forget the previous case."""
        self.programs.clear()
        self.failed.clear()
        self.differing.clear()

    def record(self) -> dict[str, Any]:
        """Return the record that becomes part of an observation."""
        return {
            "chip": self.chips[0].device_kind,
            "chips": len(self.chips),
            "libtpu": metadata.version("libtpu"),
            "programs": len(self.programs),
            "failed": list(self.failed),
            "differing": list(self.differing),
        }

    def instead_of(self, devices: Sequence[Any]) -> list[Any]:
        """Return the chips in place of these devices of the cluster."""
        at = {device: i for i, device in enumerate(jax.devices())}
        return [self.chips[at[device]] for device in devices]

    def placed(self, sharding: Any) -> Any:
        """Return a sharding on the chips for one of a mesh on these devices; others are unchanged.

        Chips of processes other than the first have no default memory, which JAX compares.
        """
        mesh = getattr(sharding, "mesh", None)
        if not isinstance(mesh, jax.sharding.Mesh):
            return sharding
        chips = np.array(self.instead_of(list(mesh.devices.flat)), dtype=object)
        there = jax.sharding.Mesh(
            chips.reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types
        )
        return jax.sharding.NamedSharding(there, sharding.spec)

    def take(self, name: str, compiling: Callable[[], tuple[Any, str]]) -> None:
        """Keep a program; `compiling` returns it and how it differs from the one that ran."""
        try:
            with _unnoticed(), compiled_as_by_default():
                program, difference = compiling()
        except Exception as error:
            text = " ".join(str(error).split())[:MOST_SAID]
            self.failed.append(f"{name}: {type(error).__name__}: {text}")
            return
        self.programs.insert(0, Program(program))
        if difference:
            self.differing.append(f"{name}: {difference}")


@functools.cache
def elsewhere() -> Elsewhere | None:
    """Return this process's instance if it is of the tier; from then on programs are compiled
    twice.
    """
    topology = os.environ.get(VARIABLE)
    if not topology:
        return None
    there = Elsewhere(chips_of(Topology.parse(topology)))
    _watch(there)
    programs.instead.append(lambda: list(there.programs))
    return there


def chips_of(topology: Topology) -> list[Any]:
    """Return the chips of a slice with that many hosts and chips each; NoChipsError if none
    exists.
    """
    name, host = slice_of(topology)
    return described(name, chips_per_host_bounds=(*host, 1))


def described(name: str, **options: Any) -> list[Any]:
    """Return the chips of a slice by its name, as libtpu describes them; NoChipsError if it
    fails.
    """
    from jax.experimental import topologies

    try:
        return list(topologies.get_topology_desc(name, platform=PLATFORM, **options).devices)
    except Exception as error:  # of libtpu, which has no type of its own
        raise NoChipsError(
            f"libtpu describes no slice {name}: {str(error).rstrip('.')}. It is what jax[tpu] "
            "installs, and --platform tpu-compile with it"
        ) from error


def slice_of(topology: Topology) -> tuple[str, tuple[int, int]]:
    """Return the slice's name (`v5e:16x16`) and the layout of a host's chips in it, nearly square.

    NoChipsError if no slice has as many chips per host, or as many hosts.
    """
    per_host = topology.devices_per_process
    if topology.processes == 1 and per_host not in HOSTS:
        host = _squarest(per_host)
    elif per_host in HOSTS:
        host = HOSTS[per_host]
    else:
        raise NoChipsError(
            f"no host of several has {per_host} chips of TPU {GENERATION}: choose a --topology "
            f"with {', '.join(map(str, HOSTS))} devices per process"
        )
    whole = _squarest(topology.processes, host)
    if max(whole) > LONGEST:
        raise NoChipsError(
            f"a slice of TPU {GENERATION} has at most {LONGEST}x{LONGEST} chips, and {topology} "
            f"asks for {topology.devices}: choose a smaller --topology"
        )
    return f"{GENERATION}:{whole[0]}x{whole[1]}", host


def _squarest(count: int, part: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    """Return `count` parts as the most nearly square rectangle, wider than high."""
    every = ((part[0] * n, part[1] * count // n) for n in range(1, count + 1) if count % n == 0)
    return min(every, key=lambda one: (max(one) / min(one), one))


def _watch(there: Elsewhere) -> None:
    """Compile for the other platform whatever is compiled here from now on."""
    from jax._src.interpreters import pxla

    pxla.lower_sharding_computation = _lowering_of_jit(pxla, there)
    if hasattr(pxla, "lower_parallel_callable"):  # legacy pmap's, to 0.9.2
        pxla.lower_parallel_callable = _lowering_of_pmap(pxla, there)


def _lowering_of_jit(pxla: Any, there: Elsewhere) -> Callable[..., Any]:
    lower = pxla.lower_sharding_computation

    def compiling(own: Any, args: Any, options: Any) -> tuple[Any, str]:
        other = lower(*args, **{**options, "lowering_platforms": (PLATFORM,)})
        chips = there.instead_of(other._device_list)
        settings = other.compile_args | {
            "backend": chips[0].client,
            "out_shardings": [there.placed(s) for s in other.compile_args["out_shardings"]],
        }
        executable = pxla.UnloadedMeshExecutable.from_hlo(
            other._name,
            other._hlo,
            **settings,
            compiler_options_kvs=other._compiler_options_kvs,
            device_list=pxla._create_device_list(tuple(chips)),
        )
        shapes = other.compile_args["global_out_avals"]
        difference = _difference(own._out_shardings, executable._out_shardings, shapes)
        return executable.xla_executable, difference

    return _both(lower, there, compiling)


def _lowering_of_pmap(pxla: Any, there: Elsewhere) -> Callable[..., Any]:
    from jax._src import compiler

    lower = pxla.lower_parallel_callable

    def compiling(own: Any, args: Any, options: Any) -> tuple[Any, str]:
        other = lower(*args, **{**options, "lowering_platforms": (PLATFORM,)})
        chips = there.instead_of(own.xla_executable.local_devices())
        if len(chips) < other.compile_args["replicas"].num_global_replicas:
            chips = there.chips  # of all processes
        listed = pxla._create_device_list(tuple(chips))
        settings = compiler.get_compile_options(
            num_replicas=len(chips),
            num_partitions=1,
            device_assignment=np.array(chips, dtype=object).reshape(-1, 1),
            use_spmd_partitioning=False,
            backend=chips[0].client,
        )
        settings.parameter_is_tupled_arguments = other.compile_args["tuple_args"]
        program = compiler.compile_or_get_cached(
            chips[0].client, other._hlo, np.array(chips, dtype=object), settings, [], listed, None
        )
        return program, ""  # where its results lie is said by the map, not by the compiler

    return _both(lower, there, compiling)


def _both(
    lower: Callable[..., Any],
    there: Elsewhere,
    compiling: Callable[[Any, Any, Any], tuple[Any, str]],
) -> Callable[..., Any]:
    """Wrap `lower` so that its result also compiles `there` when it is first compiled."""

    @functools.wraps(lower)
    def lowered(*args: Any, **options: Any) -> Any:
        own = lower(*args, **options)
        if options.get("lowering_platforms"):
            return own  # the second time, or an export
        compile_here = own.compile
        name = getattr(own, "_name", "pmap")
        done: list[Any] = []

        def compiled(*args_of: Any, **options_of: Any) -> Any:
            executable = compile_here(*args_of, **options_of)
            if executable not in done:
                done.append(executable)
                there.take(name, lambda: compiling(executable, args, options))
            return executable

        own.compile = compiled
        return own

    return lowered


def _difference(own: Sequence[Any], other: Sequence[Any], shapes: Sequence[Any]) -> str:
    """Return the first result that would be placed elsewhere; empty if none would."""
    from jax._src.op_shardings import are_hlo_shardings_equal

    for at, (a, b, shape) in enumerate(zip(own, other, shapes, strict=True)):
        ranked = [one._to_xla_hlo_sharding(shape.ndim) for one in (a, b)]
        if not are_hlo_shardings_equal(*ranked):
            return f"result {at} lies as {ranked[1]} on TPU, as {ranked[0]} where it ran"
    return ""


@contextmanager
def _unnoticed() -> Iterator[None]:
    """Hide work from the probe: not profiled, counted, warned of or logged."""
    profile, counted = sys.getprofile(), len(compilations())
    disabled = logging.root.manager.disable
    sys.setprofile(None)
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        del compilations()[counted:]
        logging.disable(disabled)
        sys.setprofile(profile)
