"""Generate the reference page of all commands and of pytest's options, in Markdown.

It is made from the parsers and not from `--help`, whose layout depends on Python's version and on
the terminal.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any, cast

from conformance.commandline.ending import PROGRAM
from harness.commandline.command import STATUSES
from harness.commandline.main import COMMANDS, Command

_HEAD = f"""# Command line

Every command and option of `{PROGRAM}`, and the options that pytest has for these tests.

This page is generated from the parsers by `{PROGRAM} dev docs`: do not edit it.

All tools are one command, `{PROGRAM}`. Where no script is on the PATH, use
`python -m harness.commandline`. The cells themselves can also be run by pytest, with the
[options below](#options-of-pytest).

Progress and errors go to standard error. In a terminal, lines are wrapped and coloured;
`NO_COLOR=1` turns colours off.

| exit status | meaning |
|---|---|"""


class _Group:
    """A group of pytest's options, collected by a parser of the standard library."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.parser = argparse.ArgumentParser(add_help=False)

    def addoption(self, *names: str, **more: Any) -> None:
        self.parser.add_argument(*names, **more)


class _Groups:
    """The interface that pytest passes to a plugin that adds options, as far as ours uses it."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []

    def getgroup(self, name: str, description: str = "") -> _Group:
        self.groups.append(_Group(description or name))
        return self.groups[-1]


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for line in STATUSES.splitlines()[1:]:
        number, _, meaning = line.strip().partition("  ")
        yield f"| {number} | {_cell(meaning)} |"
    yield ""
    yield "| command | what it does |"
    yield "|---|---|"
    for one in COMMANDS:
        yield f"| [`{one.name}`](#{one.name.replace(' ', '-')}) | {_cell(one.help)} |"
    for one in COMMANDS:
        yield from _command(one)
    yield from _pytest()


def _command(command: Command) -> Iterator[str]:
    parser = command.parser()
    yield ""
    yield f"## {command.name}"
    yield ""
    yield f"{command.help[0].upper()}{command.help[1:]}."
    yield ""
    yield "```text"
    yield _usage(parser)
    yield "```"
    epilog = (parser.epilog or "").replace(STATUSES, "").strip()
    if epilog:
        yield ""
        yield "```text"
        yield epilog
        yield "```"
    yield from _table(parser)


def _pytest() -> Iterator[str]:
    from harness.plugin import options

    found = _Groups()
    options.add(cast(Any, found))
    yield ""
    yield "## Options of pytest"
    yield ""
    yield (
        "In a checkout, `pytest suites/` takes these options. In an environment that has only the "
        "wheel, use `pytest --pmap-conformance --pyargs harness.suite`."
    )
    for group in found.groups:
        yield ""
        yield f"### {group.description[0].upper()}{group.description[1:]}"
        yield from _table(group.parser)


def _usage(parser: argparse.ArgumentParser) -> str:
    if parser.usage:
        return parser.usage % {"prog": parser.prog}
    actions = _shown(parser)
    words = [parser.prog]
    words += [
        f"{_names(one)[0]} {_metavar(one)}".strip()
        for one in actions
        if one.option_strings and one.required
    ]
    words += ["[options]"] if any(_is_optional(one) for one in actions) else []
    words += [_positional(one) for one in actions if not one.option_strings]
    return " ".join(words)


def _positional(action: argparse.Action) -> str:
    name = _metavar(action)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(
        str(action.nargs), name
    )


def _is_optional(action: argparse.Action) -> bool:
    return bool(action.option_strings) and not action.required


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a parser, without --help and hidden ones."""
    return [
        one
        for one in parser._actions
        if one.help != argparse.SUPPRESS and "--help" not in one.option_strings
    ]


def _table(parser: argparse.ArgumentParser) -> Iterator[str]:
    actions = _shown(parser)
    if not actions:
        return
    yield ""
    yield "| argument | meaning |"
    yield "|---|---|"
    for one in actions:
        names = ", ".join(f"`{f'{name} {_metavar(one)}'.strip()}`" for name in _names(one))
        yield f"| {names} | {_cell(_meaning(parser, one))} |"


def _names(action: argparse.Action) -> list[str]:
    return list(action.option_strings) or [""]


def _metavar(action: argparse.Action) -> str:
    """Return the placeholder of an argument's value; empty if it takes none."""
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return _choices(action.choices)
    return action.dest.upper() if action.option_strings else action.dest


def _choices(choices: Iterable[Any]) -> str:
    return f"{{{','.join(map(str, choices))}}}"


def _meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return the help of an argument, with its default if the help names it."""
    known = {**vars(action), "prog": parser.prog}
    if action.choices is not None:
        known["choices"] = ", ".join(map(str, action.choices))
    text = (action.help or "") % known
    return f"{text}; required" if action.option_strings and action.required else text


def _cell(text: str) -> str:
    """Return text as a table cell: in one line, with bars and angle brackets escaped."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")
