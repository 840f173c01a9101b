"""The devices of a process, and the message if there are none; no device is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.spec.topology import Topology
from harness.running import devices
from harness.running.devices import NoDevices
from harness.targets.platforms import DRIVER, PLATFORMS, Platform, named

CUDA, TPU, CPU = PLATFORMS["cuda12"], PLATFORMS["tpu"], PLATFORMS["cpu"]

GPUS = [f"proc/driver/nvidia/gpus/0000:{n}:00.0" for n in range(3)]
OLDER_TPU = ["dev/accel0", "dev/accel1", "dev/accelerometer", "dev/vfio/vfio"]
NEWER_TPU = ["dev/vfio/0", "dev/vfio/1", "dev/vfio/11", "dev/vfio/vfio"]


def with_files(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("name", "platform", "files", "environ", "expected"),
    [
        ("GPUs", CUDA, GPUS, {}, ("0", "1", "2")),
        ("GPUs that the user leaves", CUDA, GPUS, {"CUDA_VISIBLE_DEVICES": "2, 0"}, ("2", "0")),
        ("up to one that is not there", CUDA, GPUS, {"CUDA_VISIBLE_DEVICES": "1,7,0"}, ("1",)),
        ("GPUs by name", CUDA, GPUS, {"CUDA_VISIBLE_DEVICES": "GPU-8f"}, ("GPU-8f",)),
        ("GPUs, all hidden", CUDA, GPUS, {"CUDA_VISIBLE_DEVICES": ""}, ()),
        ("GPUs, hidden by -1", CUDA, GPUS, {"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ("no GPU", CUDA, OLDER_TPU, {"CUDA_VISIBLE_DEVICES": "0"}, ()),
        ("a TPU to v4", TPU, OLDER_TPU, {}, ("0", "1")),
        ("a TPU from v5e", TPU, NEWER_TPU, {}, ("0", "1", "2")),
        ("chips that the user leaves", TPU, NEWER_TPU, {"TPU_VISIBLE_CHIPS": "1"}, ("1",)),
        ("no TPU", TPU, GPUS, {}, ()),
        ("a processor has none of its own", CPU, GPUS, {}, ()),
    ],
)
def test_a_machine_says_by_its_files_what_it_has(
    name: str,
    platform: Platform,
    files: Sequence[str],
    environ: dict[str, str],
    expected: tuple[str, ...],
    tmp_path: Path,
) -> None:
    assert devices.present(platform, environ, with_files(tmp_path, *files)) == expected, name


@pytest.mark.parametrize(
    ("driver", "extra"),
    [
        ("525.85.12", "jax[cuda12]"),
        ("580.65.06", "jax[cuda13]"),
        ("", "jax[cuda12]"),
    ],
)
def test_the_driver_decides_which_cuda(driver: str, extra: str, tmp_path: Path) -> None:
    if driver:
        file = tmp_path / DRIVER
        file.parent.mkdir(parents=True)
        file.write_text(
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Wed Feb  1\n"
            "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
        )
    assert named("cuda", tmp_path).packages[0] == extra
    assert named("cuda12", tmp_path).packages[0] == "jax[cuda12]"


@pytest.mark.parametrize(
    ("name", "platform", "pattern"),
    [("cuda", CUDA, "no NVIDIA GPU.*leave --platform out"), ("tpu", TPU, "no TPU.*tpu-compile")],
)
def test_a_platform_that_is_not_there(name: str, platform: Platform, pattern: str) -> None:
    with pytest.raises(NoDevices, match=pattern):
        devices.required(platform, ())
    devices.required(platform, ("0",))


@pytest.mark.parametrize("name", ["cpu", "tpu-compile"])
def test_what_needs_no_device_is_never_refused(name: str) -> None:
    devices.required(PLATFORMS[name], ())


def test_a_platform_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"--platform rocm.*choose from cpu, cuda"):
        named("rocm")


@pytest.mark.parametrize("topology", ["2x3", "3x1", "8x2", "4x4"])
def test_a_tpu_host_that_cannot_be_divided_so(topology: str) -> None:
    parsed = Topology.parse(topology)
    with pytest.raises(NoDevices, match=f"cannot be divided as {topology}"):
        devices.variables(TPU, parsed, [str(n) for n in range(16)], lambda n: range(n))


@pytest.mark.parametrize(
    ("topology", "count", "expected"),
    [("1x2", 1, "needs 2 devices, this host has 1"), ("1x1", 1, None)],
)
def test_a_cluster_with_more_devices_than_there_are(
    topology: str, count: int, expected: str | None
) -> None:
    assert devices.unmet(Topology.parse(topology), ["0"] * count) == expected


@pytest.mark.parametrize(
    ("name", "topology", "expected"),
    [
        ("one process has all", "1x4", ["0,1,2,3"]),
        ("one each", "4x1", ["0", "1", "2", "3"]),
        ("two each", "2x2", ["0,1", "2,3"]),
    ],
)
def test_each_process_sees_its_own_gpus(name: str, topology: str, expected: list[str]) -> None:
    told = devices.variables(CUDA, Topology.parse(topology), ["0", "1", "2", "3"])
    assert told == [{"CUDA_VISIBLE_DEVICES": one} for one in expected], name


@pytest.mark.parametrize(
    ("topology", "part", "whole"),
    [
        ("1x4", "2,2,1", "1,1,1"),
        ("2x2", "1,2,1", "2,1,1"),
        ("4x1", "1,1,1", "2,2,1"),
        ("2x4", "2,2,1", "1,2,1"),
        ("8x1", "1,1,1", "2,4,1"),
        ("1x1", "1,1,1", "1,1,1"),
    ],
)
def test_the_processes_of_a_tpu_host_make_up_its_slice(
    topology: str, part: str, whole: str
) -> None:
    parsed = Topology.parse(topology)
    ids = [str(n) for n in range(parsed.devices)]
    told = devices.variables(TPU, parsed, ids, lambda n: range(9000, 9000 + n))
    assert [one["TPU_CHIPS_PER_PROCESS_BOUNDS"] for one in told] == [part] * len(told)
    assert [one["TPU_PROCESS_BOUNDS"] for one in told] == [whole] * len(told)
    assert ",".join(one["TPU_VISIBLE_CHIPS"] for one in told) == ",".join(ids)
    if len(told) > 1:
        addresses = ",".join(f"localhost:{9000 + n}" for n in range(len(told)))
        assert {one["TPU_PROCESS_ADDRESSES"] for one in told} == {addresses}
        assert [one["TPU_PROCESS_PORT"] for one in told] == addresses.replace(
            "localhost:", ""
        ).split(",")
        assert [one["CLOUD_TPU_TASK_ID"] for one in told] == list(map(str, range(len(told))))


def test_each_process_gets_a_port_of_its_own() -> None:
    told = devices.variables(TPU, Topology.parse("4x1"), ["0", "1", "2", "3"])
    assert len({one["TPU_PROCESS_PORT"] for one in told}) == 4


def test_a_processor_is_not_divided() -> None:
    assert devices.variables(CPU, Topology.parse("4x2"), []) == [{}] * 4


@pytest.mark.parametrize(
    ("name", "platform", "topology", "hosts", "own"),
    [
        ("one process per host", CUDA, "2x2", [["0", "1"], ["4", "5"]], ["0,1", "4,5"]),
        ("on the first host alone", CUDA, "1x2", [["2", "3"], ["0", "1"]], ["2,3"]),
        ("neighbours share", CUDA, "4x1", [["0", "1"], ["0", "1"]], ["0", "1", "0", "1"]),
        ("a part of each host", CUDA, "2x1", [["0", "1"], ["3"]], ["0", "3"]),
    ],
)
def test_processes_of_other_hosts_get_what_their_agents_say(
    name: str, platform: Platform, topology: str, hosts: list[list[str]], own: list[str]
) -> None:
    told = devices.on_hosts(platform, Topology.parse(topology), hosts)
    assert told == [{"CUDA_VISIBLE_DEVICES": one} for one in own], name


@pytest.mark.parametrize(
    ("name", "platform", "topology", "hosts", "says"),
    [
        ("GPUs", CUDA, "2x2", [["0", "1"], ["0"]], "needs 2 devices of host 1, which has 1"),
        ("together", CUDA, "4x1", [["0"], ["0", "1"]], "needs 2 devices of host 0, which has"),
        ("one process", TPU, "1x8", [["0"] * 4] * 2, "needs 8 devices, this host has 4"),
        ("half a slice", TPU, "2x2", [["0"] * 4] * 4, "runs as 4x4, or .* as 1x4; not as 2x2"),
    ],
)
def test_what_the_hosts_do_not_have(
    name: str, platform: Platform, topology: str, hosts: list[list[str]], says: str
) -> None:
    with pytest.raises(NoDevices, match=says):
        devices.on_hosts(platform, Topology.parse(topology), hosts)


def test_a_whole_slice_is_the_runtimes_to_divide() -> None:
    ids = [str(n) for n in range(4)]
    assert devices.on_hosts(TPU, Topology.parse("2x4"), [ids, ids]) == [{}, {}]
    (first,) = devices.on_hosts(TPU, Topology.parse("1x4"), [ids, ids])
    assert first["TPU_PROCESS_BOUNDS"] == "1,1,1"


@pytest.mark.parametrize(("count", "expected"), [(1, ("1x1",)), (4, ("1x4", "4x1"))])
def test_what_runs_by_default(count: int, expected: tuple[str, ...]) -> None:
    assert devices.topologies(["0"] * count) == expected
