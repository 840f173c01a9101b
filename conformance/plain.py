"""Run one clause by hand: in a Python session or a script, without pytest and without the harness.

    from conformance import plain

    plain.run("rank.argmax.no-axis.1d", "new_pmap")

prints what each step of the clause's program returned or raised. `start` gives what a program is
given, to try something else with:

    impl, cluster = plain.start("shard_map", "1x4")
    print(impl.map(lambda x: 2 * x)(cluster.rows(3)))

A process joins one topology and keeps it. A topology of several processes is as many scripts, each
started with its own number: `PROCESS=0 python mine.py & PROCESS=1 python mine.py`.
"""

from __future__ import annotations

import os

import jax

from conformance.catalogue.loading import load
from conformance.catalogue.spelling import did_you_mean
from conformance.spec.clause import Clause
from conformance.spec.names import COLUMNS, JAX, NEW_PMAP
from conformance.spec.topology import Topology
from conformance.worker.plain import PlainCluster, PlainImplementation

VARIABLE = "PROCESS"  # the environment variable with a process's number
COORDINATOR = "localhost:12357"  # where process 0 of several is found by default

_joined: dict[str, Topology] = {}  # at most one: JAX cannot change its devices


def run(
    id: str,
    implementation: str = NEW_PMAP,
    topology: str | None = None,
    *,
    process: int | None = None,
    coordinator: str = COORDINATOR,
) -> None:
    """Run the program of clause `id` under one implementation, and print what its steps did.

    `topology` is processes x devices of each, as in "2x2"; by default the clause's first.
    `process` is this process's number, by default that of the environment variable PROCESS, or 0.
    ValueError where there is no such clause, implementation or topology; RuntimeError where JAX has
    other devices already.
    """
    clause = _named(id)
    if JAX in clause.expect:
        implementation = JAX
    where = topology or clause.topologies[0]
    impl, cluster = start(implementation, where, process=process, coordinator=coordinator)
    unmet = clause.needs.unmet(Topology.parse(where))
    if unmet:
        raise ValueError(f"{id} cannot run on {where}: {unmet}")
    clause.probe(impl, cluster, **clause.rows)


def start(
    implementation: str = NEW_PMAP,
    topology: str = "1x8",
    *,
    process: int | None = None,
    coordinator: str = COORDINATOR,
) -> tuple[PlainImplementation, PlainCluster]:
    """Join a topology of CPU devices, and return the `impl` and `cluster` that a probe is given.

    The arguments, and what is raised, are those of `run`.
    """
    if implementation not in COLUMNS:
        close = did_you_mean(implementation, COLUMNS) or f"; there are {', '.join(COLUMNS)}"
        raise ValueError(f"no implementation is called {implementation}{close}")
    asked = Topology.parse(topology)
    number = int(os.environ.get(VARIABLE, "0")) if process is None else process
    if not 0 <= number < asked.processes:
        raise ValueError(f"process {number} is none of {asked}: give 0 to {asked.processes - 1}")
    _join(asked, number, coordinator)
    return PlainImplementation(implementation), PlainCluster(asked, number)


def _named(id: str) -> Clause:
    clauses = load().clauses
    if id not in clauses:
        raise ValueError(f"no clause is called {id}{did_you_mean(id, clauses)}")
    return clauses[id]


def _join(topology: Topology, process: int, coordinator: str) -> None:
    before = _joined.get("topology")
    if before is None:
        _configure(topology, process, coordinator)
    elif before != topology:
        raise RuntimeError(
            f"this process is one of a {before} already: run a {topology} in another process"
        )
    _joined["topology"] = topology


def _configure(topology: Topology, process: int, coordinator: str) -> None:
    try:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", topology.devices_per_process)
        if topology.processes > 1:
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            jax.distributed.initialize(coordinator, topology.processes, process)
    except RuntimeError as error:
        raise RuntimeError(
            f"JAX cannot become a {topology} any more ({error}): start a new Python, and call "
            "conformance.plain before anything that computes"
        ) from error
    have = jax.local_device_count()
    if have != topology.devices_per_process:
        raise RuntimeError(
            f"JAX has {have} devices here, and {topology} asks for {topology.devices_per_process}: "
            "start a new Python without XLA_FLAGS that count devices"
        )
