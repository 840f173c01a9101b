"""Automatic detection by `jax.distributed.initialize()` on Cloud TPU and in Kubernetes.

Neither is present: tested are the environment variables and the answers that JAX reads there, as
`left_out` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.sections.multi_controller.plain_jobs import (
    DEADLINE_S,
    DEVICES,
    IMPORTS,
    JOB,
    SAY,
    JobError,
    answers,
    one_job,
    run_text,
)
from conformance.spec.clause import clause
from conformance.spec.columns import of_jax
from conformance.spec.expectation import in_steps, raises, returns
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_PROCESS, Place, Topology
from conformance.worker.protocols import Cluster, Implementation

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
    """The number of TPU slices of a job of `processes`."""

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
    title=(
        "With the environment variables {slices.text}, `initialize()` without arguments "
        "joins all hosts."
    ),
    fact="multi_controller.launch.cloud-tpu",
    topologies=ONE_PROCESS,
    left_out=(
        "no TPU: the processes have CPU devices, and the variables of a TPU's pod (GKE), which JAX "
        "is forced to believe; a TPU VM without pods asks the metadata server instead, which it "
        "does not do where there is no TPU"
    ),
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=lambda slices: of_jax(one_job(slices.processes)),
)
def cloud_tpu(impl: Implementation, cluster: Cluster, slices: Slices) -> None:
    """Processes that find a TPU's variables call `initialize()` without arguments."""
    job = Topology(slices.processes, DEVICES)
    count = f"{slices.slices}"
    cluster.step(JOB, lambda: answers(run_text(CLOUD_TPU, job, imported=False, SLICES=count)))


# --- Kubernetes -----------------------------------------------------------------------------------

# A stand-in for the package that JAX uses gives the answers of the cluster's API.
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
PODS_JOB = Topology(PODS, DEVICES)
PORT = 55527  # JAX's own choice for the coordinator, the same in every pod

NO_CLUSTER = (
    "no Kubernetes: a stand-in for the package `kubernetes` answers for its API, and of what JAX "
    "makes of the answers the pods' names are not looked up, so that nothing is connected"
)


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of a job, selected by the variable CASE of the stand-in."""

    key: str
    text: str


WORKLOADS: Mapping[str, Workload] = table(
    Workload("jobset", "a JobSet"),
    Workload("indexed-job", "an indexed Job"),
)


@described("of each pod its index, how many pods there are, and the one port of the coordinator")
def detected(place: Place) -> Any:
    return [np.array([pod, PODS, PORT]) for pod in range(PODS)]


@family(
    "multi_controller.launch.kubernetes.{workload}",
    workload=WORKLOADS,
    claim="multi-process.launch-kubernetes",
    title=(
        "In {workload.text}, each pod finds its process index, the number of processes and "
        "the coordinator's name."
    ),
    fact="multi_controller.launch.kubernetes",
    topologies=ONE_PROCESS,
    left_out=NO_CLUSTER,
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=of_jax(in_steps(returns(detected), JOB)),
)
def kubernetes(impl: Implementation, cluster: Cluster, workload: Workload) -> None:
    """Run JAX's cluster detection in the pods of a job."""
    cluster.step(JOB, lambda: answers(run_text(DETECTED, PODS_JOB, CASE=workload.key)))


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that a pod lacks, and JAX's message about it."""

    key: str
    text: str
    says: str


LACKS: Mapping[str, Lack] = table(
    Lack(
        "not-indexed",
        "the Job is not indexed",
        r'RuntimeError: To enable automatic bootstrap .* setting `completionMode: "Indexed"`',
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
    title="Where {lack.text}, JAX's cluster detection raises an error that says so.",
    fact="multi_controller.launch.kubernetes-refused",
    topologies=ONE_PROCESS,
    left_out=NO_CLUSTER,
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=lambda lack: of_jax(in_steps(raises(JobError, rf"process 0: exit 1: {lack.says}"), JOB)),
)
def kubernetes_refused(impl: Implementation, cluster: Cluster, lack: Lack) -> None:
    """JAX's detection of clusters in a pod of a job that the document rules out."""
    cluster.step(JOB, lambda: answers(run_text(DETECTED, PODS_JOB, CASE=lack.key)))


@clause(
    "multi_controller.launch.kubernetes.without-package",
    claim="multi-process.launch-kubernetes",
    topologies=ONE_PROCESS,
    left_out=NO_CLUSTER,
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=of_jax(one_job(PODS)),
)
def without_package(impl: Implementation, cluster: Cluster) -> None:
    """`initialize()` without arguments in the pods of an indexed Job where only JAX is
    installed.
    """
    cluster.step(JOB, lambda: answers(run_text(WITHOUT_PACKAGE, PODS_JOB, CASE="no-package")))


# The arguments that the program is given, passed on.
ALL_GIVEN = f"""{KUBERNETES}{IMPORTS}
jax.distributed.initialize(sys.argv[1], int(pods), int(pod))
{SAY}"""


@clause(
    "multi_controller.launch.kubernetes.without-package.all-given",
    claim="multi-process.launch-kubernetes",
    title="In a pod where only JAX is installed, `initialize` with coordinator_address, "
    "num_processes and process_id starts the job.",
    fixes="multi_controller.launch.kubernetes.without-package",
    topologies=ONE_PROCESS,
    left_out=NO_CLUSTER,
    deadline_s=DEADLINE_S,
    on_cpu=True,
    expect=of_jax(one_job(PODS)),
)
def all_given(impl: Implementation, cluster: Cluster) -> None:
    """`initialize` with all arguments in the pods of an indexed Job where only JAX is installed."""
    cluster.step(JOB, lambda: answers(run_text(ALL_GIVEN, PODS_JOB, CASE="no-package")))
