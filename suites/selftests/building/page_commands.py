"""Pages whose programs and commands are run: what they print stands below each command."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from documented import PROJECT, Block, blocks
from processes import HANGS_S, outside_pytest

from conformance.commandline.ending import PROGRAM

PROGRAM_LANGUAGE = "py"
_NAME = re.compile(r"# (\w+\.py)\n")


@dataclass(frozen=True, slots=True)
class Command:
    """A block of command lines, and the lines that they print; `...` in these is for anything."""

    lines: tuple[str, ...]
    printed: tuple[str, ...]

    def missing(self, folder: Path) -> list[str]:
        """Run it in a folder, and return the lines that it should have printed and did not."""
        said = "\n".join(_output(shlex.split(line), folder) for line in self.lines)
        lines = said.splitlines()
        absent = [one for one in self.printed if not any(map(_expression(one).fullmatch, lines))]
        return [*absent, said] if absent else []


@dataclass(frozen=True)
class Page:
    """A page of `docs` with programs and commands."""

    name: str

    @cached_property
    def _blocks(self) -> list[Block]:
        return blocks(PROJECT / "docs" / self.name)

    @property
    def programs(self) -> list[str]:
        """The programs; the first line of each is a comment that names its file."""
        return [one.text for one in self._blocks if one.language == PROGRAM_LANGUAGE]

    @property
    def commands(self) -> Iterator[Command]:
        """The commands, in order. AssertionError where no output stands below one."""
        for one, below in itertools.pairwise(self._blocks):
            if one.language == "sh":
                assert below.language == "text", one.text
                yield Command(tuple(one.text.splitlines()), tuple(below.text.splitlines()))

    def write_programs(self, folder: Path) -> None:
        """Write each program into its file."""
        for text in self.programs:
            match = _NAME.match(text)
            assert match is not None, text[:40]
            (folder / match[1]).write_text(text)


def _expression(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.split("..."))))


def _output(words: list[str], folder: Path) -> str:
    """Return a command's standard output and standard error."""
    if words[0] == PROGRAM:
        words = [sys.executable, "-m", "harness.commandline", *words[1:]]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**outside_pytest(), "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    return done.stdout
