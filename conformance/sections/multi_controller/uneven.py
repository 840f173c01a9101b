"""A job whose processes have two devices and one: what JAX does with counts that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.sections.multi_controller.fates import (
    BEGIN,
    COMPUTE,
    DEADLINE_S,
    OF_A_JOB,
    SHORT_S,
    prints_lines,
    run,
)
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every
from conformance.spec.family import family, table
from conformance.worker.protocols import Cluster, Implementation

# Before jax is imported: process 0 has two devices, process 1 has one.
UNEVEN = """
import os, sys

os.environ["JAX_NUM_CPU_DEVICES"] = f"{2 - int(sys.argv[3])}"
"""
ROWS = """
own = np.arange(1, 1 + jax.local_device_count(), dtype=np.float32) + 2 * number


def shards(array):
    return [np.asarray(shard.data).tolist() for shard in array.addressable_shards]


def psum(x):
    return jax.lax.psum(x, "i")
"""
NO_SHAPE = (
    "ValueError Unable to compute global_shape due to non-uniform sharding. Specify global shape "
    "directly. Partially computed global_shape=(None,)."
)


@dataclass(frozen=True, slots=True)
class Use:
    """A program's `code`, and the output `said` that each process must print."""

    key: str
    title: str
    claim: str
    code: str
    said: tuple[str, str]


MADE = "pmap-silence.uneven-process-rows"
USES: Mapping[str, Use] = table(
    Use(
        "devices",
        "All processes list all three devices, and each its local ones.",
        "multi-process.devices-local-and-global",
        "[jax.device_count(), jax.local_device_count()]",
        ("[3, 2]", "[3, 1]"),
    ),
    Use(
        "process-local-data",
        "An array is made from the processes' own rows: JAX asks for the global shape.",
        MADE,
        'shards(jax.make_array_from_process_local_data(spread("a"), own))',
        (NO_SHAPE, NO_SHAPE),
    ),
    Use(
        "process-local-data-with-shape",
        "An array is made from the processes' own rows and the global shape, as the error asks.",
        MADE,
        'shards(jax.make_array_from_process_local_data(spread("a"), own, (3,)))',
        ("[[1.0], [2.0]]", "[[3.0]]"),
    ),
    Use(
        "pmap",
        "A pmap of each process's own rows is refused by an assertion without a message.",
        "pmap-silence.uneven-process-devices",
        'np.asarray(jax.pmap(psum, axis_name="i")(own)).tolist()',
        ("AssertionError", "AssertionError"),
    ),
    Use(
        "shard-map",
        "A shard_map over all three devices spans them all.",
        "pmap-silence.uneven-process-devices",
        """shards(jax.jit(jax.shard_map(
    lambda x: jax.lax.psum(x, "a"), mesh=mesh,
    in_specs=jax.sharding.PartitionSpec("a"), out_specs=jax.sharding.PartitionSpec(),
))(x))""",
        ("[[6.0], [6.0]]", "[[6.0]]"),
    ),
)


@family(
    "multi_controller.uneven.{use}",
    use=USES,
    title="Two devices in one process and one in the other: {use.title}",
    left_out=OF_A_JOB,
    on_cpu=True,
    expect=lambda use: of_jax(
        every(*(prints_lines(n, "sum 6.0", f"got {said}") for n, said in enumerate(use.said)))
    ),
    deadline_s=DEADLINE_S,
)
def uneven(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """Processes with other counts of devices make one job.

    The map is `jax.pmap` as the version has it: none of them comes so far as to trace.
    """
    program = UNEVEN + BEGIN + COMPUTE + ROWS + f'attempt("got", lambda: {use.code})\n'
    run(cluster, program, quiet_s=SHORT_S, imported=False)
