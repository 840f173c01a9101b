"""The definition of a command: its options, its function, and the errors it reports in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from conformance.commandline.ending import PROGRAM

DONE = 0
FOUND = 1  # a command found what it is to fail on
FAILED = 2  # it could not do its work

STATUSES = f"""exit status:
  {DONE}  done
  {FOUND}  done, and found what fails it: a red cell, a regression, or what --fail-on names
  {FAILED}  not done: one line on standard error says why, and nothing is written"""


class UsageError(ValueError):
    """An invalid command line; the message says which part, and what to do."""


class Parser(argparse.ArgumentParser):
    """The parser of one command; errors are UsageErrors of one line."""

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError with the message and how to get help; argparse would exit."""
        raise UsageError(f"{message}; `{self.prog} --help` shows what there is")


@dataclass(frozen=True, slots=True)
class Action:
    """A command's implementation.

    `add` declares its options. `run` executes it and returns the exit status. Errors of the types
    `refuses` are reported in one line, as InputError and TargetError are for every command.
    """

    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    refuses: tuple[type[Exception], ...] = (OSError, ValueError)
    passes_on: bool = False  # takes words after `--` as `passed`
    keeps_all: bool = False  # what it reads stays in use: looking for cycles only costs time


def report_progress(text: str) -> None:
    """Print a line of progress on standard error."""
    print(f"{PROGRAM}: {text}", file=sys.stderr, flush=True)
