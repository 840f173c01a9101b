"""What the README says of published results: made of them, current, nothing where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_results import cell, claim, clause, target
from site_pages import loaded

from reports.__main__ import main
from reports.reading.results import Results, load
from reports.reading.verdicts import Verdict
from reports.readme import BEGIN, END, ReadmeError, lines, replaced

ROOT = Path(__file__).parents[2]
MOST_BYTES = 15_000_000  # of all that is published
PUBLISHED = ROOT / "reports" / "published" / "matrix.jsonl.xz"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """A program that returns under legacy pmap, and is ended by a signal under the new one."""
    return loaded(
        tmp_path,
        [
            target(),
            target("0.12.0.1"),
            claim("migrate-pmap.errors"),
            clause("errors.a"),
            cell("errors.a", implementation="legacy_pmap"),
            cell("errors.a", "crashed", target="jax==0.12.0.1"),
        ],
    )


def test_an_upgrade_is_a_row_and_the_gravest_are_told(results: Results) -> None:
    told = list(lines(results))
    (row,) = [line for line in told if line.startswith("| legacy")]
    assert row == (
        "| legacy pmap 0.9.0 | new pmap 0.12.0.1 | 1 | 0 | 0 | 0 | 0 | 0 of 1 program | 0 cells |"
    )
    (finding,) = [line for line in told if line.startswith("- ")]
    assert "(crashes or hangs, 4x2)" in finding


def test_only_what_is_between_the_marks_is_made(results: Results) -> None:
    once = replaced(f"a\n{BEGIN}\nold\n{END}\nb\n", results)
    assert once.startswith(f"a\n{BEGIN}\n")
    assert once.endswith(f"\n{END}\nb\n")
    assert "old" not in once
    assert replaced(once, results) == once


@pytest.mark.parametrize("readme", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_a_readme_without_its_marks_is_refused(readme: str, results: Results) -> None:
    with pytest.raises(ReadmeError, match="no place for the summary"):
        replaced(readme, results)


def test_results_of_no_legacy_pmap_are_refused(tmp_path: Path) -> None:
    new = loaded(
        tmp_path,
        [target(), claim("migrate-pmap.errors"), clause("errors.a"), cell("errors.a")],
    )
    with pytest.raises(ReadmeError, match="no legacy pmap"):
        list(lines(new))


def test_a_command_that_cannot_says_why_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "README.md"
    file.write_text("nothing here", encoding="utf-8")
    assert main(["readme", str(tmp_path / "none.jsonl"), "--into", str(file)]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == "nothing here"


@pytest.fixture(scope="module")
def published() -> Results:
    return load([PUBLISHED])


def test_the_readme_says_what_the_published_results_say(published: Results) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = replaced(readme, published)
    assert readme == made, "run: python -m reports readme reports/published/matrix.jsonl.xz"


def test_no_published_cell_is_red_or_unexplained(published: Results) -> None:
    red = {Verdict.DEVIATES, Verdict.CRASHED, Verdict.HUNG, Verdict.FLAKY, Verdict.UNKNOWN}
    assert [key for key, one in published.outcomes.items() if one.verdict in red] == []


def test_what_is_published_is_small() -> None:
    assert sum(file.stat().st_size for file in PUBLISHED.parent.iterdir()) < MOST_BYTES
