"""Run one host's processes of a launched job.

A launcher starts `python -m harness.usercode.host_agent --controller HOST:PORT` once on each host.
It connects to the command `launch`, starts what that orders, and sends what the processes print
and how they end. When the connection ends, it ends them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.commandline.ending import PROGRAM, reason, without_traceback
from conformance.spec.topology import Topology
from conformance.worker import agent, machine
from conformance.worker.channel import KEY_VARIABLE, Channel, ProtocolError
from conformance.worker.descent import end_with_parent
from conformance.worker.folders import Scratch
from conformance.worker.ports import ReservedPort
from harness.targets.platforms import named
from harness.usercode.joining import process_variables
from harness.usercode.leftovers import VARIABLE, end_leftovers
from harness.usercode.processes import POLL_S, Processes, Program

STREAMS = ("out", "err")
ENCODING = "latin-1"  # of bytes in a message: each byte is a character


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the command that launched the job until the connection ends; return 2 if it cannot be
    reached.
    """
    parser = argparse.ArgumentParser(prog="python -m harness.usercode.host_agent")
    agent.add(parser)
    chosen = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        key = agent.read_key(chosen.key_file, os.environ.pop(KEY_VARIABLE, None))
        rank = chosen.rank if chosen.rank is not None else machine.rank_in_job(os.environ)
        # A command that gave up listens no longer, and is dialled for as long as one that starts.
        end_with_parent(lambda: sys.exit(1))
        channel = agent.dial(chosen.controller, key, chosen.patience)
    except agent.AgentError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr, flush=True)
        return agent.EXIT_REFUSED
    # The connection's end is how a launch that was killed ends its hosts.
    with contextlib.suppress(EOFError, OSError, ProtocolError):
        _serve(channel, chosen.place, rank)
    return 0


def _serve(channel: Channel, place: str, rank: int | None) -> None:
    address = agent.own_address(channel)
    port = ReservedPort(address)
    host = os.environ.get(machine.NAME_VARIABLE) or socket.gethostname()
    channel.send({"place": place, "rank": rank, "host": host, "coordinator": port.address})
    order = channel.receive()
    with Scratch("launch") as folder:
        try:
            _start_and_run(channel, order, folder)
        finally:
            end_leftovers(order["mark"])
            port.close()


def _start_and_run(channel: Channel, order: Mapping[str, Any], folder: Path) -> None:
    try:
        processes = _start(order, _Streams(channel, order["processes"]), folder)
    except OSError as error:
        channel.send({"refused": reason(error)})
        return
    try:
        _run(channel, processes)
    finally:
        processes.close()


def _start(order: Mapping[str, Any], streams: _Streams, folder: Path) -> Processes:
    """Start this host's processes in the folder of the command; OSError if that is impossible."""
    os.chdir(order["folder"])
    platform, topology = named(order["platform"]), Topology.parse(order["topology"])
    base = {name: value for name, value in os.environ.items() if name not in order["variables"]}
    base |= {name: value for name, value in order["variables"].items() if value is not None}
    environments = [
        process_variables(base, topology, number, order["coordinator"], platform, {}, local)
        | {VARIABLE: order["mark"]}
        for local, number in enumerate(order["processes"])
    ]
    program = Program(
        Path(order["python"]), order["script"], tuple(order["arguments"]), order["module"]
    )
    return Processes(program, environments, streams, folder)


def _run(channel: Channel, processes: Processes) -> None:
    """Watch the processes and obey the orders until one is to end all."""
    last: Any = None
    while True:
        processes.watch(POLL_S)
        if processes.over:  # they are watched no longer, so wait here
            channel.waiting(POLL_S)
        while channel.waiting():
            if not _obey(channel.receive()["do"], channel, processes):
                return
        if (now := processes.changes) != last:
            last = now
            _send_states(channel, processes)


def _obey(order: str, channel: Channel, processes: Processes) -> bool:
    """Obey one order; return whether the job goes on."""
    if order == "stacks":
        processes.ask_stacks()
    elif order == "interrupt":
        processes.interrupt()
    elif order == "end":
        processes.end()
        processes.finish()
    _send_states(channel, processes)
    channel.send({"done": order})
    return order != "end"


def _send_states(channel: Channel, processes: Processes) -> None:
    ends = [dataclasses.asdict(one) for one in processes.records()]
    states = [
        {"failed": one.failed, "over": one.ended_at is not None, "end": end}
        for one, end in zip(processes.running, ends, strict=True)
    ]
    channel.send({"states": states})


class _Stream:
    """Sends what one process writes to one stream."""

    def __init__(self, channel: Channel, stream: str, number: int) -> None:
        self._channel = channel
        self._what = {"stream": stream, "process": number}

    def take(self, data: bytes) -> None:
        """Send it."""
        self._channel.send({**self._what, "data": data.decode(ENCODING)})


class _Streams:
    """Where the processes of this host write."""

    def __init__(self, channel: Channel, numbers: Sequence[int]) -> None:
        self.out, self.err = (
            [_Stream(channel, stream, number) for number in numbers] for stream in STREAMS
        )


if __name__ == "__main__":
    sys.exit(without_traceback(main))
