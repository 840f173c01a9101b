"""Assign this machine's devices to the processes of a cluster, by environment variables.

A device belongs to one cluster at a time with all of its memory. Devices are found by files of the
system, because nothing here may initialise a device.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.commandline.counting import counted
from conformance.spec.topology import Topology
from conformance.worker import machine
from conformance.worker.machine import CUDA_VISIBLE, TPU_VISIBLE
from harness.clusters.launchers.hellos import spread
from harness.targets.platforms import CUDA, PLATFORMS, TPU, Platform

# How the chips of a host lie, by their number, and how those of one of its processes do: the
# variables of libtpu that divide a host among processes speak of nothing else.
HOSTS: Mapping[int, tuple[int, int]] = {1: (1, 1), 2: (2, 1), 4: (2, 2), 8: (2, 4)}
PARTS: Mapping[int, tuple[int, int]] = {1: (1, 1), 2: (1, 2), 4: (2, 2), 8: (2, 4)}


class NoDevices(ValueError):
    """This machine lacks the requested devices; the text says what to do instead."""


def present(
    platform: Platform, environ: Mapping[str, str], root: Path = Path("/")
) -> tuple[str, ...]:
    """Return the ids of this machine's devices of a platform, limited to those the user made
    visible.
    """
    return machine.devices(platform.name, environ, root)


def required(platform: Platform, found: Sequence[str]) -> None:
    """Raise NoDevices if a platform that uses devices has none here."""
    if platform.name == CUDA and not found:
        raise NoDevices(
            "--platform cuda: this machine shows no NVIDIA GPU (nothing in /proc/driver/nvidia/gpus"
            f", or {CUDA_VISIBLE} hides it): run on a host with one, in a container started with "
            "its GPUs, or leave --platform out for cpu"
        )
    if platform.name == TPU and not found:
        raise NoDevices(
            "--platform tpu: this machine shows no TPU (no /dev/accel* and no /dev/vfio/*, or "
            f"{TPU_VISIBLE} hides it): run on a TPU VM, or with --platform tpu-compile, which "
            "compiles for TPU without one"
        )


def topologies(found: Sequence[str]) -> tuple[str, ...]:
    """Return the default topologies: one process with all devices, and one process per device."""
    return tuple(dict.fromkeys((f"1x{len(found)}", f"{len(found)}x1")))


def unmet(topology: Topology, found: Sequence[str]) -> str | None:
    """Return why these devices cannot serve a topology; None if they can."""
    if topology.devices <= len(found):
        return None
    return f"needs {counted(topology.devices, 'device')}, this host has {len(found)}"


def on_hosts(
    platform: Platform, topology: Topology, hosts: Sequence[Sequence[str]]
) -> list[dict[str, str]]:
    """Return the variables of each process of a cluster on other hosts, by device ids.

    NoDevices if the hosts cannot serve the topology.
    """
    where = spread(topology.processes, len(hosts))
    if platform.name == TPU:
        return _on_tpu_hosts(topology, where, hosts)
    count, settings = topology.devices_per_process, list[dict[str, str]]()
    taken = [0] * len(hosts)
    for host in where:
        first = taken[host]
        taken[host] += count
        if taken[host] > len(hosts[host]):
            needed = counted(where.count(host) * count, "device")
            raise NoDevices(f"needs {needed} of host {host}, which has {len(hosts[host])}")
        settings.append({CUDA_VISIBLE: ",".join(hosts[host][first : taken[host]])})
    return settings


def _on_tpu_hosts(
    topology: Topology, where: Sequence[int], hosts: Sequence[Sequence[str]]
) -> list[dict[str, str]]:
    """Return the variables for TPU hosts: a slice with one process per host, or one single host."""
    chips = [len(one) for one in hosts]
    whole = len(hosts) > 1 and chips == [topology.devices_per_process] * topology.processes
    if whole:
        return [{} for _ in where]
    if topology.processes == 1 or len(hosts) == 1:
        reason = unmet(topology, hosts[0])
        if reason is None:
            return variables(PLATFORMS[TPU], topology, hosts[0])
        raise NoDevices(reason)
    raise NoDevices(
        f"a TPU slice of {len(hosts)} hosts runs as {len(hosts)}x{chips[0]}, or one process on the "
        f"first of them, as 1x{chips[0]}; not as {topology}"
    )


def variables(
    platform: Platform,
    topology: Topology,
    ids: Sequence[str],
    free_ports: Callable[[int], Sequence[int]] | None = None,
) -> list[dict[str, str]]:
    """Return each process's variables, so that it sees only its own of the devices `ids`.

    NoDevices if a TPU host cannot be divided so.
    """
    count = topology.devices_per_process
    own = [",".join(ids[p * count : (p + 1) * count]) for p in range(topology.processes)]
    if platform.name == CUDA:
        return [{CUDA_VISIBLE: one} for one in own]
    if platform.name == TPU:
        settings = _slice(topology, (free_ports or _free_ports)(topology.processes))
        return [{TPU_VISIBLE: one, **process} for one, process in zip(own, settings, strict=True)]
    return [{} for _ in own]


def _slice(topology: Topology, ports: Sequence[int]) -> list[dict[str, str]]:
    """Return the variables by which libtpu learns the slice that this host's processes form."""
    host, part = HOSTS.get(topology.devices), PARTS.get(topology.devices_per_process)
    if host is None or part is None or host[0] % part[0] or host[1] % part[1]:
        raise NoDevices(
            f"a TPU host cannot be divided as {topology}: choose a --topology of 1, 2, 4 or 8 chips"
            ", with as many processes as fit, such as 1x4, 2x2 or 4x1"
        )
    if topology.processes == 1:
        return [{"TPU_CHIPS_PER_PROCESS_BOUNDS": _bounds(part), "TPU_PROCESS_BOUNDS": "1,1,1"}]
    together = {
        "TPU_CHIPS_PER_PROCESS_BOUNDS": _bounds(part),
        "TPU_PROCESS_BOUNDS": _bounds((host[0] // part[0], host[1] // part[1])),
        "TPU_PROCESS_ADDRESSES": ",".join(f"localhost:{port}" for port in ports),
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }
    return [
        {**together, "TPU_PROCESS_PORT": str(port), "CLOUD_TPU_TASK_ID": str(index)}
        for index, port in enumerate(ports)
    ]


def _bounds(shape: tuple[int, int]) -> str:
    return f"{shape[0]},{shape[1]},1"


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now; libtpu binds them itself, so they cannot be reserved."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
