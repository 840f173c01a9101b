"""What a process prints besides its program, and how many devices it says that there are."""

from __future__ import annotations

import numpy as np

from conformance.sections.multi_controller.fates import OF_A_JOB
from conformance.sections.multi_controller.plain_jobs import (
    DEADLINE_S,
    DEVICES,
    IMPORTS,
    JOB,
    ONE,
    answers,
    run_text,
)
from conformance.spec.clause import clause
from conformance.spec.columns import of_jax
from conformance.spec.expectation import in_steps, returns
from conformance.spec.topology import Topology
from conformance.worker.protocols import Cluster, Implementation

# What the libraries print goes to the descriptor, past Python's own standard output.
REDIRECTED = """
import os, tempfile
shown, kept = os.dup(1), tempfile.TemporaryFile()
os.dup2(kept.fileno(), 1)
"""
COUNTED = """
os.dup2(shown, 1)
kept.seek(0)
print(json.dumps([len(kept.read().splitlines())]))
"""
SUMMED = """
mesh = jax.make_mesh((jax.device_count(),), ("a",))
rows = jax.make_array_from_process_local_data(
    NamedSharding(mesh, P("a")), np.ones(jax.local_device_count(), np.float32)
)
jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, P()))(rows).block_until_ready()
"""


@clause(
    "multi_controller.printing.first-collective",
    claim="pmap-silence.nothing-else-is-printed",
    left_out=OF_A_JOB,
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=of_jax(
        in_steps(returns(lambda place: [np.array([0])] * 2, text="no line of each process"), JOB)
    ),
)
def first_collective(impl: Implementation, cluster: Cluster) -> None:
    """Two processes that sum over their devices print nothing on their standard output."""
    program = (
        f"{IMPORTS}{REDIRECTED}jax.distributed.initialize(*sys.argv[1:2], *map(int, sys.argv[2:]))"
        f"{SUMMED}{COUNTED}"
    )
    cluster.step(JOB, lambda: answers(run_text(program, Topology(2, 1))))


# As the known issue's page has it: what is written to the standard output's descriptor goes to the
# standard error, except by Python.
KEPT_APART = """
keep = os.dup(1); os.dup2(2, 1); sys.stdout = os.fdopen(keep, "w", buffering=1)
"""
SAID = """
print("said")
sys.stdout = sys.__stdout__
"""


@clause(
    "multi_controller.printing.to-standard-error",
    claim="pmap-silence.nothing-else-is-printed",
    title="With the standard output's descriptor on the standard error, a process's standard "
    "output is what Python prints.",
    fixes="multi_controller.printing.first-collective",
    left_out=OF_A_JOB,
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=of_jax(
        in_steps(
            returns(lambda place: [np.array([1])] * 2, text="the one line of each process"), JOB
        )
    ),
)
def to_standard_error(impl: Implementation, cluster: Cluster) -> None:
    """Two processes that sum over their devices and print a line."""
    program = (
        f"{IMPORTS}{REDIRECTED}{KEPT_APART}"
        "jax.distributed.initialize(*sys.argv[1:2], *map(int, sys.argv[2:]))"
        f"{SUMMED}{SAID}{COUNTED}"
    )
    cluster.step(JOB, lambda: answers(run_text(program, Topology(2, 1))))


LATE = f"""{IMPORTS}
counts = [jax.device_count()]
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
counts.append(jax.device_count())
try:
    jax.config.update("jax_num_cpu_devices", 8)
except RuntimeError as error:
    counts.append(int("before backends are initialized" in str(error)))
counts.append(jax.device_count())
print(json.dumps(counts))
"""


@clause(
    "multi_controller.device-count.set-late",
    claim="pmap-silence.device-count-is-fixed",
    left_out=OF_A_JOB,
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=of_jax(
        in_steps(
            returns(
                lambda place: [np.array([DEVICES, DEVICES, 1, DEVICES])],
                text="the number of devices as it was, and an error that says so",
            ),
            JOB,
        )
    ),
)
def set_late(impl: Implementation, cluster: Cluster) -> None:
    """A program that sets XLA_FLAGS and jax_num_cpu_devices after it counted its devices."""
    cluster.step(JOB, lambda: answers(run_text(LATE, ONE)))
