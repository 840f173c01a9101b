"""One process of a cluster: runs a clause's probe on request, and reports one observation.

It is forked from a zygote, or started alone (`python -m conformance.worker.process`) by the
launcher of another machine; its settings then come from the environment.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import hashlib
import inspect
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable
from importlib import metadata
from typing import Any

import jax
import numpy

from conformance.catalogue import loading
from conformance.spec import names
from conformance.spec.topology import Topology
from conformance.worker import deadlines, host_size, job_server, ports, recording
from conformance.worker.channel import ADDRESS_VARIABLE, KEY_VARIABLE, Channel, open_to_controller
from conformance.worker.compiling import compile_quickly, takes_flag
from conformance.worker.elsewhere import VARIABLE, elsewhere
from conformance.worker.implementations import available
from conformance.worker.jobs import found
from conformance.worker.proving import watched
from conformance.worker.unharmed import settings, unharmed

SETTINGS_VARIABLE = "CONFORMANCE_WORKER"
PLATFORM_OF = {"gpu": "cuda"}  # where JAX's devices say it in another word than its settings
# What changes how a map behaves, whether or not a clause requires it.
LIBRARIES = ("chex", "dm-haiku", "equinox", "flax", "optax", "orbax-checkpoint")
PLUGINS = ("jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu")  # what compiles for a device
CASES_BETWEEN_CLEARING = 100  # of JAX's caches; keeps memory flat over a long run


def main() -> None:
    """Start without a zygote: settings and catalogue come from the environment as JSON."""
    settings = json.loads(os.environ[SETTINGS_VARIABLE])
    run(settings, load(settings["catalogue"]))


def load(names: Iterable[str]) -> loading.Catalogue:
    """Return the clauses that a worker may run; modules that the controller names are imported,
    never sent.
    """
    job_server.import_what_compiles()
    takes_flag()  # kept, as the versions below
    catalogue = loading.load(names)
    for package in _packages(catalogue):
        _version(package)  # kept: each worker that is forked would look for it again
    return catalogue


def run(settings: dict[str, Any], clauses: loading.Catalogue) -> None:
    """Join the cluster and serve cases until the controller is gone; never returns.

    `settings`: place (what to announce), process, topology, platform, variables (of its devices),
    as_by_default (whether it compiles as a user's process does where that is looked at),
    coordinator (HOST:PORT or None for one process), address and key of the controller, log and
    stacks (files), temporary (where a case's own files go; this host's own folder by default).
    """
    if "temporary" in settings:  # so that what a killed case has written goes with the cluster
        tempfile.tempdir = settings["temporary"]
    stacks = open(settings["stacks"], "w")  # noqa: SIM115  (open for the process's life)
    faulthandler.enable(stacks)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    channel = open_to_controller(
        settings.get("address") or os.environ[ADDRESS_VARIABLE],
        settings.get("key") or os.environ[KEY_VARIABLE],
    )
    channel.send({"place": settings["place"], "pid": os.getpid()})
    try:
        Worker(channel, clauses, settings).serve()
    except EOFError:
        os._exit(0)  # the controller is gone
    except BaseException:
        _report_failure(channel)
    os._exit(1)


class Worker:
    """A process that has joined its cluster; `serve` runs one case after the other."""

    def __init__(self, channel: Channel, clauses: loading.Catalogue, settings: dict[str, Any]):
        self._channel = channel
        self._clauses = clauses
        self._topology = Topology.parse(settings["topology"])
        self._process = settings["process"]
        self._cases = 0
        os.environ.update(settings.get("variables", {}))  # nothing has looked for devices yet
        backend = _configure(settings["platform"], self._topology)
        # What is compiled for TPUs is always looked at.
        always = not settings["as_by_default"] and settings["platform"] != names.TPU_COMPILE
        compiling = compile_quickly(always=always) if backend == "cpu" else ""
        if self._topology.processes > 1:
            _join(settings["coordinator"], self._topology.processes, self._process)
        watched()  # not in a case: it traces a program
        started = {name for one in clauses.clauses.values() for name in one.programs}
        channel.send({"ready": facts(_packages(clauses), started) | {"compiling": compiling}})

    def serve(self) -> None:
        """Run cases until the controller is gone, then raise EOFError."""
        while True:
            order = self._channel.receive()
            self._case(order)

    def _case(self, order: dict[str, Any]) -> None:
        one = self._clauses.clauses[order["clause"]]
        name = f"{order['case']}:{fingerprint(order)}"
        self._meet(f"{name}:begin", deadlines.BARRIER_S)
        parameters = {**order["parameters"], **one.rows}
        before, found = _cpu_seconds(), settings()
        seen = recording.observe(
            one.probe,
            parameters,
            order["implementation"],
            self._topology,
            self._process,
            lambda kind: self._channel.send({"case": order["case"], "mapped": kind}),
            lambda: self._meet(f"{name}:met", order["deadline_s"]),
            lambda step, ended: self._channel.send(
                {"case": order["case"], "step": step, "ended": ended}
            ),
        )
        seen["cpu_seconds"] = _cpu_seconds() - before
        self._channel.send({"case": order["case"], "observation": seen})
        self._cases += 1
        if self._cases % CASES_BETWEEN_CLEARING == 0:
            jax.clear_caches()
        self._meet(f"{name}:end", order["deadline_s"])
        sound = unharmed(seen["steps"], found, settings())
        self._channel.send({"case": order["case"], "ready": True, "unharmed": sound})

    def _meet(self, name: str, timeout_s: float) -> None:
        if self._topology.processes > 1:
            _client().wait_at_barrier(name, int(timeout_s * 1000))


def _cpu_seconds() -> float:
    """Return the CPU time of this process, of its ended children, and of its jobs."""
    used = os.times()
    ours = used.user + used.system + used.children_user + used.children_system
    return ours + job_server.SERVERS.cpu_seconds


def fingerprint(order: dict[str, Any]) -> str:
    """Return a hash on which all processes of a case must agree; it names their barrier."""
    text = json.dumps([order["clause"], order["implementation"], order["parameters"]])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def facts(packages: Iterable[str], started: Iterable[str] = ()) -> dict[str, Any]:
    """Return the versions and devices in use, of `packages` and of programs `started`."""
    import jaxlib

    implementations, unknown = available()
    return {
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": numpy.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        **_computes_on(),
        "machine": os.uname().machine,
        **host_size.size(),
        "implementations": implementations,
        "unknown": unknown,
        "packages": {name: version for name in packages if (version := _version(name))},
        "programs": [name for name in sorted(started) if found(name)],
    }


def _packages(clauses: loading.Catalogue) -> list[str]:
    """Return the packages whose versions a target's record has."""
    required = (name for one in clauses.clauses.values() for name in one.requires)
    return sorted({*required, *LIBRARIES, *PLUGINS})


@functools.cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _computes_on() -> dict[str, Any]:
    """Return the platform and device kind, taken from an array: a program would be compiled."""
    there = elsewhere()
    if there is not None:
        return {"platform": names.TPU_COMPILE, "device_kind": there.chips[0].device_kind}
    (device,) = jax.device_put(numpy.float32(0)).devices()
    return {
        "platform": PLATFORM_OF.get(device.platform, device.platform),
        "device_kind": device.device_kind,
    }


def _configure(platform: str, topology: Topology) -> str:
    """Configure JAX for a platform and topology; return JAX's name of the platform."""
    if platform == names.TPU_COMPILE:
        os.environ[VARIABLE] = str(topology)
        platform = "cpu"
    jax.config.update("jax_traceback_filtering", "off")  # frames are evidence of the phase
    jax.config.update("jax_platforms", platform)
    if platform == "cpu":
        jax.config.update("jax_num_cpu_devices", topology.devices_per_process)
        if topology.processes > 1:
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # With it, JAX answers SIGTERM by waiting for a preemption notice.
    if "jax_enable_preemption_service" in jax.config.values:
        jax.config.update("jax_enable_preemption_service", False)
    return platform


def _join(coordinator: str, processes: int, process: int) -> None:
    if process > 0 and not ports.wait_for_listener(coordinator, deadlines.CLUSTER_START_S / 2):
        raise RuntimeError(f"process 0 did not open the coordinator at {coordinator}")
    wanted = {
        "coordinator_address": coordinator,
        "num_processes": processes,
        "process_id": process,
        "initialization_timeout": int(deadlines.CLUSTER_START_S / 2),
        "heartbeat_timeout_seconds": deadlines.HEARTBEAT_S,
        "shutdown_timeout_seconds": 5,
    }
    known = inspect.signature(jax.distributed.initialize).parameters
    jax.distributed.initialize(**{k: v for k, v in wanted.items() if k in known})


def _client() -> Any:
    from jax._src.distributed import global_state

    return global_state.client


def _report_failure(channel: Channel) -> None:
    text = traceback.format_exc()
    print(text, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError):
        channel.send({"failed": text})


if __name__ == "__main__":
    main()
