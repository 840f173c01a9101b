"""`python -m harness`: what a user asks the harness outside a test run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.commandline.ending import of_output, reason, without_traceback

RESULTS = ("*.jsonl", "*.jsonl.xz")  # what is read of a folder; not what a run keeps beside them
TIERS = ("core", "full")  # as harness.running.tiers, which a command imports by itself


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; 2 with one line on standard error where it cannot be done.

    An agent's host has jax and numpy alone, so what a command imports, it imports by itself.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["agent"]:
        from harness.clusters import agent

        return agent.main(words[1:])
    return _of_this_machine(words)


def _parser() -> argparse.ArgumentParser:
    from harness.clusters.launchers import kubernetes

    parser = argparse.ArgumentParser(prog="python -m harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("targets", help="the Pythons and the cached targets of this machine")
    install = commands.add_parser("provision", help="install targets into the cache")
    install.add_argument("spec", nargs="+", help="as for --target: jax==0.9.0, newest")
    timed = commands.add_parser("bench", help="time the harness itself, and the command line tools")
    timed.add_argument("spec", nargs="?", default="current")
    timed.add_argument("--tools", action="store_true", help="the command line tools alone")
    commands.add_parser("agent", help="serve a controller's run with this host (agent --help)")
    kubernetes.add(commands.add_parser("manifest", help="print what Kubernetes is to run"))
    listed = commands.add_parser("list", help="the cells of a tier: what a run would take")
    listed.add_argument("--tier", choices=TIERS, default=TIERS[0], help="default: %(default)s")
    listed.add_argument(
        "--target",
        action="append",
        metavar="SPEC",
        help="as jax==0.9.0, repeatable; nothing is installed (default: current)",
    )
    took = commands.add_parser(
        "durations", help="take from results how long runs took, by which the core tier is chosen"
    )
    took.add_argument("files", metavar="RESULTS", type=Path, nargs="+")
    anew = commands.add_parser(
        "rejudge", help="one results file of many, judged by today's catalogue, with nothing run"
    )
    anew.add_argument(
        "files",
        metavar="RESULTS",
        type=Path,
        nargs="+",
        help="results, or a folder of them",
    )
    anew.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the same")
    anew.add_argument(
        "--no-red",
        action="store_true",
        help="write nothing, and exit 2, where a cell or a measurement of the time lane is red",
    )
    return parser


def _of_this_machine(arguments: Sequence[str]) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        if chosen.command == "manifest":
            _manifest(chosen)
        elif chosen.command == "bench":
            return _bench(chosen)
        elif chosen.command == "provision":
            _provision(chosen.spec)
        elif chosen.command == "list":
            _list(chosen.tier, chosen.target or ["current"])
        elif chosen.command == "durations":
            _durations(chosen.files)
        elif chosen.command == "rejudge":
            _rejudge(chosen.files, chosen.output, chosen.no_red)
        else:
            _targets()
    except _input_errors() as error:
        if of_output(error):
            raise
        # Other texts than the system's have lines of their own, as what an installer said.
        text = reason(error) if isinstance(error, OSError) else f"{error}"
        print(f"conformance: {text}", file=sys.stderr)
        return 2
    return 0


def _input_errors() -> tuple[type[Exception], ...]:
    """What is answered with one line; asked for, and imported, where something was raised."""
    from harness.targets.target import TargetError

    return (TargetError, OSError, ValueError)


def _manifest(chosen: argparse.Namespace) -> None:
    from harness.clusters.launchers import kubernetes

    print(kubernetes.printed(chosen))


def _bench(chosen: argparse.Namespace) -> int:
    from harness.running import bench, tool_bench

    tool_bench.main()
    return 0 if chosen.tools else bench.main([chosen.spec])


def _in(folder: Path) -> list[Path]:
    """The results files of a folder, but those that are hidden."""
    found = {one for pattern in RESULTS for one in folder.glob(pattern)}
    return sorted(one for one in found if not one.name.startswith("."))


def _rejudge(files: Sequence[Path], output: Path, no_red: bool) -> None:
    from harness.plugin.rejudge import rejudge

    named = [one for file in files for one in (_in(file) or [file])]
    found = rejudge(
        named,
        output,
        progress=lambda text: print(f"conformance: {text}", flush=True),
        no_red=no_red,
    )
    size = output.stat().st_size / 1e6
    print(f"{len(found.kept)} cells, judged by today's catalogue: {output} ({size:.1f} MB)")
    for why, count in found.why.most_common():
        print(f"  {count} left out: {why}")


def _list(tier: str, specs: Sequence[str]) -> None:
    from harness.running import listing

    found = listing.cells_of(tier, specs)
    for cell in sorted(found.cells, key=lambda one: (one.clause, str(one))):
        print(f"{cell.clause} {cell.implementation} {cell.topology} {cell.target}")
    print(f"{tier}: {len(found.cells)} cells, {found.runs} of {found.of} runs", file=sys.stderr)


def _durations(files: Sequence[Path]) -> None:
    from harness.running import durations, tiers

    print(f"{durations.write(files)} runs of {durations.LEAST_S} s and more: {tiers.FILE}")


def _targets() -> None:
    from harness.targets.interpreters import find
    from harness.targets.target import cached, default_cache

    for interpreter in find():
        print(f"python {'.'.join(map(str, interpreter.version))}  {interpreter.path}")
    print(f"cache  {default_cache()}")
    for target in cached():
        extras = f" with {', '.join(target.extras)}" if target.extras else ""
        print(f"  {target.spec:<15} {target.python}{extras}")


def _provision(specs: Sequence[str]) -> None:
    from harness.targets.target import describe, provision

    for spec in specs:
        target = provision(spec, progress=lambda text: print(f"conformance: {text}", flush=True))
        known = ", ".join(f"{name} {version}" for name, version in describe(target).items())
        print(f"{target.spec}: {known}")


def _run() -> int:
    return without_traceback(main, "conformance")


if __name__ == "__main__":
    sys.exit(_run())
