"""Channel and hub: whatever a worker may send, the controller reads it, refuses it or gives up."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from typing import Any

import pytest
from processes import until

from conformance.worker import channel as channel_module
from conformance.worker.channel import Channel, ProtocolError, open_to_controller
from harness.clusters import hub as hub_module
from harness.clusters.hub import Hub

SOON_S = 30.0  # for what takes milliseconds on an idle machine


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    yield made
    made.close()


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Connection]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    mine, other = Channel(Connection(ours.detach()), 1), Connection(theirs.detach())
    yield mine, other
    for end in (mine, other):
        if not (end.connection if isinstance(end, Channel) else end).closed:
            end.close()


def dial(hub: Hub) -> socket.socket:
    host, port = hub.address.rsplit(":", 1)
    client = socket.create_connection((host, int(port)), timeout=SOON_S)
    client.settimeout(None)  # with one, its descriptor would not block
    return client


@contextmanager
def given_up(end: Connection) -> Iterator[None]:
    """Closes `end` where the test would otherwise wait for it for ever."""
    timer = threading.Timer(2 * SOON_S, end.close)
    timer.start()
    yield
    timer.cancel()


def test_what_is_sent_is_what_is_received(ends: tuple[Channel, Connection]) -> None:
    mine, other = ends
    message = {"case": "1", "values": [1.5, None, "ü"], "deep": {"er": True}}
    Channel(other).send(message)
    assert mine.waiting(SOON_S)
    assert mine.receive() == message
    assert not mine.waiting()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x04\x95 pickled", "no JSON"),
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[1, 2]", "no object"),
        (b'"text"', "no object"),
        (b"null", "no object"),
        (b'{"rank": Infinity}', "no JSON"),
        (b'{"rank": NaN}', "no JSON"),
        (b'{"rank": 1e999}', "no JSON"),
        (b'{"rank": ' + b"9" * 400 + b"}", "no JSON"),
    ],
    ids=[
        *("bytes", "nothing", "not-utf-8", "too-deep", "list", "string", "null"),
        *("infinite", "not-a-number", "too-large", "too-long"),
    ],
)
def test_what_is_no_message_is_invalid(
    ends: tuple[Channel, Connection], data: bytes, why: str
) -> None:
    mine, other = ends
    other.send_bytes(data)
    with pytest.raises(ProtocolError, match=why):
        mine.receive()


def test_a_message_longer_than_the_limit_is_invalid(
    ends: tuple[Channel, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = ends
    monkeypatch.setattr(channel_module, "LARGEST_MESSAGE_BYTES", 100)
    other.send_bytes(b'{"a": "' + b"x" * 100 + b'"}')
    with pytest.raises(ProtocolError, match="100 bytes"):
        mine.receive()


def test_a_length_of_two_gigabytes_is_refused_before_they_arrive(
    ends: tuple[Channel, Connection],
) -> None:
    mine, other = ends
    os.write(other.fileno(), b"\x7f\xff\xff\xff" + b"x" * 64)
    with pytest.raises(ProtocolError, match="longer than"):
        mine.receive()


@pytest.mark.parametrize("beginning", [b"\x00\x00", b"\x00\x00\x01\x00{"], ids=["length", "body"])
def test_the_rest_of_a_message_is_not_waited_for_for_ever(
    ends: tuple[Channel, Connection], beginning: bytes
) -> None:
    mine, other = ends
    os.write(other.fileno(), beginning)
    began = time.monotonic()
    with given_up(other), pytest.raises(ProtocolError, match="not its rest"):
        mine.receive()
    assert 0.9 <= time.monotonic() - began < 1 + SOON_S


@pytest.mark.parametrize("said", [b"", b"\x00\x00\x01\x00{"], ids=["nothing", "half-a-message"])
def test_the_end_is_the_end_even_in_the_middle_of_a_message(
    ends: tuple[Channel, Connection], said: bytes
) -> None:
    mine, other = ends
    os.write(other.fileno(), said)
    other.close()
    with pytest.raises(EOFError):
        mine.receive()


def test_a_message_that_is_no_json_is_never_sent(ends: tuple[Channel, Connection]) -> None:
    mine, other = ends
    with pytest.raises(ValueError, match="JSON"):
        mine.send({"value": float("nan")})
    assert not other.poll()


def test_sending_to_who_is_gone_is_an_oserror(ends: tuple[Channel, Connection]) -> None:
    mine, other = ends
    other.close()
    with pytest.raises(EOFError):
        mine.receive()
    mine.send({"still": "there?"})  # answered by a reset
    time.sleep(0.1)
    with pytest.raises(ConnectionError):
        mine.send({"and": "now?"})


def test_the_hub_hands_out_the_channel_of_whoever_announced_the_place(hub: Hub) -> None:
    one, two = (open_to_controller(hub.address, hub.key) for _ in range(2))
    two.send({"place": "two", "pid": 2})
    one.send({"place": "one", "pid": 1})
    first, second = hub.wait_for("one", SOON_S), hub.wait_for("two", SOON_S)
    assert first is not None
    assert second is not None
    assert (first[1]["pid"], second[1]["pid"]) == (1, 2)
    first[0].send({"for": "one"})
    assert one.receive() == {"for": "one"}
    assert hub.wait_for("one", 0.0) is None, "a place is filled once"


def test_a_place_that_nobody_fills_is_not_waited_for_longer_than_asked(hub: Hub) -> None:
    began = time.monotonic()
    assert hub.wait_for("nobody", 0.2) is None
    assert 0.2 <= time.monotonic() - began < SOON_S


def test_a_client_with_another_key_is_refused(hub: Hub) -> None:
    host, port = hub.address.rsplit(":", 1)
    with pytest.raises((AuthenticationError, EOFError, ConnectionError)):
        Client((host, int(port)), authkey=b"another key")
    assert hub.wait_for("anything", 0.2) is None


def test_a_client_that_proves_nothing_announces_nothing(hub: Hub) -> None:
    with dial(hub) as client:
        other = Connection(os.dup(client.fileno()))
        other.recv_bytes()
        other.send_bytes(b'{"place": "mine"}')
        assert hub.wait_for("mine", 0.3) is None
        other.close()


@pytest.mark.parametrize("hello", [{"pid": 1}, {}], ids=["no-place", "empty"])
def test_a_hello_without_a_place_closes_the_connection(hub: Hub, hello: dict[str, int]) -> None:
    client = open_to_controller(hub.address, hub.key)
    client.send(hello)
    assert client.waiting(SOON_S)
    with pytest.raises(EOFError):
        client.receive()


def test_silent_clients_keep_nobody_waiting(hub: Hub) -> None:
    silent = [dial(hub) for _ in range(20)]
    began = time.monotonic()
    client = open_to_controller(hub.address, hub.key)
    client.send({"place": "here"})
    assert hub.wait_for("here", SOON_S) is not None
    assert time.monotonic() - began < SOON_S
    for one in silent:
        one.close()


def test_a_silent_client_is_cut_off(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "HANDSHAKE_S", 0.3)
    with dial(hub) as client:
        challenge = Connection(os.dup(client.fileno()))
        challenge.recv_bytes()
        began = time.monotonic()
        with pytest.raises((EOFError, OSError)):
            challenge.recv_bytes()
        assert time.monotonic() - began < SOON_S
        challenge.close()


def test_half_a_message_of_an_admitted_worker_is_given_up(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "PATIENCE_S", 1)
    client = open_to_controller(hub.address, hub.key)
    client.send({"place": "here"})
    arrived = hub.wait_for("here", SOON_S)
    assert arrived is not None
    os.write(client.connection.fileno(), b"\x00\x00\x01\x00{")
    began = time.monotonic()
    with given_up(client.connection), pytest.raises(ProtocolError, match="not its rest"):
        arrived[0].receive()
    assert time.monotonic() - began < 1 + SOON_S


class Failing:
    """A listening socket whose next connections cannot be taken."""

    def __init__(self, real: socket.socket, *numbers: int) -> None:
        self._real = real
        self.numbers = list(numbers)

    def accept(self) -> Any:
        if self.numbers:
            number = self.numbers.pop(0)
            raise OSError(number, os.strerror(number))
        return self._real.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def admitted(hub: Hub, place: str) -> bool:
    """Return whether a client with the key is accepted."""

    def come_in() -> None:
        open_to_controller(hub.address, hub.key).send({"place": place})

    threading.Thread(target=come_in, daemon=True).start()  # it waits for an answer
    return hub.wait_for(place, SOON_S) is not None


@pytest.mark.parametrize(
    "number",
    [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOBUFS, errno.ENOMEM, errno.EPROTO],
    ids=lambda number: errno.errorcode[number],
)
def test_a_connection_that_cannot_be_taken_is_not_the_last(number: int) -> None:
    said: list[str] = []
    hub = Hub(refused=said.append)
    assert admitted(hub, "before")
    failing = Failing(hub._socket, number, number, number)
    hub._socket = failing  # type: ignore[assignment]
    dial(hub).close()  # it wakes the loop, which asks the next one
    assert admitted(hub, "after")
    assert failing.numbers == []
    hub.close()
    line = f"a connection could not be taken: {os.strerror(number)}; listening goes on"
    assert said == [line], "once, not for each"


def test_a_thread_that_cannot_be_started_is_not_the_last(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admitted(hub, "before")
    fails = [True]

    class Thread(threading.Thread):
        def start(self) -> None:
            if fails and self._target.__name__ == "_admit":  # type: ignore[attr-defined]
                fails.clear()
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(hub_module.threading, "Thread", Thread)
    dial(hub).close()
    assert until(lambda: not fails, SOON_S)  # of the test's own threads none may fail
    assert admitted(hub, "after")


# A controller that may open few files; whoever connects to it says nothing.
FEW_FILES = """
import os, resource, sys
from harness.clusters.hub import Hub
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
hub = Hub(refused=lambda line: print("said", line, flush=True))
print(hub.address, hub.key, flush=True)
files = []
if sys.argv[1] == "taken":
    try:
        while True:
            files.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        print("full", flush=True)
    sys.stdin.readline()
    for file in files:
        os.close(file)
print("admitted" if hub.wait_for("here", 10.0) else "nobody came", flush=True)
"""


def arrive(address: str, key: str) -> None:
    """Come as "here"; waits for an answer as long as the controller lives."""
    with suppress(EOFError, OSError):
        open_to_controller(address, key).send({"place": "here"})


@pytest.mark.parametrize("by", ["silent", "taken"])
def test_a_controller_without_descriptors_admits_who_has_the_key(by: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FEW_FILES, by],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as controller:
        assert controller.stdin is not None
        assert controller.stdout is not None
        address, key = controller.stdout.readline().split()
        host, port = address.rsplit(":", 1)
        silent = []
        if by == "silent":
            silent = [socket.create_connection((host, int(port))) for _ in range(100)]
        else:
            assert controller.stdout.readline() == "full\n"
            silent = [socket.create_connection((host, int(port)))]
            time.sleep(0.5)  # the loop has met the error by then, and must not have ended of it
            controller.stdin.write("\n")
            controller.stdin.flush()
        arriving = threading.Thread(target=arrive, args=(address, key), daemon=True)
        arriving.start()
        lines = controller.stdout.read().splitlines()
        for one in silent:
            one.close()
    assert lines[-1] == "admitted"
    assert len([line for line in lines if line.startswith("said")]) == 1, lines


def test_of_too_many_without_the_key_the_oldest_are_dropped() -> None:
    said: list[str] = []
    hub = Hub(refused=said.append, unproven=3)
    silent = [dial(hub) for _ in range(5)]
    ends = [Connection(os.dup(one.fileno())) for one in silent]
    for end in ends[:2]:
        with given_up(end), suppress(EOFError, OSError):
            end.recv_bytes()  # the challenge, if it came before the end
        with given_up(end), pytest.raises((EOFError, OSError)):
            end.recv_bytes()
    for end in ends[2:]:
        end.recv_bytes()
        assert not end.poll(0.2), "a younger one was dropped"
    assert admitted(hub, "here")
    (line,) = said
    assert "more than 3" in line
    hub.close()
    for one in (*silent, *ends):
        one.close()


def test_a_closed_hub_takes_nobody(hub: Hub) -> None:
    hub.close()
    with pytest.raises(ConnectionError):
        dial(hub)
