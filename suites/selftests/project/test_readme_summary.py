"""The README's summary of published results: generated from them and current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.version import Version
from records import (
    FIRST,
    Record,
    cause,
    cell,
    claim,
    clause,
    deviation,
    observation,
    raised,
    sample_step,
    target,
)
from site_pages import loaded

from conformance.model.verdicts import Verdict
from harness.commandline.main import main
from reports.analysis.effects.changed import Group, Upgrade
from reports.analysis.effects.explained import By
from reports.analysis.effects.known import load_known
from reports.analysis.effects.pairs import Effects, cell_of, side
from reports.analysis.effects.upgrade import upgrade
from reports.render.readme import BEGIN, END, Change, ReadmeError, lines, load_changes, replaced
from reports.store.results import Results, load

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
MOST_BYTES = 15_000_000  # of all that is published
PUBLISHED = ROOT / "reports" / "published" / "matrix.jsonl.xz"
EXPLAINED = {*Group} - {Group.FIX_FAILS, Group.REPAIRED}  # of those each has a clause that says it


CHANGES = (Change("A change (x[0])", ("a-cause", "another")),)
OLD, NEXT, NEWEST = "0.7.2", "0.8.0", "0.12.0.1"


def observed(step: Record) -> list[Record]:
    return [observation(step, process=process) for process in range(4)]


def results_with(*endings: tuple[str, str, str], folder: Path) -> Results:
    """A program that returns under legacy pmap, with the verdict of the new one and its cause."""
    records = [
        *(target(OLD), claim("migrate-pmap.errors"), clause("errors.a")),
        *(cause(slug) for slug in ("a-cause", "another")),
        cell(
            "errors.a",
            implementation="legacy_pmap",
            target=f"jax=={OLD}",
            observations=observed(sample_step()),
        ),
    ]
    for jax, verdict, slug in endings:
        records += [
            target(jax),
            cell(
                "errors.a",
                verdict,
                target=f"jax=={jax}",
                observations=observed(raised(name=FIRST) if slug else sample_step()),
                deviation=deviation(cause=slug) if slug else None,
            ),
        ]
    return loaded(folder, records)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    endings = (NEXT, "known deviation", "a-cause"), (NEWEST, "known deviation", "another")
    return results_with(*endings, folder=tmp_path)


def test_a_change_is_a_line_with_its_effect_and_versions(results: Results) -> None:
    first, _, measured = lines(results, CHANGES)
    assert first == (
        "1. [A change (x[0])](docs/upgrade.md#a-change-x0): error; several processes only; "
        "JAX 0.8.0 and later."
    )
    assert re.findall(r"\d+ \w+", measured)[:2] == ["3 cells", "1 tests"]
    assert "(x86_64)" in measured


@pytest.mark.parametrize(
    ("endings", "versions"),
    [
        (((NEXT, "known deviation", "a-cause"), (NEWEST, "conforms", "")), "JAX 0.8.0."),
        (((NEXT, "conforms", ""), (NEWEST, "known deviation", "a-cause")), "JAX 0.12.0.1 and"),
    ],
)
def test_versions_are_those_that_show_it(
    endings: tuple[tuple[str, str, str], ...], versions: str, tmp_path: Path
) -> None:
    first, *_ = lines(results_with(*endings, folder=tmp_path), CHANGES)
    assert f"; {versions}" in first


def test_a_worse_effect_of_earlier_versions_is_told(tmp_path: Path) -> None:
    endings = (NEXT, "crashed", "a-cause"), (NEWEST, "known deviation", "a-cause")
    first, *_ = lines(results_with(*endings, folder=tmp_path), CHANGES)
    assert "(JAX 0.8.0: crash)" in first


def test_a_change_that_is_no_longer_seen_is_refused(results: Results) -> None:
    with pytest.raises(ReadmeError, match="shows gone: remove"):
        list(lines(results, [Change("A change", ("gone",))]))


def test_only_what_is_between_the_marks_is_made(results: Results) -> None:
    once = replaced(f"a\n{BEGIN}\nold\n{END}\nb\n", results, CHANGES)
    assert once.startswith(f"a\n{BEGIN}\n")
    assert once.endswith(f"\n{END}\nb\n")
    assert "old" not in once
    assert replaced(once, results, CHANGES) == once


@pytest.mark.parametrize("readme", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_a_readme_without_its_marks_is_refused(readme: str, results: Results) -> None:
    with pytest.raises(ReadmeError, match="no place"):
        replaced(readme, results, CHANGES)


def test_results_of_no_legacy_pmap_are_refused(tmp_path: Path) -> None:
    new = loaded(
        tmp_path,
        [target(), claim("migrate-pmap.errors"), clause("errors.a"), cell("errors.a")],
    )
    with pytest.raises(ReadmeError, match="no cell of legacy pmap"):
        list(lines(new, CHANGES))


def test_a_command_that_cannot_says_why_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "README.md"
    file.write_text("nothing here", encoding="utf-8")
    assert main(["dev", "readme", str(tmp_path / "none.jsonl"), "-o", str(file)]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == "nothing here"


@pytest.fixture(scope="module")
def published() -> Results:
    return load([PUBLISHED])


def test_the_readme_says_what_the_published_results_say(published: Results) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = replaced(readme, published, load_changes())
    assert readme == made, "run: pmap-conformance dev readme reports/published/matrix.jsonl.xz"


def test_no_published_cell_is_red_or_unexplained(published: Results) -> None:
    red = {Verdict.DEVIATES, Verdict.CRASHED, Verdict.HUNG, Verdict.FLAKY, Verdict.UNKNOWN}
    assert [key for key, one in published.outcomes.items() if one.verdict in red] == []


@pytest.fixture(scope="module")
def upgrades(published: Results) -> list[Upgrade]:
    """From some releases with legacy pmap to the newest that is published."""
    effects = Effects(published)
    newest = max((t.jax for t in published.targets if t.jax), key=Version)
    return [
        upgrade(
            effects,
            side(published, f"legacy_pmap@{jax}", "--from"),
            side(published, f"{implementation}@{newest}", "--to"),
        )
        for jax in ("0.7.2", "0.9.0", "0.9.2")
        for implementation in ("new_pmap", "shard_map")
    ]


def test_every_change_of_a_published_upgrade_is_explained(
    published: Results, upgrades: list[Upgrade]
) -> None:
    """What has a cause that is newer than what is published is explained with the next of it."""
    newer = [one for one in load_known() if one.cause and one.cause not in published.causes]
    unexplained = [
        f"{found.old} to {found.new}: {entry.group.value}: {entry.title} ({seen.clause})"
        for found in upgrades
        for entry in found.entries
        if entry.group in EXPLAINED and entry.by is By.NOTHING
        for seen in entry.seen
        if seen.before is not None
        for key in [cell_of(published, seen.clause, seen.topology, found.new)]
        if not any(one.matches(seen.shown, key) for one in newer)
    ]
    assert unexplained == []


def test_every_known_change_is_one_of_a_published_upgrade(
    published: Results, upgrades: list[Upgrade]
) -> None:
    seen = [
        (one.shown, cell_of(published, one.clause, one.topology, found.new))
        for found in upgrades
        for entry in found.entries
        for one in entry.seen
    ]
    unused = [one.where for one in load_known() if not any(one.matches(*here) for here in seen)]
    assert unused == []


def test_what_is_published_is_small() -> None:
    assert sum(file.stat().st_size for file in PUBLISHED.parent.iterdir()) < MOST_BYTES
