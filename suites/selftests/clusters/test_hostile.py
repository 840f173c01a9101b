"""A host that has the key and lies: one message that names it, and never more work than was asked.

The generators draw with a seed: another one draws others (`CONFORMANCE_SEED=N`).
"""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import pytest

from conformance.worker.agent import PLACE
from conformance.worker.channel import Channel, ProtocolError, open_to_controller
from harness.clusters.hub import Hub
from harness.clusters.launchers import TargetDown
from harness.clusters.launchers.hellos import Hello
from harness.clusters.launchers.host import Host, HostGone
from harness.clusters.launchers.remote import HostProcesses, RemoteHost

SEED = int(os.environ.get("CONFORMANCE_SEED", "25"))
# One seed in seconds; the others with the self-tests that take long.
SEEDS = [SEED, *(pytest.param(SEED + n, marks=pytest.mark.long) for n in range(1, 20))]
FRAMES, MESSAGES = 150, 400
SOON_S = 30.0  # for what takes milliseconds on an idle machine
HELLO = Hello("n1", "10.0.0.1", 1, "3.12.1", "0.9.0", "0.9.0", "0" * 16)


@pytest.fixture
def ends() -> Iterator[tuple[Host, Channel]]:
    """A host as its controller sees it, and its agent's end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    theirs.settimeout(None)
    host, agent = Host(Channel(Connection(ours.detach()), 1)), Channel(Connection(theirs.detach()))
    yield host, agent
    host.close()
    with suppress(OSError):
        agent.close()


def answers(agent: Channel, *messages: dict[str, Any]) -> None:
    """Answer orders one after the other; what is not JSON goes out as Python would read it."""
    for message in messages:
        number = agent.receive()["ask"]
        agent.connection.send_bytes(json.dumps({"answer": number, **message}).encode())


def in_time(work: Callable[[], Any]) -> Any:
    """Return the result or the error of `work`; fail if it does not end by itself."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SOON_S)
    assert found, "it goes on for ever"
    return found[0]


INFINITE = float("inf")


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("written", {}),
        ("written", {"written": []}),
        ("written", {"written": [INFINITE]}),
        ("written", {"written": ["12"]}),
        ("delays", {"delays": [[]]}),
        ("delays", {"delays": [{"1": -1}]}),
        ("evidence", {}),
        ("evidence", {"evidence": [{"log": ""}]}),
        ("evidence", {"evidence": [{"log": 1, "stacks": ""}]}),
    ],
)
def test_an_answer_without_its_fields_is_one_message_that_names_the_host(
    ends: tuple[Host, Channel], what: str, answer: dict[str, Any]
) -> None:
    host, agent = ends
    threading.Thread(target=answers, args=(agent, answer), daemon=True).start()
    started = HostProcesses([RemoteHost(HELLO, host)], ["place-0"])
    if what == "evidence":  # of a host that is lost there is none, and no failure either
        assert [one.log for one in in_time(lambda: started.evidence([]))] == [""]
        with pytest.raises(HostGone):
            host.exits()
        return
    found = in_time(getattr(started, what))
    assert isinstance(found, TargetDown)
    assert str(found).startswith("host n1 (rank 1) was lost: ")


@pytest.mark.parametrize(
    "answer", [{}, {"address": None}, {"address": "here"}, {"address": "h:99999"}]
)
def test_a_port_that_is_none(ends: tuple[Host, Channel], answer: dict[str, Any]) -> None:
    host, agent = ends
    threading.Thread(target=answers, args=(agent, answer), daemon=True).start()
    found = in_time(lambda: host.answer(host.ask("reserve")))
    assert isinstance(found, HostGone)


@pytest.mark.parametrize(
    "status", [INFINITE, -INFINITE, 1.5, "1", None, True, 256, -1000, 10**30], ids=str
)
def test_an_exit_that_is_none(ends: tuple[Host, Channel], status: Any) -> None:
    host, agent = ends
    host.ask("spawn", worker={"place": "place-0"})
    agent.connection.send_bytes(json.dumps({"exited": "place-0", "status": status}).encode())
    started = HostProcesses([RemoteHost(HELLO, host)], ["place-0"])
    found = in_time(lambda: until_told(started))
    assert isinstance(found, TargetDown)
    assert "host n1 (rank 1) was lost: " in str(found)


def until_told(started: HostProcesses) -> Any:
    while not (ended := started.exits()):
        pass
    return ended


def test_a_worker_ends_once_and_only_where_it_was_started(ends: tuple[Host, Channel]) -> None:
    host, agent = ends
    host.ask("spawn", worker={"place": "place-0"})
    agent.send({"exited": "place-0", "status": -9})
    started = HostProcesses([RemoteHost(HELLO, host)], ["place-0"])
    assert [(one.process, one.code) for one in in_time(lambda: until_told(started))] == [(0, -9)]
    agent.send({"exited": "place-0", "status": -9})

    def again() -> None:
        while True:
            host.exits()

    assert isinstance(in_time(again), HostGone)


@pytest.mark.parametrize("asks", [False, True], ids=["looked-at", "asked"])
def test_whoever_sends_exits_without_end_is_cut_off(ends: tuple[Host, Channel], asks: bool) -> None:
    host, agent = ends

    def flood() -> None:
        number = 0
        with suppress(OSError):
            while True:
                number += 1
                agent.send({"exited": f"place-{number}", "status": 0})

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()

    def look() -> Any:
        while not asks:
            host.exits()
        return host.answer(host.ask("mark", places=[]))

    found = in_time(look)
    assert isinstance(found, HostGone)
    assert "{'exited': 'place-" in str(found)
    host.close()
    thread.join(SOON_S)
    assert not thread.is_alive(), "it still sends to a host that was cut off"


def drawn(random_: random.Random, depth: int = 0) -> Any:
    """Any JSON, and what Python reads beside it."""
    simple: list[Callable[[], Any]] = [
        lambda: None,
        lambda: random_.choice([True, False]),
        lambda: random_.randint(-(10**30), 10**30),
        lambda: random_.choice([0, 1, -1, 2, 255, INFINITE, -INFINITE, float("nan")]),
        lambda: random_.choice(["", "place-0", "\0", "\ud800", "a" * 1000, "10.0.0.1:7"]),
    ]
    if depth < 3 and random_.random() < 0.3:
        return [drawn(random_, depth + 1) for _ in range(random_.randint(0, 3))]
    if depth < 3 and random_.random() < 0.3:
        keys = ["log", "stacks", "x", "1"]
        return {random_.choice(keys): drawn(random_, depth + 1) for _ in range(2)}
    return random_.choice(simple)()


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_host_answers_it_is_believed_or_lost(seed: int) -> None:
    """Never another error, and never a value that does not fit."""
    random_ = random.Random(seed)
    orders = {"spawn": "pid", "written": "written", "delays": "delays", "evidence": "evidence"}
    lost = believed = 0
    for _ in range(MESSAGES):
        do, field = random_.choice([*orders.items(), ("reserve", "address")])
        host = Host(Silent())  # type: ignore[arg-type]
        number = host.ask(do, places=["place-0"], worker={"place": "place-0"})
        message: Any = {"answer": number, field: drawn(random_)}
        if random_.random() < 0.3:
            message = {random_.choice(["answer", "exited", "status"]): drawn(random_)} | {
                random_.choice(["answer", "exited", "x"]): drawn(random_)
            }
        elif random_.random() < 0.3:
            message[field] = {
                "pid": 1,
                "written": [0],
                "delays": [{}],
                "evidence": [{"log": "", "stacks": ""}],
                "address": "h:1",
            }[field]
        try:
            host._take(message)
        except HostGone as gone:
            lost += 1
            text = str(gone)
        else:
            believed += 1
            text = ""
        assert len(text) < 400, message
    assert lost > MESSAGES / 4
    assert believed > MESSAGES / 10


class Silent:
    """A channel to nobody."""

    def send(self, message: Any) -> None:
        return


def frames(random_: random.Random) -> bytes:
    """Return bytes that a client without the key may send: nearly a handshake, or random ones."""
    made: list[Callable[[], bytes]] = [
        lambda: random_.randbytes(random_.randint(0, 300)),
        lambda: struct.pack("!i", random_.choice([0, 1, 20, 256, 257, 2**31 - 1, -1, -2])),
        lambda: struct.pack("!i", 16) + b"#CHALLENGE#12345",
        lambda: struct.pack("!i", 28) + b"{md5}" + random_.randbytes(23),
        lambda: struct.pack("!i", 9) + b"#WELCOME#",
        lambda: struct.pack("!i", 20) + random_.randbytes(20),
        lambda: struct.pack("!i", 15) + b'{"place": "me"}',
        lambda: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
    return b"".join(random_.choice(made)() for _ in range(random_.randint(1, 3)))


@pytest.mark.parametrize("seed", SEEDS)
def test_whoever_has_no_key_announces_nothing_and_stops_nobody(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[Any] = []
    others = threading.enumerate()  # what another test left running is none of the hub's

    def keep(error: Any) -> None:
        if error.thread not in others:
            failed.append(error)

    monkeypatch.setattr(threading, "excepthook", keep)
    random_ = random.Random(seed)
    hub = Hub()
    host, port = hub.address.rsplit(":", 1)
    for number in range(FRAMES):
        with (
            socket.create_connection((host, int(port)), timeout=SOON_S) as client,
            suppress(ConnectionError),
        ):
            client.sendall(frames(random_))
            if number % 10 == 0:
                client.recv(64)
    client_ = open_to_controller(hub.address, hub.key)
    client_.send({"place": PLACE})
    assert hub.wait_for(PLACE, SOON_S) is not None
    assert hub.wait_for("me", 0.0) is None
    assert hub._arrived == {}
    hub.close()
    assert failed == []


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_peer_sends_is_a_message_or_invalid(seed: int) -> None:
    random_ = random.Random(seed)
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    mine, other = Channel(Connection(ours.detach()), 1), Connection(theirs.detach())
    invalid = messages = 0
    for _ in range(MESSAGES):
        data = json.dumps({"value": drawn(random_)}).encode()
        if random_.random() < 0.3:
            at = random_.randrange(len(data))
            data = data[:at] + random_.randbytes(random_.randint(0, 4)) + data[at + 1 :]
        other.send_bytes(data)
        try:
            message = mine.receive()
        except ProtocolError:
            invalid += 1
        else:
            messages += 1
            json.dumps(message, allow_nan=False)
    assert invalid > MESSAGES / 10
    assert messages > MESSAGES / 10
    for end in (mine, other):
        end.close()
