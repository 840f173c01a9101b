"""The pages on the user's own code: their commands run, and print what stands there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from page_commands import Command, Page

from conformance.commandline.ending import PROGRAM
from harness.commandline.main import COMMANDS

YOUR_CODE, MIGRATION = Page("your-code.md"), Page("migration.md")


def first_words(page: Page) -> set[str]:
    """The command of this project that each line of a page runs; or another program."""
    words = [shlex.split(line) for one in page.commands for line in one.lines]
    return {some[1] if some[0] == PROGRAM else some[0] for some in words}


@pytest.mark.parametrize(
    ("page", "programs", "used"),
    [
        (YOUR_CODE, 4, {"launch", "compare", "bisect"}),
        (MIGRATION, 3, {"launch", "scan", "compare", "cp"}),
    ],
    ids=["your code", "migration"],
)
def test_programs_name_their_files_and_commands_are_known(
    page: Page, programs: int, used: set[str], tmp_path: Path
) -> None:
    page.write_programs(tmp_path)
    assert len(list(tmp_path.iterdir())) == len(page.programs) == programs
    assert first_words(page) == used
    assert used - {"cp"} <= {one.name for one in COMMANDS}


@pytest.mark.long
@pytest.mark.parametrize("command", list(YOUR_CODE.commands), ids=lambda one: one.lines[0])
def test_commands_print_what_stands_below_them(command: Command, tmp_path: Path) -> None:
    YOUR_CODE.write_programs(tmp_path)
    assert command.missing(tmp_path) == []


@pytest.mark.long
def test_a_training_program_is_migrated_as_its_page_says(tmp_path: Path) -> None:
    """Each step needs what the one before it left: the edited program, the checkpoints."""
    MIGRATION.write_programs(tmp_path)
    for command in MIGRATION.commands:
        assert command.missing(tmp_path) == []
