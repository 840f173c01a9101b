"""The entry point of `pmap-conformance`: the table of commands, and how each of them ends.

Importing this module imports only the standard library: a command's module is imported when the
command is called. An agent's host has only jax and numpy.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.catalogue.spelling import did_you_mean
from conformance.commandline.ending import PROGRAM, of_output, reason, without_traceback
from harness.commandline.command import DONE, FAILED, STATUSES, Action, Parser, UsageError

HELP = ("-h", "--help")
VERSION = "--version"


@dataclass(frozen=True, slots=True)
class Command:
    """A row of the table: a command's words, the module of its options, and a line of help."""

    name: str
    module: str
    help: str

    @property
    def words(self) -> tuple[str, ...]:
        """The words that select the command, such as `("report", "site")`."""
        return tuple(self.name.split())

    @property
    def action(self) -> Action:
        """Return the command's options and function; imports its module."""
        module = importlib.import_module(f"harness.commandline.{self.module}")
        actions: dict[str, Action] = module.ACTIONS
        return actions[self.name]

    def parser(self) -> Parser:
        """Return the parser of the command's own arguments."""
        parser = Parser(
            prog=f"{PROGRAM} {self.name}",
            description=f"{self.help[0].upper()}{self.help[1:]}.",
            epilog=STATUSES,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.action.add(parser)
        return parser


COMMANDS = tuple(
    Command(*row)
    for row in (
        ("run", "run", "run cells, and write results, a summary and a site"),
        ("list cells", "catalogue", "list the cells that a run of a tier takes"),
        ("list claims", "catalogue", "list the claims with their numbers of clauses; or one"),
        ("list clauses", "catalogue", "list the clauses"),
        ("list deviations", "catalogue", "list the deviation entries"),
        ("show", "catalogue", "show a clause: what it expects, how it is written and run"),
        ("new", "catalogue", "write a clause's skeleton into the module of its section"),
        ("drift", "catalogue", "list the headings of a document that changed since its review"),
        ("results merge", "results", "judge results again, as one file of many; nothing is run"),
        ("results summary", "results", "count cells by verdict"),
        ("results compare", "results", "list what changed between two runs or two JAX of one"),
        ("results strength", "results", "perturb recorded cells, and count what is noticed"),
        ("results coverage", "results", "list claims without a clause, and what no run exercised"),
        ("results propose", "results", "print the deviation entries that recorded cells ask for"),
        ("results durations", "results", "take the durations by which the core tier is chosen"),
        ("report site", "report", "write the static site"),
        (
            "report upgrade",
            "report",
            "print what changes between two implementations and JAX versions",
        ),
        ("report findings", "report", "print what JAX does and no document says"),
        ("report agreement", "report", "compare the implementations field by field"),
        ("report nightly", "report", "print the text of an issue about a nightly run"),
        ("causes list", "causes", "list the known issues, and the versions that show them"),
        ("causes run", "causes", "run the programs that show the known issues"),
        ("compare", "compare", "compare a function of yours between implementations and JAX"),
        ("bisect", "bisect", "find the JAX release in which a function of yours changes"),
        ("launch", "launch", "run a script of yours as several JAX processes, here or on hosts"),
        ("targets list", "targets", "list the Pythons and the cached targets of this machine"),
        ("targets add", "targets", "install targets into the cache"),
        ("scan", "scan", "find the known issues that concern a code base"),
        ("agent", "targets", "serve a controller's run with this host"),
        ("manifest", "targets", "print the objects that Kubernetes runs"),
        ("dev bench", "dev", "time the harness and the commands"),
        ("dev readme", "dev", "write what upgrades change into a README, between marks"),
        ("dev docs", "dev", "write the generated pages of the documentation"),
        ("dev changes", "dev", "write what each known issue changes between any two sides"),
        ("dev libraries", "dev", "write what libraries do beside releases of JAX"),
        ("dev names", "dev", "write which public names of JAX went away between releases"),
        ("dev pods", "dev", "print what an access moves as a TPU pod grows: compiled, not run"),
        (
            "dev freeze",
            "dev",
            "write verdicts and effects, a line each, or compare with these",
        ),
        (
            "dev boundaries",
            "dev",
            "list where entries and known issues begin and end, and what settles it",
        ),
    )
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0, 1 (it found something) or 2 (it failed)."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except UsageError as error:
        return _refuse(reason(error))


def run() -> int:
    """Run the command of this process and return its exit status, also if its output cannot be
    written.
    """
    # Most commands keep what they read: looking for cycles in it takes a third of their time.
    gc.disable()
    return without_traceback(main)


def _run(words: list[str]) -> int:
    if words[:1] == [VERSION]:
        print(f"{PROGRAM} {version()}")
        return DONE
    command = _named(words)
    if command is None:
        group = words[0] if words[0] not in HELP else ""
        print(_overview(group))
        return DONE
    action = command.action
    own = words[len(command.words) :]
    at = own.index("--") if action.passes_on and "--" in own else len(own)
    try:
        chosen = command.parser().parse_intermixed_args(own[:at])
    except SystemExit:  # after --help
        return DONE
    chosen.passed = own[at + 1 :]
    if not action.keeps_all:
        gc.enable()
    try:
        return action.run(chosen)
    except Exception as error:
        if of_output(error) or not isinstance(error, _refused(action)):
            raise
        return _refuse(_line(error))


def _named(words: Sequence[str]) -> Command | None:
    """Return the command that `words` begin with; None for the help of all or of a group."""
    if not words:
        raise UsageError(f"no command; `{PROGRAM} --help` lists them")
    if words[0] in HELP:
        return None
    for depth in (1, 2):
        for one in COMMANDS:
            if one.words == tuple(words[:depth]):
                return one
    second = {one.words[1]: one for one in COMMANDS if one.words[0] == words[0]}
    if not second:
        firsts = list(dict.fromkeys(one.words[0] for one in COMMANDS))
        whole = [one.name for one in COMMANDS if one.words[-1] == words[0]]
        meant = f"; did you mean {' or '.join(whole)}?" if whole else ""
        raise UsageError(
            f"no command is called {words[0]}{meant or did_you_mean(words[0], firsts) or ';'} "
            f"`{PROGRAM} --help` lists them"
        )
    if len(words) == 1:
        raise UsageError(f"{words[0]}: name one of {', '.join(second)}")
    if words[1] in HELP:
        return None
    meant = did_you_mean(words[1], second) or f"; there are {', '.join(second)}"
    raise UsageError(f"no command is called {words[0]} {words[1]}{meant}")


def _overview(group: str) -> str:
    """Return the help of all commands, or of those of a group."""
    some = [one for one in COMMANDS if not group or one.words[0] == group]
    wide = max(len(one.name) for one in some) + 2
    lines = [
        f"usage: {PROGRAM} {group or 'COMMAND'} ...",
        "" if group else f"       {PROGRAM} {VERSION}",
        "",
        *(f"  {one.name:<{wide}}{one.help}" for one in some),
        "",
        f"`{PROGRAM} {group or 'COMMAND'}{' COMMAND' if group else ''} --help` lists its options.",
        STATUSES,
    ]
    return "\n".join(lines[:1] + lines[2:] if group else lines)


def _refused(action: Action) -> tuple[type[Exception], ...]:
    # Imported where something was raised: none is needed by a command that succeeds.
    from conformance.store.errors import ResultsError
    from harness.targets.environments import TargetError
    from reports.store.input_error import InputError

    return (InputError, ResultsError, TargetError, *action.refuses)


def _line(error: Exception) -> str:
    """Return an error's message in one line; an installer's message keeps its lines."""
    from harness.targets.environments import TargetError

    return f"{error}" if isinstance(error, TargetError) else reason(error)


def _refuse(text: str) -> int:
    print(f"{PROGRAM}: {text}", file=sys.stderr)
    return FAILED


def version() -> str:
    """Return the installed version, or that this is a source tree."""
    from importlib import metadata

    try:
        return metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:
        return "(not installed: a source tree)"
