"""Hosts divided among test processes: none is in two shares, and who dials is sent to its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import until

from conformance.worker import machine
from conformance.worker.agent import DIAL, PLACE
from conformance.worker.channel import open_to_controller
from conformance.worker.ports import ReservedPort
from harness.plugin.options import Options
from harness.running import shares
from harness.running.fleet import Hosts, key_of
from harness.running.shares import HostAllocator, Shares

SOON_S = 30.0
LOCAL = Hosts(4, launcher="local")
NAMED = Hosts(3, launcher="ssh", names=("a", "b", "c"), listen="0.0.0.0:7070")


@pytest.mark.parametrize(
    ("hosts", "among", "expected", "says"),
    [
        (4, 2, [[0, 1], [2, 3]], "4 hosts divided among -n 2: 2 + 2"),
        (
            5,
            2,
            [[0, 1], [2, 3, 4]],
            "5 hosts divided among -n 2: 2 + 3, as they do not divide evenly",
        ),
        (2, 2, [[0], [1]], "2 hosts divided among -n 2: 1 + 1"),
        (3, 1, [[0, 1, 2]], "3 hosts divided among -n 1: 3"),
    ],
)
def test_each_host_is_in_one_share(
    hosts: int, among: int, expected: list[list[int]], says: str
) -> None:
    assert [[*one] for one in shares.divided(hosts, among)] == expected
    assert shares.describe_shares(Hosts(hosts), among) == says


@pytest.mark.parametrize(
    ("case", "hosts", "among", "platform", "says"),
    [
        ("too few", Hosts(2), 3, "cpu", "--hosts 2 with -n 3: each test process needs a host"),
        ("a slice", Hosts(4, launcher="tpu-pod"), 2, "cpu", "a TPU slice are one job"),
        ("a slice by hand", Hosts(4), 2, "tpu", "a TPU slice are one job"),
        ("without names", Hosts(4, launcher="mpi"), 2, "cpu", "by name, and 0 are: give"),
        (
            "an allocation of fewer nodes",
            Hosts(4, launcher="slurm", names=("n0", "n1", "n2")),
            2,
            "cpu",
            "by name, and 3 are",
        ),
    ],
)
def test_what_cannot_be_divided(
    case: str, hosts: Hosts, among: int, platform: str, says: str
) -> None:
    assert says in (shares.refusal(hosts, among, platform) or ""), case


@pytest.mark.parametrize(
    ("case", "hosts", "among"),
    [
        ("agents of this machine", LOCAL, 2),
        ("named", NAMED, 3),
        ("one srun each", Hosts(4, launcher="slurm"), 2),
        ("by hand", Hosts(4), 4),
    ],
)
def test_what_can(case: str, hosts: Hosts, among: int) -> None:
    assert shares.refusal(hosts, among, "cuda") is None, case


def test_a_share_has_its_own_hosts_and_port() -> None:
    first, second = (shares.share(NAMED, n, 2) for n in range(2))
    assert (first.count, first.names, first.listen) == (1, ("a",), "0.0.0.0:7071")
    assert (second.count, second.names, second.listen) == (2, ("b", "c"), "0.0.0.0:7072")
    assert shares.share(LOCAL, 1, 2).listen == LOCAL.listen, "a free port, each its own"
    assert [shares.share(Hosts(4), n, 2).first for n in range(2)] == [0, 2]


def test_who_replaces_a_test_process_gets_its_share() -> None:
    every = Shares(Hosts(4, "h:7070"), 2)
    assert [every.take(name).first for name in ("gw0", "gw1")] == [0, 2]
    every.give_back("gw0")
    every.give_back("gw9")  # that never had any
    assert every.take("gw2").first == 0
    with pytest.raises(StopIteration):
        every.take("gw3")


def test_a_share_reaches_its_test_process() -> None:
    mine = dataclasses.replace(shares.share(NAMED, 1, 2), key_file=Path("/key"))
    fields: dict[str, Any] = dict.fromkeys(("deadline_s", "shard"))
    given = Options(
        targets=(),
        topologies=("2x2",),
        implementations=(),
        clauses=(),
        platform="cpu",
        repeat=1,
        isolated=False,
        blocks=2,
        run="1",
        hosts=mine,
        **fields,
    )
    assert Options.load(given.dump()) == given


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    port = ReservedPort()
    port.close()
    file = tmp_path / "key"
    key_of(file)
    return Hosts(4, f"127.0.0.1:{port.port}", file)


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def allocator(hosts: Hosts, messages: list[str]) -> Iterator[HostAllocator]:
    made = HostAllocator(hosts, 2, messages.append)
    yield made
    made.close()


@pytest.mark.usefixtures("allocator")
def test_who_dials_is_sent_to_the_test_process_of_its_rank(hosts: Hosts) -> None:
    base = int(hosts.listen.rpartition(":")[2])
    for rank, port in ((3, base + 2), (0, base + 1), (2, base + 2), (3, base + 2)):
        channel = open_to_controller(hosts.listen, key_of(hosts.key_file))
        channel.send({"place": PLACE, **machine.described("10.0.0.1", rank, "n")})
        assert channel.receive() == {"do": DIAL, "port": port}
        with pytest.raises(EOFError):
            channel.receive()


@pytest.mark.usefixtures("allocator")
@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"place": PLACE}, "an agent was sent away: host without a name is no agent of this run"),
        ({"place": PLACE, "rank": None}, "host n is sent away: with -n each needs a rank from 0"),
        ({"place": PLACE, "rank": 4}, "host n (rank 4) is sent away: with -n each needs a rank"),
    ],
    ids=["nonsense", "no rank", "a rank too high"],
)
def test_who_has_no_test_process_is_sent_away(
    hosts: Hosts, messages: list[str], message: dict[str, Any], says: str
) -> None:
    whole = {**machine.described("10.0.0.1", 0, "n"), **message} if "rank" in message else message
    channel = open_to_controller(hosts.listen, key_of(hosts.key_file))
    channel.send(whole)
    with pytest.raises(EOFError):
        channel.receive()
    assert until(lambda: any(says in line for line in messages), SOON_S), messages


def test_a_port_that_is_taken_is_said(hosts: Hosts, allocator: HostAllocator) -> None:
    with pytest.raises(ValueError, match=rf"^--listen {hosts.listen}: .*in use"):
        HostAllocator(hosts, 2, lambda _: None)
