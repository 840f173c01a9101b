"""The options of commands that call a user's function: its name, arguments and mapping."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.catalogue.spelling import did_you_mean
from conformance.commandline.limits import seconds, whole
from conformance.spec.names import IMPLEMENTATIONS
from conformance.spec.topology import Topology
from conformance.worker.deadlines import CASE_S
from harness.commandline.command import UsageError

if TYPE_CHECKING:
    from harness.usercode.function import FunctionName
    from harness.usercode.observing import Call

OWN = "own"
MOST_SEED = 2**32 - 1
MOST_FED = 1000
RIGHTS = """The function runs with your rights, in the processes of a cluster on this machine:
name only code that you trust. Its module is imported in each process, from this folder."""


def add_function(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a function call."""
    parser.add_argument(
        "--mapped",
        action="store_true",
        help="the function maps by itself (it calls jax.pmap); without it, it is a body, mapped "
        "over all devices by each implementation",
    )
    parser.add_argument(
        "--args",
        metavar="ARRAYS",
        help="random arguments: 'f32[n,128] i32[128]', n being the number of devices",
    )
    parser.add_argument(
        "--inputs",
        metavar="FUNCTION",
        help="module:make or file.py:make, a function that returns the tuple of arguments; it may "
        "take the number of devices",
    )
    parser.add_argument(
        "--in-axes",
        default=None,
        metavar="AXES",
        help="for each argument, or for all: an axis, or None (default: 0)",
    )
    parser.add_argument("--out-axes", default=None, metavar="AXIS", help="default: 0")
    parser.add_argument("--axis-name", metavar="NAME", help="default: i")
    parser.add_argument("--donate", metavar="N,...", help="positions of donated arguments")
    parser.add_argument(
        "--feed",
        type=whole(0, MOST_FED),
        default=0,
        metavar="K",
        help="pass the first K results as the first K arguments of the next call, as a training "
        "loop does with its state",
    )
    parser.add_argument(
        "--seed", type=whole(0, MOST_SEED), default=0, help="of --args (default: %(default)s)"
    )
    parser.add_argument(
        "--deadline",
        type=seconds,
        default=CASE_S,
        metavar="SECONDS",
        help="of one run, compilation included (default: %(default)g)",
    )


def parse_call(chosen: argparse.Namespace, timed: int = 0) -> Call:
    """Return the function call that the options describe; ValueError names a wrong option."""
    from harness.usercode.arguments import parse_arguments, parse_axes, parse_numbers
    from harness.usercode.observing import Call

    function = find_function(chosen.function)
    _check_options(chosen)
    out = parse_axes(chosen.out_axes or "0", "--out-axes")
    if len(out) != 1:
        raise UsageError(f"--out-axes {chosen.out_axes}: give one axis, or None")
    donate = parse_numbers(chosen.donate, "--donate") if chosen.donate else ()
    arguments = parse_arguments(chosen.args) if chosen.args is not None else ()
    if arguments and donate and max(donate) >= len(arguments):
        raise UsageError(f"--donate {chosen.donate}: there are {len(arguments)} arguments, from 0")
    return Call(
        function=function,
        mapped=chosen.mapped,
        inputs=find_function(chosen.inputs) if chosen.inputs else None,
        arguments=arguments,
        in_axes=parse_axes(chosen.in_axes or "0", "--in-axes"),
        out_axes=out[0],
        axis_name=chosen.axis_name or "i",
        donate=donate,
        feed=chosen.feed,
        seed=chosen.seed,
        timed=timed,
        deadline_s=chosen.deadline,
    )


def _check_options(chosen: argparse.Namespace) -> None:
    """Raise UsageError if options contradict each other."""
    if chosen.args is not None and chosen.inputs:
        raise UsageError("--args and --inputs: give one of them")
    if not chosen.mapped and chosen.args is None and not chosen.inputs:
        raise UsageError("no arguments: give --args 'f32[n,128]', or --inputs module:make")
    if chosen.mapped:
        for option in ("in_axes", "out_axes", "axis_name", "donate"):
            if getattr(chosen, option) is not None:
                raise UsageError(
                    f"--{option.replace('_', '-')}: --mapped runs a function that maps by "
                    "itself, so leave it out"
                )


def find_function(text: str) -> FunctionName:
    """Return a function by name, relative to the working directory."""
    from harness.usercode.function import parse_function

    return parse_function(text, Path.cwd(), os.environ.get("PYTHONPATH", ""))


def check_arguments(call: Call, topology: Topology) -> None:
    """Raise ArgumentsError if --args cannot be mapped on a topology."""
    from harness.usercode.arguments import check_mapped

    if call.arguments and not call.mapped:
        check_mapped(call.arguments, call.in_axes, topology.devices, str(topology))


def check_implementations(names: list[str], mapped: bool) -> list[str]:
    """Return the implementations to run; UsageError if one does not exist or cannot be used."""
    known = [*IMPLEMENTATIONS, OWN] if mapped else [*IMPLEMENTATIONS]
    for one in names:
        if one not in known:
            meant = did_you_mean(one, known) or f"; there are {', '.join(known)}"
            raise UsageError(f"--implementation {one}: there is no such implementation{meant}")
        if mapped and one == IMPLEMENTATIONS[-1]:
            raise UsageError(
                f"--implementation {one}: a function that maps by itself is run as it is: write "
                f"{OWN}, or compare it with another by --against"
            )
    return names or [*(IMPLEMENTATIONS[:-1] if mapped else IMPLEMENTATIONS)]
