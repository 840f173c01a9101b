"""Programs that run as jobs of their own, started by a launcher or by hand, and what they tell."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.spec.comparing import Model
from conformance.spec.expectation import in_steps, returns
from conformance.spec.expected import Expectation
from conformance.spec.topology import Place, Topology
from conformance.worker import job_server
from conformance.worker.jobs import Ended, Job, run_job
from conformance.worker.launchers import plain_environment

JOB = "the job"  # the one step
JOB_S = 150.0  # for all its processes: each imports jax, on a loaded machine
DEADLINE_S = 240.0  # of a case, in which Slurm is started and ended too
DEVICES = 2  # of each process
ON_CPU = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": f"{DEVICES}"}
ONE = Topology(1, DEVICES)

# Printed by each process: which of how many it is, how many devices there are, which of them are
# its own, and the sum over all of them of 1, 2, 3 and so on, one to a device.
SAY = """
mesh = jax.make_mesh((jax.device_count(),), ("a",))
spread, everywhere = (NamedSharding(mesh, P(*axes)) for axes in (("a",), ()))
own = [jax.devices().index(device) for device in jax.local_devices()]
rows = np.array(own, np.float32) + 1
array = jax.make_array_from_process_local_data(spread, rows, (jax.device_count(),))
total = jax.jit(jnp.sum, out_shardings=everywhere)(array)
said = [jax.process_index(), jax.process_count(), jax.device_count(), *own, int(total)]
print(json.dumps(said))
"""

IMPORTS = """\
import json, os, sys
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
"""

INITIALIZED = f"{IMPORTS}\njax.distributed.initialize()\n{SAY}"
NOT_INITIALIZED = f"{IMPORTS}{SAY}"


class JobError(RuntimeError):
    """A process of the job did not end well; the text is how, and the last error that it said."""


def answers(ended: Sequence[Ended]) -> list[Any]:
    """Return what each process printed last, by rank; JobError if one failed or printed no JSON.

    Libraries print lines of their own before it, such as Gloo or a device's plug-in.
    """
    for rank, one in enumerate(ended):
        if one.status != 0:
            last = one.err.rpartition("Traceback (most recent call last)")[2]
            error = re.search(r"(?ms)^[\w.]*(?:Error|Exception): .*", last)
            raise JobError(f"process {rank}: {one.end}: {error[0].strip() if error else ''}")
    return [_printed(rank, one.out) for rank, one in enumerate(ended)]


def _printed(rank: int, out: str) -> Any:
    try:
        return np.array(json.loads(out.strip().splitlines()[-1]))
    except (IndexError, json.JSONDecodeError):
        raise JobError(f"process {rank} printed no answer: {out!r}") from None


def joined(processes: int) -> Model:
    """Return the model of a joined job: per process its index, all devices, its own, and the sum
    over all.
    """

    def model(place: Place) -> Any:
        devices = processes * DEVICES
        total = devices * (devices + 1) // 2
        return [
            np.array([n, processes, devices, *(n * DEVICES + d for d in range(DEVICES)), total])
            for n in range(processes)
        ]

    return model


def alone(processes: int) -> Model:
    """Return the model of processes that are no job: each alone, with the sum over its own
    devices.
    """
    return lambda place: [np.array([0, 1, DEVICES, *range(DEVICES), 3])] * processes


def one_job(processes: int) -> Expectation:
    """The processes are one job."""
    said = f"{processes} processes in one job, each with its devices and the sum over all"
    mistakes = {"each process by itself": alone(processes)}
    return in_steps(returns(joined(processes), text=said, mistakes=mistakes), JOB)


def apart(processes: int) -> Expectation:
    """Each process is by itself."""
    said = f"{processes} processes, each by itself, with the sum over its own devices"
    mistakes = {"one job": joined(processes)}
    return in_steps(returns(alone(processes), text=said, mistakes=mistakes), JOB)


def run_text(
    text: str,
    job: Topology,
    *,
    quiet_s: float | None = None,
    alone: bool = False,
    imported: bool = True,
    **variables: str,
) -> list[Ended]:
    """Run a program's text as a job whose processes know their place from environment variables
    only.

    `imported` forks its processes after `import jax`; a program that sets what the import reads
    needs Pythons of its own. `quiet_s` and `alone` as in `Job`.
    """
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        program = Path(folder, "program.py")
        program.write_text(text, encoding="utf-8")
        return (job_server.run if imported else run_job)(
            Job(
                str(program),
                job.processes,
                job.devices_per_process,
                plain_environment(os.environ) | ON_CPU | variables,
                JOB_S,
                quiet_s,
                alone,
            )
        )
