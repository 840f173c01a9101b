"""Kubernetes manifests: the objects that run one agent per pod, and their controller.

They are printed as JSON, which `kubectl apply -f -` accepts like YAML. A pod's index in its Job is
its agent's rank; the pods of a TPU slice get their hosts by accelerator and topology.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from conformance.commandline import limits
from conformance.worker.channel import KEY_VARIABLE

PORT = 7070
MOST_HOSTS = 10_000
NAME = "pmap-conformance"
SECRET = f"{NAME}-key"
RESULTS = "/results"

# Of the TPUs whose slices are named by their chips: the label of Google's nodes that have them.
TPU_LABELS = {"v5e": "tpu-v5-lite-podslice", "v6e": "tpu-v6e-slice"}
CHIPS_PER_HOST = 4  # where a slice has several hosts
TPU_TOPOLOGIES = {8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `pmap-conformance manifest`."""
    parser.add_argument(
        "--hosts",
        type=limits.whole(1, MOST_HOSTS),
        required=True,
        metavar="N",
        help="pods, one a host",
    )
    parser.add_argument("--image", required=True, help="has this project and jax installed")
    parser.add_argument("--tpu", metavar="KIND-CHIPS", help="of a slice: v5e-16")
    parser.add_argument("--namespace", default="default")
    parser.add_argument(
        "--pytest",
        default="suites/",
        metavar="WORDS",
        help="what the controller's pytest is given (default: %(default)s)",
    )


def printed(chosen: argparse.Namespace) -> str:
    """Return the objects as one List; ValueError if the slice does not have that many hosts."""
    items = objects(chosen.hosts, chosen.image, chosen.tpu, chosen.pytest.split(), chosen.namespace)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2)


def objects(
    hosts: int,
    image: str,
    tpu: str | None = None,
    words: list[str] | None = None,
    namespace: str = "default",
) -> list[dict[str, Any]]:
    """Return the controller's Service and Job, and the agents' JobSet; the key is a separate
    Secret.

    The topology of a slice follows from its type, unless the user names another.
    """
    where = tpu_slice(tpu, hosts) if tpu else {}
    asked = words or ["suites/"]
    platform = ["--platform", "tpu"] if tpu else []
    if tpu and not any(word.split("=")[0] == "--topology" for word in asked):
        platform += ["--topology", f"{hosts}x{CHIPS_PER_HOST}"]
    pytest = ["pytest", *asked, "--hosts", f"{hosts}", *platform]
    pytest += ["--listen", f"0.0.0.0:{PORT}", "--key-file", "/key/key"]
    pytest += ["--results", f"{RESULTS}/matrix.jsonl"]
    agent = [
        "python",
        "-m",
        "conformance.worker.agent",
        "--controller",
        f"{NAME}.{namespace}:{PORT}",
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _named(NAME, namespace),
            "spec": {
                "selector": {"app": NAME},
                "ports": [{"name": "agents", "port": PORT, "targetPort": PORT}],
            },
        },
        _job(NAME, namespace, _controller(image, pytest)),
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": _named(f"{NAME}-agents", namespace),
            "spec": {
                # An agent that is lost is a fault of the run, and started again beside it.
                "failurePolicy": {"maxRestarts": 3},
                "network": {"enableDNSHostnames": True},
                "replicatedJobs": [
                    {
                        "name": "agent",
                        "replicas": 1,
                        "template": {"spec": _agents(hosts, image, agent, where)},
                    }
                ],
            },
        },
    ]


def tpu_slice(text: str, hosts: int) -> dict[str, Any]:
    """Return the node selector of a slice such as `v5e-16`, and the chips that each pod requests.

    ValueError if no such slice is known, or it has not the chips of `hosts` hosts.
    """
    kind, _, count = text.partition("-")
    chips = int(count) if count.isdecimal() else 0
    if kind not in TPU_LABELS or chips not in TPU_TOPOLOGIES:
        known = ", ".join(f"{kind}-{chips}" for kind in TPU_LABELS for chips in TPU_TOPOLOGIES)
        raise ValueError(f"--tpu {text}: write one of {known}")
    if chips != hosts * CHIPS_PER_HOST:
        raise ValueError(
            f"--tpu {text} has {chips // CHIPS_PER_HOST} hosts of {CHIPS_PER_HOST} chips: give "
            f"--hosts {chips // CHIPS_PER_HOST}"
        )
    return {
        "nodeSelector": {
            "cloud.google.com/gke-tpu-accelerator": TPU_LABELS[kind],
            "cloud.google.com/gke-tpu-topology": TPU_TOPOLOGIES[chips],
        },
        "chips": CHIPS_PER_HOST,
    }


def _named(name: str, namespace: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": {"app": NAME}}


def _job(name: str, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _named(name, namespace),
        # A run that failed has found something: run again, it would only find it again.
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": {"app": NAME}}, **pod}},
    }


def _controller(image: str, command: list[str]) -> dict[str, Any]:
    return {
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "controller",
                    "image": image,
                    "command": command,
                    "ports": [{"containerPort": PORT}],
                    "volumeMounts": [
                        {"name": "key", "mountPath": "/key", "readOnly": True},
                        {"name": "results", "mountPath": RESULTS},
                    ],
                }
            ],
            "volumes": [
                {"name": "key", "secret": {"secretName": SECRET, "defaultMode": 0o400}},
                {"name": "results", "emptyDir": {}},
            ],
        }
    }


def _agents(hosts: int, image: str, command: list[str], where: dict[str, Any]) -> dict[str, Any]:
    chips = {"google.com/tpu": f"{where['chips']}"} if where else {}
    container: dict[str, Any] = {
        "name": "agent",
        "image": image,
        "command": command,
        "env": [
            {
                "name": KEY_VARIABLE,
                "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "key"}},
            }
        ],
    }
    if chips:
        container["resources"] = {"limits": chips}
    selector = {"nodeSelector": where["nodeSelector"]} if where else {}
    return {
        "completionMode": "Indexed",
        "parallelism": hosts,
        "completions": hosts,
        "backoffLimit": 0,
        "template": {
            "spec": {"restartPolicy": "Never", **selector, "containers": [container]},
        },
    }
