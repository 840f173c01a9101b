"""How the processes of a job are launched, and what `jax.distributed.initialize()` finds by itself.

Each program runs as a job of its own, on one machine, with two CPU devices in each process. Under
Open MPI and Slurm the job is really launched; of Cloud TPU and Kubernetes it is the variables and
answers that JAX reads there, as `left_out` says.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from conformance.catalogue.clause import clause
from conformance.catalogue.family import family, table
from conformance.catalogue.topology import ONE_PROCESS, Place, Topology
from conformance.judging.columns import of_jax
from conformance.judging.expectation import Expectation, Model, in_steps, raises, returns
from conformance.probing.jobs import Ended, run_job
from conformance.probing.launchers import OPEN_MPI, SLURM, Launcher, launched, plain_environment

JOB = "the job"  # the one step
JOB_S = 150.0  # for all its processes: each imports jax, on a loaded machine
DEADLINE_S = 240.0  # of a case, in which Slurm is started and ended too
DEVICES = 2  # of each process
ON_CPU = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": f"{DEVICES}"}
ONE_MACHINE = "all processes of the job run on one machine"

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
    """What each process printed, by its rank; JobError where one of them ended otherwise."""
    for rank, one in enumerate(ended):
        if one.status != 0:
            errors = re.findall(r"(?ms)^[\w.]*(?:Error|Exception): .*", one.err)
            raise JobError(f"process {rank}: {one.end}: {errors[-1].strip() if errors else ''}")
    return [np.array(json.loads(one.out)) for one in ended]


def joined(processes: int) -> Model:
    """Of each process: itself, all devices, its own of them, and the sum over all."""

    def model(place: Place) -> Any:
        devices = processes * DEVICES
        total = devices * (devices + 1) // 2
        return [
            np.array([n, processes, devices, *(n * DEVICES + d for d in range(DEVICES)), total])
            for n in range(processes)
        ]

    return model


def alone(processes: int) -> Model:
    """Of each process: that it is the only one, with the sum over its own devices."""
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


# --- Launchers ------------------------------------------------------------------------------------


LAUNCHERS: Mapping[str, Launcher] = table(OPEN_MPI, SLURM)
SIZES: Mapping[str, int] = {"two": 2, "four": 4}
CLAIMS = {"open-mpi": "multi-process.launch-then-initialize", "slurm": "multi-process.launch-slurm"}


@family(
    "multi_controller.launch.{launcher}.{size}",
    launcher=LAUNCHERS,
    size=SIZES,
    claim=lambda launcher: CLAIMS[launcher.key],
    title=lambda launcher, size: (
        f"{size} processes started by {launcher.text} are one job: initialize() has no arguments."
    ),
    fact="multi_controller.launch.{launcher}",
    topologies=ONE_PROCESS,
    left_out=ONE_MACHINE,
    deadline_s=DEADLINE_S,
    programs=lambda launcher: launcher.programs,
    expect=lambda size: of_jax(one_job(size)),
)
def launch(impl: Any, cluster: Any, launcher: Launcher, size: int) -> None:
    """A launcher starts a program that calls `jax.distributed.initialize()` without arguments."""
    cluster.step(
        JOB, lambda: answers(launched(launcher, INITIALIZED, size, ON_CPU, deadline_s=JOB_S))
    )


@family(
    "multi_controller.launch.{launcher}.not-initialized",
    launcher=LAUNCHERS,
    claim="multi-process.launch-then-initialize",
    title="Two processes started by {launcher.text} that do not initialize are no job.",
    fact="multi_controller.launch.not-initialized",
    topologies=ONE_PROCESS,
    left_out=ONE_MACHINE,
    deadline_s=DEADLINE_S,
    programs=lambda launcher: launcher.programs,
    expect=of_jax(apart(2)),
)
def not_initialized(impl: Any, cluster: Any, launcher: Launcher) -> None:
    """A launcher starts a program that never calls `jax.distributed.initialize()`."""
    cluster.step(
        JOB, lambda: answers(launched(launcher, NOT_INITIALIZED, 2, ON_CPU, deadline_s=JOB_S))
    )


def run_text(text: str, processes: int, **variables: str) -> list[Ended]:
    """Run a program's text as a job that nothing but the variables tells where it is."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        program = Path(folder, "program.py")
        program.write_text(text, encoding="utf-8")
        environment = plain_environment(os.environ) | ON_CPU | variables
        topology = Topology(processes, DEVICES)
        return run_job(Path(sys.executable), program, topology, environment, deadline_s=JOB_S)


@clause(
    "multi_controller.launch.by-hand.once",
    claim="multi-process.launch-is-manual",
    topologies=ONE_PROCESS,
    deadline_s=DEADLINE_S,
    expect=of_jax(apart(1)),
)
def once(impl: Any, cluster: Any) -> None:
    """A program that is started once is one process, which has its own devices alone."""
    cluster.step(JOB, lambda: answers(run_text(NOT_INITIALIZED, 1)))


@clause(
    "multi_controller.launch.by-hand.without-arguments",
    claim="multi-process.launch-is-manual",
    topologies=ONE_PROCESS,
    deadline_s=DEADLINE_S,
    expect=of_jax(
        in_steps(
            raises(
                JobError,
                r"process 0: exit 1: ValueError: coordinator_address should be defined\.$",
            ),
            JOB,
        )
    ),
)
def without_arguments(impl: Any, cluster: Any) -> None:
    """A program that no launcher started calls `initialize()` without arguments."""
    cluster.step(JOB, lambda: answers(run_text(INITIALIZED, 1)))


# --- Cloud TPU ------------------------------------------------------------------------------------

# The variables that a process finds in a TPU's pod. JAX's port for the coordinator is the same in
# all jobs: here it is a free one, so that jobs on one machine do not meet.
CLOUD_TPU = f"""\
import os, sys

address, processes, process = sys.argv[1:]
host, port = address.split(":")
slices = int(os.environ["SLICES"])
hosts = int(processes) // slices
os.environ |= {{
    "JAX_FORCE_TPU_INIT": "1",
    "TPU_WORKER_HOSTNAMES": ",".join([host] * hosts),
    "TPU_WORKER_ID": str(int(process) % hosts),
    "MEGASCALE_NUM_SLICES": str(slices),
    "MEGASCALE_SLICE_ID": str(int(process) // hosts),
    "MEGASCALE_COORDINATOR_ADDRESS": host if slices > 1 else "",
}}

{IMPORTS}
from jax._src.clusters import cloud_tpu_cluster

cloud_tpu_cluster.coordinator_port = port
jax.distributed.initialize()
{SAY}"""


@dataclass(frozen=True, slots=True)
class Slices:
    """How many slices of a TPU a job of `processes` has."""

    key: str
    text: str
    slices: int
    processes: int


SLICES: Mapping[str, Slices] = table(
    Slices("one-slice", "of a slice with two hosts", 1, 2),
    Slices("two-slices", "of two slices with two hosts each", 2, 4),
)


@family(
    "multi_controller.launch.cloud-tpu.{slices}",
    slices=SLICES,
    claim="multi-process.launch-cloud-tpu",
    title="Told by the variables {slices.text}, `initialize()` without arguments joins them.",
    fact="multi_controller.launch.cloud-tpu",
    topologies=ONE_PROCESS,
    left_out=(
        "no TPU: the processes have CPU devices, and the variables of a TPU's pod (GKE), which JAX "
        "is forced to believe; a TPU VM without pods asks the metadata server instead, which it "
        "does not do where there is no TPU"
    ),
    deadline_s=DEADLINE_S,
    expect=lambda slices: of_jax(one_job(slices.processes)),
)
def cloud_tpu(impl: Any, cluster: Any, slices: Slices) -> None:
    """Processes that find a TPU's variables call `initialize()` without arguments."""
    cluster.step(
        JOB, lambda: answers(run_text(CLOUD_TPU, slices.processes, SLICES=f"{slices.slices}"))
    )


# --- Kubernetes -----------------------------------------------------------------------------------

# What the cluster's API would answer is said by a stand-in for the package by which JAX asks it.
KUBERNETES = """\
import json, os, sys
from types import SimpleNamespace as Has

_, pods, pod = sys.argv[1:]
case = os.environ["CASE"]
os.environ |= {"KUBERNETES_SERVICE_HOST": "localhost", "HOSTNAME": "localhost"}
if case != "not-indexed":
    os.environ["JOB_COMPLETION_INDEX"] = pod


class Refused(Exception):
    status, reason = 403, "Forbidden"


def list_namespaced_pod(namespace, field_selector):
    if case == "not-allowed":
        raise Refused
    owner = Has(controller=True, kind="Job")
    return Has(items=[Has(
        metadata=Has(name="toy-pod", labels={"job-name": "toy"}, owner_references=[owner]),
        spec=Has(subdomain="pods"),
    )])


def read_namespaced_job(name, namespace):
    labels = {"jobset.sigs.k8s.io/jobset-name": "set"} if case == "jobset" else {}
    return Has(metadata=Has(name=name, labels=labels), spec=Has(parallelism=int(pods)))


sys.modules["kubernetes"] = None if case == "no-package" else Has(
    config=Has(load_incluster_config=lambda: None),
    client=Has(
        CoreV1Api=lambda: Has(list_namespaced_pod=list_namespaced_pod),
        BatchV1Api=lambda: Has(read_namespaced_job=read_namespaced_job),
        exceptions=Has(ApiException=Refused),
    ),
)

import jax
from jax._src.clusters import ClusterEnv, K8sCluster

K8sCluster._namespace = classmethod(lambda cls: "toys")  # a file of the pod's
"""

# With no time to wait, the name of the first pod's host is not looked up.
DETECTED = f"""{KUBERNETES}
address, processes, process, devices = ClusterEnv.auto_detect_unset_distributed_params(
    None, None, None, None, None, 0
)
assert devices is None, devices
host, port = address.split(":")
wanted = "toy-0.set" if case == "jobset" else "toy-0.pods"
assert host == wanted, host
print(json.dumps([process, processes, int(port)]))
"""
WITHOUT_PACKAGE = f"{KUBERNETES}\njax.distributed.initialize()\n"

PODS = 2
PORT = 55527  # JAX's own choice for the coordinator, the same in every pod

NO_CLUSTER = (
    "no Kubernetes: a stand-in for the package `kubernetes` answers for its API, and of what JAX "
    "makes of the answers the pods' names are not looked up, so that nothing is connected"
)


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of a job, as the variable CASE tells the stand-in."""

    key: str
    text: str


WORKLOADS: Mapping[str, Workload] = table(
    Workload("jobset", "a JobSet"),
    Workload("indexed-job", "an indexed Job"),
)


def detected(place: Place) -> Any:
    """of each pod its index, how many pods there are, and the one port of the coordinator"""
    return [np.array([pod, PODS, PORT]) for pod in range(PODS)]


@family(
    "multi_controller.launch.kubernetes.{workload}",
    workload=WORKLOADS,
    claim="multi-process.launch-kubernetes",
    title="In {workload.text}, each pod finds which it is, of how many, and the first one's name.",
    fact="multi_controller.launch.kubernetes",
    topologies=ONE_PROCESS,
    left_out=NO_CLUSTER,
    deadline_s=DEADLINE_S,
    expect=of_jax(in_steps(returns(detected), JOB)),
)
def kubernetes(impl: Any, cluster: Any, workload: Workload) -> None:
    """What JAX's detection of clusters finds in the pods of a job."""
    cluster.step(JOB, lambda: answers(run_text(DETECTED, PODS, CASE=workload.key)))


@dataclass(frozen=True, slots=True)
class Lack:
    """What a pod lacks, and what JAX says of it."""

    key: str
    text: str
    says: str


LACKS: Mapping[str, Lack] = table(
    Lack(
        "not-indexed",
        "the Job is not indexed",
        r'RuntimeError: To enable automatic bootstrap in a K8s cluster, .*completionMode: "Indexed"',
    ),
    Lack(
        "not-allowed",
        "the service account may not list the pods",
        r"RuntimeError: Kubernetes API Error: 403 - Forbidden\n.*service account",
    ),
)


@family(
    "multi_controller.launch.kubernetes.{lack}",
    lack=LACKS,
    claim="multi-process.launch-kubernetes",
    title="Where {lack.text}, JAX's detection of clusters raises and says so.",
    fact="multi_controller.launch.kubernetes-refused",
    topologies=ONE_PROCESS,
    left_out=NO_CLUSTER,
    deadline_s=DEADLINE_S,
    expect=lambda lack: of_jax(in_steps(raises(JobError, rf"process 0: exit 1: {lack.says}"), JOB)),
)
def kubernetes_refused(impl: Any, cluster: Any, lack: Lack) -> None:
    """JAX's detection of clusters in a pod of a job that the document rules out."""
    cluster.step(JOB, lambda: answers(run_text(DETECTED, PODS, CASE=lack.key)))


@clause(
    "multi_controller.launch.kubernetes.without-package",
    claim="multi-process.launch-kubernetes",
    topologies=ONE_PROCESS,
    left_out=NO_CLUSTER,
    deadline_s=DEADLINE_S,
    expect=of_jax(one_job(PODS)),
)
def without_package(impl: Any, cluster: Any) -> None:
    """`initialize()` without arguments in the pods of an indexed Job, with nothing but JAX there."""
    cluster.step(JOB, lambda: answers(run_text(WITHOUT_PACKAGE, PODS, CASE="no-package")))
