"""The page on the user's own code: its programs and commands run, and print what stands there."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import HANGS_S, outside_pytest

from conformance.commandline.ending import PROGRAM
from harness.commandline.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "your-code.md"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(m["language"], m["text"]) for m in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
PROGRAMS = [text for language, text in BLOCKS if language == "py"]


def commands() -> Iterator[tuple[str, str]]:
    """Each command, with what the block below it says that it prints."""
    for (language, text), (below, printed) in itertools.pairwise(BLOCKS):
        if language == "sh":
            assert below == "text"
            yield text.strip(), printed


def expression(line: str) -> re.Pattern[str]:
    """A line that is printed, in which `...` stands for whatever."""
    return re.compile(".*".join(map(re.escape, line.split("..."))))


def test_every_program_names_its_file_and_every_command_is_one() -> None:
    assert len(PROGRAMS) == 4
    for text in PROGRAMS:
        assert re.match(r"# \w+\.py\n", text)
    named = {words.split()[1] for words, _ in commands()}
    assert named == {"launch", "compare", "bisect"} <= {one.name for one in COMMANDS}


@pytest.mark.long
@pytest.mark.parametrize(("command", "printed"), list(commands()))
def test_commands_print_what_stands_below_them(command: str, printed: str, tmp_path: Path) -> None:
    for text in PROGRAMS:
        (tmp_path / text.split("\n", 1)[0].removeprefix("# ")).write_text(text)
    program, *words = shlex.split(command)
    assert program == PROGRAM
    done = subprocess.run(
        [sys.executable, "-m", "harness.commandline", *words],
        cwd=tmp_path,
        env={**outside_pytest(), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    lines = done.stdout.splitlines()
    missing = [
        line
        for line in printed.splitlines()
        if not any(expression(line).fullmatch(one) for one in lines)
    ]
    assert missing == [], done.stdout
