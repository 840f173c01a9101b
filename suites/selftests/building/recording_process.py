"""Runs a few lines beside a recording cluster, on a real JAX in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

from processes import HANGS_S

PREAMBLE = """
import json, jax, numpy as np, jax.numpy as jnp, warnings, logging
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
from conformance.worker.implementations import WitnessedImplementation, available
from conformance.worker.recording import RecordingCluster, observe
from conformance.spec.topology import Topology
P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding
impl, cluster = WitnessedImplementation("new_pmap"), RecordingCluster(Topology(1, 8), 0)
"""


# No backend is initialised, and no option of XLA's is read.
BARE = """
import json, os, jax, numpy as np
jax.config.update("jax_platforms", "cpu")
"""


def run(program: str, preamble: str = PREAMBLE) -> Any:
    """The JSON that `program` assigns to `told`, run after the preamble."""
    code = preamble + textwrap.dedent(program) + "\nprint('told', json.dumps(told))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.rsplit("told ", 1)[1])
