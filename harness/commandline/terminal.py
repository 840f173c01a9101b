"""Lines on standard output: wrapped and coloured on a terminal, unchanged elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FEWEST_COLUMNS = 40
_INDENT = 4  # of what is wrapped, more than its line has

_RED, _GREEN, _YELLOW, _BOLD = "31", "32", "33", "1"
# Verdicts and what commands print of the same kind; whole words only.
_COLOURS: Mapping[str, str] = {
    "conforms": _GREEN,
    "known deviation": _GREEN,
    "deviates": _RED,
    "crashed": _RED,
    "hung": _RED,
    "WRONG": _RED,
    "regression": _RED,
    "regressions": _RED,
    "flaky": _YELLOW,
    "not run": _YELLOW,
}
_WORD = re.compile(rf"\b({'|'.join(sorted(_COLOURS, key=len, reverse=True))})\b")


@dataclass(frozen=True, slots=True)
class Style:
    """How lines are printed: wrapped at `columns` (None: not at all), with colours or without."""

    columns: int | None = None
    colours: bool = False

    def render(self, line: str) -> str:
        """Return a line as it is printed."""
        if self.columns is not None and len(line) > self.columns:
            line = self._wrapped(line, self.columns)
        return self._coloured(line) if self.colours else line

    @staticmethod
    def _wrapped(line: str, columns: int) -> str:
        indent = len(line) - len(line.lstrip()) + _INDENT
        return "\n".join(
            textwrap.wrap(
                line,
                max(columns, FEWEST_COLUMNS),
                subsequent_indent=" " * min(indent, columns // 2),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )

    @staticmethod
    def _coloured(line: str) -> str:
        if line.endswith(":") and not line.startswith(" "):
            return f"\x1b[{_BOLD}m{line}\x1b[0m"
        return _WORD.sub(lambda m: f"\x1b[{_COLOURS[m[1]]}m{m[1]}\x1b[0m", line)


def style(environment: Mapping[str, str]) -> Style:
    """Return the style for standard output: plain if it is not a terminal; NO_COLOR is obeyed."""
    if not sys.stdout.isatty():
        return Style()
    columns = shutil.get_terminal_size().columns
    dumb = environment.get("TERM") == "dumb"
    return Style(columns, colours=not environment.get("NO_COLOR") and not dumb)


def write(lines: Iterable[str]) -> None:
    """Print lines of prose as they come."""
    chosen = style(os.environ)
    for line in lines:
        print(chosen.render(line))


def write_text(text: str) -> None:
    """Print a text of several lines, with or without a final newline."""
    write(text.removesuffix("\n").split("\n"))
