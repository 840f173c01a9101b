"""Where a remedy works: derived from its cells, in one place, for every page that shows it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from records import Record, cell, claim, clause, finding, target, write

from reports.analysis.effects.remedies import Help, fared, remedy
from reports.render.site.marks import Mark
from reports.render.site.remedies import remedies
from reports.store.results import load

PLACES = ("1x8", "2x2", "4x2")


def judged(expected: str, verdict: str) -> list[Record]:
    """Return what the judge finds of a step that returns, or raises, as it is expected to."""
    code = "error" if expected.startswith("raises") else "value"
    return [finding(code=code, holds=verdict == "conforms")]


@pytest.mark.parametrize(
    ("name", "verdicts", "expected", "mark", "word"),
    [
        ("works", ("conforms",) * 3, "returns", Mark.RIGHT, "works"),
        ("refuses", ("conforms",) * 3, "raises ValueError", Mark.RIGHT, "raises, as expected"),
        ("fails", ("deviates", "crashed", "hung"), "returns", Mark.WRONG, "does not work"),
        ("known", ("known deviation",) * 3, "returns", Mark.WRONG, "does not work"),
        ("in part", ("conforms", "flaky", ""), "returns", Mark.PARTLY, "works in part"),
        ("not run", ("", "", "not applicable"), "returns", Mark.NOT_RUN, "not run"),
        ("some not run", ("conforms", "", ""), "returns", Mark.RIGHT, "works"),
    ],
)
def test_what_its_cells_say(
    name: str, verdicts: tuple[str, ...], expected: str, mark: Mark, word: str
) -> None:
    cells = [
        cell("errors.fix", verdict, topology=place, findings=judged(expected, verdict))
        for place, verdict in zip(PLACES, verdicts, strict=True)
        if verdict
    ]
    fix = clause("errors.fix", topologies=list(PLACES), expected={"new_pmap": expected})
    with TemporaryDirectory() as folder:
        records = [target(), claim("migrate-pmap.errors"), fix, *cells]
        results = load([write(Path(folder, "r.jsonl"), records)])
    (at,) = results.targets
    how = fared(results, "errors.fix", "new_pmap", at.key)
    said = dict(zip(PLACES, verdicts, strict=True))
    assert how.works == tuple(p for p in PLACES if said[p] == "conforms"), name
    assert how.not_run == tuple(p for p in PLACES if not said[p])
    assert not {*how.works} & {*how.fails}
    (remedy,) = remedies(results, ["errors.fix"], at).some
    assert remedy.at == (("new pmap", mark, word),)


@pytest.mark.parametrize(
    ("values", "works"),
    [(("right", "right"), True), (("right", "wrong"), False), (("right", ""), False)],
)
def test_the_right_values_in_place_of_a_documented_error_work(
    values: tuple[str, str], works: bool, tmp_path: Path
) -> None:
    findings = [
        finding("returned", "error", step=f"step {n}", values=one, error_expected=bool(one))
        for n, one in enumerate(values)
    ]
    fix = clause("errors.fix", topologies=["1x8"], expected={"new_pmap": "raises ValueError"})
    taken = cell("errors.fix", "known deviation", topology="1x8", findings=findings)
    records = [target(), claim("migrate-pmap.errors"), fix, taken]
    results = load([write(tmp_path / "r.jsonl", records)])
    how = fared(results, "errors.fix", "new_pmap", results.targets[0].key)
    assert how.works == (("1x8",) if works else ())
    assert how.fails == (() if works else ("1x8",))


@pytest.mark.parametrize(
    ("name", "under", "help", "by"),
    [
        ("works", {"new_pmap": ("returns", "conforms")}, Help.WORKS, "new_pmap"),
        ("fails", {"new_pmap": ("returns", "deviates")}, Help.FAILS, "new_pmap"),
        (
            "fails here and works elsewhere: it is no help here",
            {"new_pmap": ("returns", "deviates"), "shard_map": ("returns", "conforms")},
            Help.FAILS,
            "new_pmap",
        ),
        ("is refused", {"new_pmap": ("raises ValueError", "conforms")}, Help.FAILS, "new_pmap"),
        (
            "is refused here and works elsewhere",
            {"new_pmap": ("raises E", "conforms"), "shard_map": ("returns", "conforms")},
            Help.WORKS,
            "shard_map",
        ),
        ("was not run", {"new_pmap": ("returns", "not run")}, Help.UNTRIED, "new_pmap"),
    ],
)
def test_whether_it_helps(
    name: str, under: dict[str, tuple[str, str]], help: Help, by: str
) -> None:
    fix = clause(
        "errors.fix",
        topologies=["1x8"],
        expected={implementation: said for implementation, (said, _) in under.items()},
    )
    cells = [
        cell(
            "errors.fix",
            verdict,
            implementation=implementation,
            topology="1x8",
            findings=judged(said, verdict),
        )
        for implementation, (said, verdict) in under.items()
    ]
    with TemporaryDirectory() as folder:
        records = [target(), claim("migrate-pmap.errors"), fix, *cells]
        results = load([write(Path(folder, "r.jsonl"), records)])
    found = remedy(results, "errors.fix", "new_pmap", results.targets[0].key)
    assert (found.help, found.implementation) == (help, by), name


def test_what_helps_stands_first() -> None:
    fixes = [clause(f"errors.{n}", topologies=["1x8"]) for n in "abc"]
    some = zip("abc", ("not run", "deviates", "conforms"), strict=True)
    cells = [cell(f"errors.{n}", verdict, topology="1x8") for n, verdict in some]
    fixes[2]["expected"] = {"new_pmap": "returns"}
    with TemporaryDirectory() as folder:
        records = [target(), claim("migrate-pmap.errors"), *fixes, *cells]
        results = load([write(Path(folder, "r.jsonl"), records)])
    told = remedies(results, ["errors.a", "errors.b", "errors.c"], results.targets[0]).some
    assert [one.help for one in told] == [Help.WORKS, Help.FAILS, Help.UNTRIED]
    assert "errors.c" in told[0].link.href


def test_what_does_not_apply_is_not_told() -> None:
    fix = clause("errors.fix", topologies=["1x8"], expected={"new_pmap": "not applicable"})
    records = [
        target(),
        claim("migrate-pmap.errors"),
        fix,
        cell("errors.fix", "not applicable", topology="1x8"),
    ]
    with TemporaryDirectory() as folder:
        results = load([write(Path(folder, "r.jsonl"), records)])
    (remedy,) = remedies(results, ["errors.fix"], results.targets[0]).some
    assert remedy.at == ()
