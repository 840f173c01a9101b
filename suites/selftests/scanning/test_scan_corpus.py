"""The corpus of a scan: what is found in each program, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanned_programs import (
    FOLDER,
    HELD_OUT,
    HELD_OUT_2,
    HELD_OUT_3,
    Program,
    found_in,
    measured,
    programs,
    report_of,
)

LEAST, LEAST_HELD_OUT = 80, 40
FOUND_AT_LEAST, FALSE_AT_MOST = 0.95, 0.02
# Of 39 places that were listed; one of the lines that were not listed is a false alarm.
FOUND_ONCE, NOT_LISTED_ONCE = 31, 5

MODULE = """
import jax
step = jax.pmap(lambda x: x + 1)
def make(f):
    return jax.pmap(f)
"""
TRAINER = """
import jax
class Trainer:
    def __init__(self, scale):
        self.step = jax.pmap(lambda x: x * scale)
class SubTrainer(Trainer):
    pass
"""
FIRST = """
import jax
def first(tree):
    return jax.tree.map(lambda x: x[0], tree)
"""


def names(program: Program) -> str:
    return program.file.name


@pytest.mark.parametrize("program", programs(), ids=names)
def test_a_program_has_the_findings_that_it_expects(program: Program) -> None:
    report = report_of(program.file, old=program.old, new=program.new, unchanged=program.unchanged)
    assert report.unread == ()
    assert program.expected <= found_in(report)
    lines = {line for line, _ in program.expected}
    assert [
        f"{one.place.line}: {one.says}" for one in report.findings if one.place.line not in lines
    ] == []


def test_the_corpus_is_large_and_has_programs_without_a_finding() -> None:
    some = programs()
    assert len(some) >= LEAST
    assert sum(1 for one in some if not one.expected) >= LEAST // 4
    issues = {slug for one in some for _, slug in one.expected}
    assert len(issues) >= LEAST // 3


def test_nearly_all_is_found_in_programs_that_the_rules_were_not_written_for() -> None:
    expected, found, false = 0, 0, list[str]()
    missed: list[str] = []
    for one in (some := programs(HELD_OUT)):
        report = report_of(one.file, old=one.old, new=one.new, unchanged=one.unchanged)
        here = one.expected & found_in(report)
        lines = {line for line, _ in one.expected}
        false += [finding.spot for finding in report.findings if finding.place.line not in lines]
        missed += [f"{one.file.name}:{line}: {slug}" for line, slug in one.expected - here]
        expected, found = expected + len(one.expected), found + len(here)
    assert len(some) >= LEAST_HELD_OUT
    assert found >= FOUND_AT_LEAST * expected, missed
    assert len(false) <= FALSE_AT_MOST * found, false


def test_nearly_all_is_found_in_programs_by_which_the_rules_were_corrected() -> None:
    some = measured(HELD_OUT_2)
    assert some.expected > LEAST * 2
    assert some.found >= FOUND_AT_LEAST * some.expected, some.missed
    assert len(some.false) <= FALSE_AT_MOST * some.found, some.false


def test_what_was_found_in_programs_measured_once_is_found_still() -> None:
    some = measured(HELD_OUT_3)
    assert some.found >= FOUND_ONCE, some.missed
    assert len(some.false) <= NOT_LISTED_ONCE, some.false


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("line", "files"),
    [
        pytest.param(
            "return step(x)[0]",
            {
                "pkg/maps": MODULE,
                "main": "from pkg.maps import step\ndef f(x):\n    return step(x)[0]\n",
            },
            id="imported",
        ),
        pytest.param(
            "return maps.step(x)[0]",
            {
                "pkg/maps": MODULE,
                "main": "from pkg import maps\ndef f(x):\n    return maps.step(x)[0]\n",
            },
            id="imported module",
        ),
        pytest.param(
            "return pkg.maps.step(x)[0]",
            {
                "pkg/maps": MODULE,
                "main": "import pkg.maps\ndef f(x):\n    return pkg.maps.step(x)[0]\n",
            },
            id="dotted",
        ),
        pytest.param(
            "return advance(x)[0]",
            {
                "pkg/maps": MODULE,
                "pkg/__init__": "from .maps import step as advance\n",
                "main": "from pkg import advance\ndef f(x):\n    return advance(x)[0]\n",
            },
            id="exported again",
        ),
        pytest.param(
            "return make(len)(x)[0]",
            {
                "pkg/maps": MODULE,
                "main": "from pkg.maps import make\ndef f(x):\n    return make(len)(x)[0]\n",
            },
            id="wrapper",
        ),
        pytest.param(
            "return some.step(x)[0]",
            {
                "pkg/maps": TRAINER,
                "main": "import jax\nfrom pkg.maps import Trainer\n"
                "def f(some: Trainer, x):\n    return some.step(x)[0]\n",
            },
            id="annotated with an imported class",
        ),
        pytest.param(
            "return trainer.step(x)[0]",
            {
                "pkg/maps": TRAINER,
                "main": "import jax\nfrom pkg.maps import SubTrainer, Trainer\n"
                "def f(trainer, x):\n    return trainer.step(x)[0]\n",
            },
            id="named like an imported class",
        ),
        pytest.param(
            "return jax.tree.map(lambda x: x[0], tree)",
            {
                "pkg/maps": FIRST,
                "main": "import jax\nfrom pkg.maps import first\n"
                "def f(x):\n    return first(jax.pmap(len)(x))\n",
            },
            id="helper",
        ),
        pytest.param(
            "return tree[0]",
            {
                "helpers": "def first(tree):\n    return tree[0]\n",
                "main": "import jax\nfrom helpers import first\n"
                "def f(x):\n    return first(jax.pmap(len)(x))\n",
            },
            id="helper of a file without jax",
        ),
    ],
)
def test_names_are_followed_through_the_tree(
    line: str, files: dict[str, str], tmp_path: Path
) -> None:
    report = report_of(tree(tmp_path, files))
    assert [one.line_text.strip() for one in report.findings] == [line]


def test_a_finding_that_a_file_has_once_counts_the_others() -> None:
    (one,) = report_of(FOLDER / "called_in_several_loops.py").findings
    assert one.says == "A pmapped function is called in a loop, and 2 more calls in this file"


@pytest.mark.long
def test_many_files_are_scanned_by_several_processes(tmp_path: Path) -> None:
    files = {f"pkg/m{at}": MODULE + "def f(x):\n    return step(x)[0]\n" for at in range(120)}
    files |= {f"plain/m{at}": "import os\n" for at in range(400)}
    alone = report_of(tree(tmp_path, files))
    both = report_of(tmp_path, jobs=2)
    assert alone.findings == both.findings
    assert len(alone.findings) == 120
    assert alone.parsed == 120
