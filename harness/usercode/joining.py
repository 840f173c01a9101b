"""Set the environment variables by which `jax.distributed.initialize()` finds its arguments.

JAX reads the coordinator's address from a variable of its own. It has none for the number of
processes and the index of a process: those it takes from the variables of a cluster that it
detects. Only Open MPI's need neither a package nor a scheduler; JAX 0.7.2 to 0.12.0.1 read them
alike. JAX_NUM_PROCESSES and JAX_PROCESS_ID are for scripts that pass the arguments themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.spec.names import CPU
from conformance.spec.topology import Topology
from harness.targets.platforms import Platform

_DEVICE_COUNT_FLAG = "--xla_force_host_platform_device_count"
_OF_ANOTHER_PYTHON = ("PYTHONHOME", "__PYVENV_LAUNCHER__")


def process_variables(
    base: Mapping[str, str],
    topology: Topology,
    process: int,
    coordinator: str,
    platform: Platform,
    devices: Mapping[str, str],
    local_rank: int | None = None,
) -> dict[str, str]:
    """Return the environment of one process: `base`, its place in the job, and its devices.

    `coordinator` is HOST:PORT; `devices` are the variables that give the process its own.
    `local_rank` is its index on its host, where that is not `process`.
    """
    kept = {name: value for name, value in base.items() if name not in _OF_ANOTHER_PYTHON}
    if "XLA_FLAGS" in kept:  # JAX refuses two ways to say how many CPU devices there are
        flags = kept["XLA_FLAGS"].split()
        kept["XLA_FLAGS"] = " ".join(f for f in flags if not f.startswith(_DEVICE_COUNT_FLAG))
    number = str(process)
    local = ",".join(map(str, range(topology.devices_per_process)))
    own = {} if platform.name == CPU else {"JAX_LOCAL_DEVICE_IDS": local}
    count = {"JAX_NUM_CPU_DEVICES": str(topology.devices_per_process)}
    return {
        **kept,
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "JAX_PLATFORMS": platform.backend,
        **(count if platform.backend == CPU else {}),
        **platform.variables,
        **devices,
        **own,
        "JAX_COORDINATOR_ADDRESS": coordinator,
        "JAX_COORDINATOR_BIND_ADDRESS": coordinator,  # by default it listens on every interface
        "JAX_NUM_PROCESSES": str(topology.processes),
        "JAX_PROCESS_ID": number,
        "OMPI_MCA_orte_hnp_uri": f"0.0;tcp://{coordinator}",
        "OMPI_COMM_WORLD_SIZE": str(topology.processes),
        "OMPI_COMM_WORLD_RANK": number,
        "OMPI_COMM_WORLD_LOCAL_RANK": str(process if local_rank is None else local_rank),
    }
