"""Hosts and their agents: who may come, in which order, what differs, and what is told of it."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from processes import until

from conformance.worker import machine
from conformance.worker.agent import PLACE, AgentError, new_key, read_key
from conformance.worker.channel import KEY_VARIABLE, Channel, open_to_controller
from harness.clusters.hub import Hub
from harness.clusters.launchers import TargetDown, hellos
from harness.clusters.launchers.hellos import Hello
from harness.clusters.launchers.hosts import HostsLauncher, Wanted

SOON_S = 30.0
SOURCES = "0123456789abcdef"


GPUS = (("cuda", ("0", "1")),)


def hello(host: str = "n0", rank: int | None = 0, **other: Any) -> Hello:
    facts = {"python": "3.12.1", "jax": "0.9.0", "jaxlib": "0.9.0", "sources": SOURCES} | other
    return Hello(host=host, address="10.0.0.1", rank=rank, **facts)


def message(host: str, rank: int | None, **other: Any) -> dict[str, Any]:
    said = machine.described("10.0.0.1", rank, host)
    return {"place": PLACE, "pid": 1, **said, **other}


@pytest.mark.parametrize(
    ("case", "hosts", "says", "devices"),
    [
        ("agree", [hello("n0", 0), hello("n1", 1)], None, None),
        ("none has a rank", [hello("n0", None), hello("n1", None)], None, None),
        (
            "sources",
            [hello("n0", 0), hello("n1", 1, sources="f" * 16)],
            r"^n1 \(rank 1\) has another state of this project than the controller",
            None,
        ),
        (
            "jax",
            [hello("n0", 0), hello("n1", 1, jax="0.9.1"), hello("n2", 2)],
            r"^n1 \(rank 1\) has jax 0\.9\.1, the others have 0\.9\.0: install the same",
            None,
        ),
        (
            "jaxlib",
            [hello("n0", 0, jaxlib="0.8.3"), hello("n1", 1), hello("n2", 2)],
            r"^n0 \(rank 0\) has jaxlib 0\.8\.3, the others have 0\.9\.0",
            None,
        ),
        (
            "some have ranks",
            [hello("n0", 0), hello("n1", None)],
            r"^n1 has no rank, the others have: start all by one launcher",
            None,
        ),
        (
            "a rank twice",
            [hello("n0", 1), hello("n1", 1)],
            r"^n0 and n1 both have rank 1: give each one",
            None,
        ),
        (
            "a device is lacking",
            [hello("n0", 0, platform="cuda", devices=GPUS), hello("n1", 1)],
            r"^n1 \(rank 1\) cannot compute on cuda \(cuda devices: 0 on n1 \(rank 1\)\)",
            "cuda",
        ),
        (
            "a package is lacking",
            [hello("n0", 0, devices=GPUS), hello("n1", 1, platform="cuda", devices=GPUS)],
            r"^n0 \(rank 0\) cannot compute on cuda \(cuda devices: 2 on n0 .*jax\[cuda\]",
            "cuda",
        ),
    ],
)
def test_hosts_that_cannot_be_one_cluster(
    case: str, hosts: list[Hello], says: str | None, devices: str | None
) -> None:
    found = hellos.disagreement(hosts, SOURCES, devices)
    if says is None:
        assert found is None
    else:
        assert re.search(says, found or "")


def test_order() -> None:
    some = [hello("b", None), hello("n2", 2), hello("a", None), hello("n10", 10)]
    ordered = sorted(some, key=hellos.order)
    assert [one.host for one in ordered] == ["n2", "n10", "a", "b"]


@pytest.mark.parametrize(
    ("case", "here", "count", "names", "says"),
    [
        ("by rank", [hello("n1", 1)], 3, (), "ranks 0, 2"),
        ("by name", [hello("n1", 1)], 2, ("a", "b"), "a (rank 0)"),
        ("without ranks", [hello("n1", None)], 3, (), "2 of 3 hosts"),
        ("ranks of another job", [hello("n9", 9)], 2, (), "1 of 2 hosts"),
        ("all", [], 1, (), "rank 0"),
    ],
)
def test_who_is_missing(
    case: str, here: list[Hello], count: int, names: tuple[str, ...], says: str
) -> None:
    assert hellos.missing(here, count, names) == says


def test_who_is_missing_of_a_share() -> None:
    assert hellos.missing([hello("n3", 3)], 2, first=2) == "rank 2"
    assert hellos.missing([hello("n3", 3)], 2, ("c", "d"), first=2) == "c (rank 2)"


@pytest.mark.parametrize(
    ("processes", "hosts", "where"),
    [(1, 4, [0]), (2, 2, [0, 1]), (4, 2, [0, 0, 1, 1]), (3, 2, [0, 0, 1]), (2, 4, [0, 1])],
)
def test_neighbours_share_a_host(processes: int, hosts: int, where: list[int]) -> None:
    assert hellos.spread(processes, hosts) == where


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("nothing", {}),
        ("no devices", {"devices": None}),
        ("a rank in words", {"rank": "first"}),
        ("a rank without end", {"rank": float("inf")}),
        ("a rank below 0", {"rank": -1}),
        ("a rank of no bound", {"rank": 10**30}),
        ("a name without end", {"host": "n" * 10_000}),
    ],
)
def test_what_is_no_hello(case: str, changes: dict[str, Any]) -> None:
    said = {**message("n0", 0), **changes} if changes else {}
    with pytest.raises(ValueError, match="is no agent of this run"):
        hellos.parse(said)


@pytest.mark.parametrize(
    ("case", "variables", "rank"),
    [
        ("slurm", {"SLURM_PROCID": "3"}, 3),
        ("mpirun inside Slurm's job", {"SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "2"}, 2),
        ("pod", {"JOB_COMPLETION_INDEX": "1"}, 1),
        ("slice", {"TPU_WORKER_ID": "7"}, 7),
        ("no number", {"SLURM_PROCID": "", "TPU_WORKER_ID": "seven"}, None),
        ("nothing", {}, None),
    ],
)
def test_rank(case: str, variables: Mapping[str, str], rank: int | None) -> None:
    assert machine.rank_in_job(variables) == rank


@pytest.mark.parametrize(
    ("case", "tpu", "kept"), [("elsewhere", False, set()), ("on TPUs", True, {"TPU_WORKER_ID"})]
)
def test_a_worker_is_told_nothing_by_the_job(case: str, tpu: bool, kept: set[str]) -> None:
    told = dict.fromkeys(
        ["JAX_PLATFORMS", "XLA_FLAGS", "SLURM_PROCID", "OMPI_X", "KUBERNETES_X", KEY_VARIABLE],
        "1",
    )
    variables = {**told, "TPU_WORKER_ID": "1", "PATH": "/bin"}
    machine.forget_the_job(variables, tpu=tpu)
    assert set(variables) == {"PATH", *kept}


@pytest.mark.parametrize(
    ("found", "packages", "says"),
    [
        ({}, {"libtpu", "jax-cuda13-plugin"}, "cpu"),
        ({"cuda": ("0",)}, set(), "cpu"),
        ({"cuda": ("0",)}, {"libtpu"}, "cpu"),
        ({"cuda": ("0",)}, {"jax-cuda13-plugin"}, "cuda"),
        ({"tpu": ("0",)}, {"libtpu"}, "tpu"),
    ],
)
def test_a_platform_takes_devices_and_a_package(
    found: dict[str, tuple[str, ...]], packages: set[str], says: str
) -> None:
    assert machine.platform_of(found, packages.__contains__) == says


def test_a_host_says_its_devices_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = {"cuda": ("1", "3"), "tpu": ()}
    monkeypatch.setattr(machine, "devices", lambda kind, environment: inventory[kind])
    monkeypatch.setattr(machine, "_version", lambda package: "1.0")
    one = hellos.parse(message("n0", 0))
    assert (one.platform, one.has("cuda"), one.has("tpu")) == ("cuda", ("1", "3"), ())
    assert one.text.endswith("cuda (cuda 1,3)")


def test_sources_differ_with_each_file_of_a_worker(tmp_path: Path) -> None:
    files = [tmp_path / "conformance" / "a.py", tmp_path / "harness" / "clusters" / "b.py"]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("x = 1\n")
    hashes = {machine.sources(tmp_path)}
    (tmp_path / "reports.py").write_text("x = 1\n")
    assert machine.sources(tmp_path) in hashes
    files[1].write_text("x = 2\n")
    hashes.add(machine.sources(tmp_path))
    files[0].rename(files[0].with_name("c.py"))
    hashes.add(machine.sources(tmp_path))
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("text", "variable", "says"),
    [
        (None, None, "no key: give --key-file FILE, or set CONFORMANCE_KEY"),
        (None, "abc", "the variable CONFORMANCE_KEY has no key of at least 32 hexadecimal"),
        ("short", None, "key has no key"),
        ("00" * 15, None, "key has no key"),
    ],
    ids=["none", "variable", "words", "short"],
)
def test_a_key_that_is_none(
    tmp_path: Path, text: str | None, variable: str | None, says: str
) -> None:
    file = None
    if text is not None:
        file = tmp_path / "key"
        file.write_text(text)
        file.chmod(0o600)
    with pytest.raises(AgentError, match=says):
        read_key(file, variable)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_an_agent_takes_no_key_that_others_can_read_or_change(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    file.write_text(new_key())
    file.chmod(mode)
    with pytest.raises(AgentError, match=r"key .*`chmod 600"):
        read_key(file, None)
    file.chmod(0o600)
    assert len(read_key(file, None)) == 64


def test_a_key_file_that_is_not_there_is_named_without_a_number(tmp_path: Path) -> None:
    with pytest.raises(AgentError) as caught:
        read_key(tmp_path / "none", None)
    assert str(caught.value).startswith(f"{tmp_path / 'none'}: {os.strerror(errno.ENOENT)}: ")


# Hosts as they come and go


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    yield made
    made.close()


def come(hub: Hub, host: str, rank: int | None, **other: Any) -> Channel:
    channel = open_to_controller(hub.address, hub.key)
    channel.send(message(host, rank, **other))
    return channel


def test_hosts_are_waited_for_and_ordered(hub: Hub) -> None:
    said: list[str] = []
    launcher = HostsLauncher(hub, Wanted(2, within_s=SOON_S), progress=said.append)
    came: list[Channel] = []

    def late() -> None:
        came.append(come(hub, "n1", 1))
        time.sleep(0.3)
        came.append(come(hub, "n0", 0))

    thread = threading.Thread(target=late)
    thread.start()
    launcher.warm_up()
    thread.join()
    assert [one.host for one in launcher.hellos] == ["n0", "n1"]
    assert [line.split(":")[0] for line in said] == [
        "host n1 (rank 1) at 10.0.0.1",
        "host n0 (rank 0) at 10.0.0.1",
    ]
    extra = come(hub, "n2", 2)

    def sent_away() -> bool:
        launcher.warm_up()
        return said[-1] == "host n2 (rank 2) is not needed: all 2 hosts are connected"

    assert until(sent_away, SOON_S)
    with pytest.raises(EOFError):
        extra.receive()
    launcher.close()


def test_a_host_that_does_not_come_is_named(hub: Hub) -> None:
    wanted = Wanted(2, names=("alpha", "beta"), within_s=2.0)
    launcher = HostsLauncher(hub, wanted)
    alpha = come(hub, "alpha", 0)
    with pytest.raises(TargetDown) as caught:
        launcher.warm_up()
    missing, _, there = str(caught.value).partition(";")
    assert missing.startswith("beta (rank 1): ")
    assert "2 s" in missing
    assert there.endswith(": alpha (rank 0)")
    with pytest.raises(TargetDown, match="within 0 s"):  # it is not waited for again
        launcher.warm_up()
    alpha.close()


def test_another_agent_takes_the_place_of_a_lost_one(hub: Hub) -> None:
    said: list[str] = []
    launcher = HostsLauncher(hub, Wanted(2, within_s=SOON_S), progress=said.append)
    first, second = come(hub, "n0", 0), come(hub, "n1", 1)
    launcher.warm_up()
    second.close()
    again = come(hub, "n1b", 1)
    launcher.warm_up()
    assert [one.host for one in launcher.hellos] == ["n0", "n1b"]
    assert [line for line in said if line.startswith("host n1 (rank 1) was lost: ")]
    launcher.close()
    for one in (first, again):
        with pytest.raises(EOFError):
            one.receive()


def test_a_host_of_another_state_is_named_each_time(hub: Hub) -> None:
    launcher = HostsLauncher(hub, Wanted(2, within_s=SOON_S))
    here = [come(hub, "n0", 0), come(hub, "n1", 1, sources="other")]
    for _ in range(2):
        with pytest.raises(TargetDown, match=r"^n1 \(rank 1\) has another state"):
            launcher.warm_up()
    assert here


def test_what_is_no_agent_is_sent_away(hub: Hub) -> None:
    said: list[str] = []
    launcher = HostsLauncher(hub, Wanted(1, within_s=0.5), progress=said.append)
    other = open_to_controller(hub.address, hub.key)
    other.send({"place": PLACE, "host": "n0"})
    with pytest.raises(TargetDown, match=r"^rank 0: no agent"):
        launcher.warm_up()
    assert said[0].startswith("host n0 ")


# The agent's own command


def agent(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k != KEY_VARIABLE}
    return subprocess.run(
        [sys.executable, "-m", "conformance.worker.agent", *words],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=SOON_S * 4,
    )


def test_an_agent_with_another_key_is_refused_and_told_on_both_sides() -> None:
    said: list[str] = []
    hub = Hub(refused=said.append)
    try:
        ended = agent("--controller", hub.address, **{KEY_VARIABLE: new_key()})
        assert ended.returncode == 2
        assert re.fullmatch(r"pmap-conformance: .+\n", ended.stderr)
        for part in (hub.address, "different keys", "--key-file"):
            assert part in ended.stderr
        (refused,) = said
        assert refused.startswith("127.0.0.1 was refused")
        assert hub.wait_for(PLACE, 0.0) is None
        welcome = open_to_controller(hub.address, hub.key)  # the others are not disturbed
        welcome.send({"place": "other"})
        assert hub.wait_for("other", SOON_S) is not None
    finally:
        hub.close()


def test_an_agent_gives_up_on_a_controller_that_is_not_there() -> None:
    key = {KEY_VARIABLE: new_key()}
    ended = agent("--controller", "127.0.0.1:9", "--patience", "0.2", **key)
    assert ended.returncode == 2
    assert ended.stderr.startswith("pmap-conformance: no controller")
    assert {"127.0.0.1:9", "0.2"} < set(ended.stderr.split())


def test_an_agent_needs_no_more_than_a_worker() -> None:
    code = (
        "import sys, conformance.worker.agent; "
        "print({'psutil', 'filelock', 'pytest', 'packaging', 'jax'} & {*sys.modules})"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout == "set()\n"
