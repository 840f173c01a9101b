"""The agent of one host: connects to the controller, describes its host, and forks its workers.

Any launcher (ssh, Slurm, MPI, Kubernetes) starts this command once on each host; the rest of the
harness does not depend on which launcher it was.
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import stat
import sys
import time
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import Any

from conformance.commandline import limits
from conformance.commandline.ending import PROGRAM, reason, without_traceback
from conformance.worker import deadlines, machine
from conformance.worker.channel import KEY_VARIABLE, Channel, ProtocolError, open_to_controller
from conformance.worker.descent import end_with_parent
from conformance.worker.output import Output
from conformance.worker.zygote import CATALOGUE_VARIABLE, Forked, Zygote

PLACE = "agent"  # that is announced where no job names another
DIAL = "dial"  # the order to go to another port of the controller's machine
FEWEST_KEY_BYTES = 16
MOST_KEY_CHARACTERS = 4096
OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO  # what the mode of a key file must not grant
MOST_RANK = 1_000_000

EXIT_REFUSED = 2


class AgentError(Exception):
    """The agent cannot do its work; the text says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the controller until the connection ends; return 2 if it cannot be reached."""
    parser = argparse.ArgumentParser(prog="python -m conformance.worker.agent", description=__doc__)
    add(parser)
    return serve(parser.parse_args(arguments))


def serve(chosen: argparse.Namespace) -> int:
    """Serve the controller named by the options that `add` declares; return 2 if it cannot be
    reached.
    """
    try:
        key = read_key(chosen.key_file, os.environ.get(KEY_VARIABLE))
        rank = chosen.rank if chosen.rank is not None else machine.rank_in_job(os.environ)
        _serve(chosen.controller, key, rank, chosen.place, chosen.patience)
    except AgentError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr, flush=True)
    return EXIT_REFUSED


def read_key(file: Path | None, variable: str | None) -> str:
    """Return the key as hexadecimal digits, from a file or else an environment variable.

    Never from an argument, because every user of a host can read the arguments of a process.
    AgentError if neither is given, or the key is too short.
    """
    if file is not None:
        text = _of_its_owner_alone(file)
        where = f"{file}"
    elif variable:
        text, where = variable.strip(), f"the variable {KEY_VARIABLE}"
    else:
        raise AgentError(f"no key: give --key-file FILE, or set {KEY_VARIABLE}")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) < FEWEST_KEY_BYTES:
        raise AgentError(
            f"{where} has no key of at least {2 * FEWEST_KEY_BYTES} hexadecimal digits: let the "
            "controller write it (pytest --key-file FILE), and copy the file"
        )
    return key.hex()


def _of_its_owner_alone(file: Path) -> str:
    """Return the text of a key file; AgentError if it is empty, or if other users can read or write
    it.
    """
    try:
        with file.open(encoding="ascii") as stream:
            if os.fstat(stream.fileno()).st_mode & OF_OTHERS:
                raise AgentError(f"{file} can be read or changed by others: run `chmod 600 {file}`")
            return stream.read(MOST_KEY_CHARACTERS).strip()
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else f"{file}: not hexadecimal digits"
        raise AgentError(f"{why}: give a key file that can be read") from error


def dial(controller: str, key: str, patience_s: float) -> Channel:
    """Connect to the controller, waiting until it is there; AgentError if it refuses the
    connection.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return open_to_controller(controller, key)
        except AuthenticationError as error:
            raise AgentError(
                f"the controller at {controller} and this host have different keys: give both "
                "the same --key-file"
            ) from error
        except (OSError, EOFError) as error:
            if time.monotonic() > deadline:
                why = reason(error) or "it closed the connection"
                raise AgentError(
                    f"no controller at {controller} within {patience_s:g} s ({why}): start it "
                    "with pytest --hosts N --listen HOST:PORT, and let this host reach that port"
                ) from error
        time.sleep(deadlines.POLL_S)


def _serve(controller: str, key: str, rank: int | None, place: str, patience_s: float) -> None:
    from conformance.catalogue.loading import PACKAGE

    name = os.environ.get(machine.NAME_VARIABLE, "")
    names = os.environ.get(CATALOGUE_VARIABLE, PACKAGE).split(",")
    machine.forget_the_job(os.environ, tpu=bool(machine.devices("tpu", os.environ)))
    end_with_parent(lambda: os._exit(1))
    # Not after the import, which may take long: a key that is wrong is to be told at once.
    dial(controller, key, patience_s).close()
    from conformance.worker import process

    catalogue = process.load(names)
    while True:
        channel = dial(controller, key, patience_s)
        address = own_address(channel)
        channel.send({"place": place, "pid": os.getpid(), **machine.described(address, rank, name)})
        try:
            first = channel.receive()
        except (EOFError, ProtocolError):
            os._exit(0)  # it has no use for this host; at once, as a zygote ends
        if first.get("do") != DIAL:
            break
        channel.close()
        controller = f"{controller.rpartition(':')[0]}:{int(first['port'])}"

    def complete(settings: dict[str, Any]) -> Forked:
        output = Output.without_names()
        files = {"log": str(output.log), "stacks": str(output.stacks)}
        return Forked({**settings, "address": controller, "key": key, **files}, output)

    Zygote(channel, catalogue, address, complete).serve(first)


def own_address(channel: Channel) -> str:
    """Return this host's address on the network that it shares with the controller."""
    with socket.socket(fileno=socket.dup(channel.connection.fileno())) as same:
        return str(same.getsockname()[0])


def new_key() -> str:
    """Generate a random key."""
    return secrets.token_bytes(2 * FEWEST_KEY_BYTES).hex()


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of an agent."""
    parser.add_argument("--controller", type=limits.address, required=True, metavar="HOST:PORT")
    parser.add_argument(
        "--key-file", type=Path, metavar="FILE", help=f"else the variable {KEY_VARIABLE}"
    )
    parser.add_argument(
        "--rank",
        type=limits.whole(0, MOST_RANK),
        help=f"this host's number (default: {', '.join(machine.RANK_VARIABLES)})",
    )
    parser.add_argument("--place", default=PLACE, help=argparse.SUPPRESS)
    parser.add_argument(
        "--patience",
        type=limits.patience,
        default=deadlines.HOSTS_S,
        metavar="SECONDS",
        help="for a controller that is not there yet (default: %(default)g)",
    )


if __name__ == "__main__":
    sys.exit(without_traceback(main))
