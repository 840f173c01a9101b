"""Downloads of the site: the matrix and its counts as JSON, and the feed of regressions."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import records as rows
from sample_results import sample
from site_pages import links_in, text_in, tree

from reports.analysis.effects.pairs import Effects, sides
from reports.analysis.effects.upgrade import upgrade
from reports.render.site import feed
from reports.render.site.build import build, render
from reports.render.site.downloads import MATRIX, SUMMARY, matrix
from reports.store.releases import released
from reports.store.results import Results, load

ATOM = "{http://www.w3.org/2005/Atom}"
RUNS = {"0.9.0": "2026-11-20T08:00:00+00:00", "0.10.0": "2026-11-21T08:00:00+00:00"}


def results(tmp_path: Path, *records: rows.Record) -> Results:
    return load([rows.write(tmp_path / "r.jsonl", records)])


@pytest.fixture
def worse(tmp_path: Path) -> Results:
    """A program that returns in 0.9.0 and raises in 0.10.0, one the other way, one that stays."""

    def seen(id: str, jax: str, step: rows.Record) -> rows.Record:
        observed = [rows.observation(step, process=process) for process in range(4)]
        return rows.cell(id, target=f"jax=={jax}", observations=observed)

    fails = rows.raised(message="<b>no</b>", name=rows.FIRST)
    works = rows.sample_step(warnings=[], logs=[])
    return results(
        tmp_path,
        *(rows.target(v, started=when) for v, when in RUNS.items()),
        rows.claim("migrate-pmap.errors"),
        *(
            rows.clause(f"errors.{n}", title=f"Title <i> of {n}")
            for n in ("worse", "better", "same")
        ),
        seen("errors.worse", "0.9.0", works),
        seen("errors.worse", "0.10.0", fails),
        seen("errors.better", "0.9.0", fails),
        seen("errors.better", "0.10.0", works),
        seen("errors.same", "0.9.0", works),
        seen("errors.same", "0.10.0", works),
    )


def entries(of: Results) -> list[ElementTree.Element]:
    (asset,) = feed.pages(Effects(of))
    return ElementTree.fromstring(asset.text).findall(f"{ATOM}entry")


def test_the_feed_tells_what_became_worse_and_nothing_else(worse: Results) -> None:
    (entry,) = entries(worse)
    assert re.findall(r"\d[\d.]*", entry.findtext(f"{ATOM}title") or "") == ["0.10.0", "1"]
    content = entry.findtext(f"{ATOM}content") or ""
    assert "raises now" in content
    assert "against jax 0.9.0" in content
    assert len(list(tree(content).iter("li"))) == 1


def test_what_the_version_before_did_not_run_became_nothing(tmp_path: Path) -> None:
    alone = rows.cell("errors.wrong", "crashed", target="jax==0.10.0")
    both = [
        rows.cell("errors.same", target=f"jax=={v}", observations=[rows.observation()])
        for v in RUNS
    ]
    of = results(
        tmp_path,
        *(rows.target(v) for v in RUNS),
        rows.claim("migrate-pmap.errors"),
        rows.clause("errors.wrong"),
        rows.clause("errors.same"),
        *both,
        alone,
    )
    old, new = sides(of)
    assert upgrade(Effects(of), old, new).entries, "it is a hazard all the same"
    assert entries(of) == []


def test_ids_and_dates_come_from_the_results_alone(worse: Results) -> None:
    (entry,) = entries(worse)
    assert entry.findtext(f"{ATOM}id") == "tag:pmap-conformance,2026:cpu:0.10.0"
    assert entry.findtext(f"{ATOM}updated") == RUNS["0.10.0"]
    assert [a.text for a in feed.pages(Effects(worse))] == [
        a.text for a in feed.pages(Effects(worse))
    ]


def test_hostile_text_in_the_feed_is_text(worse: Results) -> None:
    (entry,) = entries(worse)
    content = entry.findtext(f"{ATOM}content") or ""
    assert list(tree(content).iter("i")) == []
    assert not [one for one in tree(content).iter("b") if (one.text or "").startswith("no")]


def test_one_version_makes_a_feed_without_entries(tmp_path: Path) -> None:
    assert entries(results(tmp_path, *sample())) == []


def test_the_matrix_has_every_recorded_cell(tmp_path: Path) -> None:
    of = results(tmp_path, *sample())
    found: dict[str, Any] = json.loads(json.dumps(matrix(of)))
    lists = [found[name] for name in found["columns"]]
    told = {
        (clause["id"], target["jax"], implementation, topology, verdict, reason)
        for row in found["cells"]
        for clause, target, implementation, topology, verdict, _, reason in [
            [words[at] for words, at in zip(lists, row, strict=True)]
        ]
    }
    assert told == {
        (k.clause, k.target.jax, k.implementation, k.topology, o.verdict.value, o.reason)
        for k, o in of.outcomes.items()
    }


def test_the_matrix_says_how_much_of_a_target_was_run(tmp_path: Path) -> None:
    target = rows.target("0.9.0", core={"runs": 3, "of": 12})
    found = json.loads(json.dumps(matrix(results(tmp_path, target))))
    assert [one["core"] for one in found["target"]] == [{"runs": 3, "of": 12}]


def test_the_files_are_in_the_site_and_linked(tmp_path: Path) -> None:
    site = render(results(tmp_path, *sample()))
    assert json.loads(site[MATRIX])["format"] == 1
    assert json.loads(site[SUMMARY])["cells"]
    for name in (MATRIX, SUMMARY, feed.PAGE):
        assert name in links_in(tree(site["targets.html"]))


def test_the_matrix_is_compressed_on_the_disk(tmp_path: Path) -> None:
    of = results(tmp_path, *sample())
    build(of, tmp_path / "site")
    with lzma.open(tmp_path / "site" / MATRIX, "rt", encoding="utf-8") as written:
        assert json.load(written) == json.loads(render(of)[MATRIX])


def test_the_machine_is_told_where_it_was_recorded_and_missed_where_not(tmp_path: Path) -> None:
    known = rows.target(
        "0.9.0", cores=8, memory=32 * 2**30, device_kind="v5e", packages={"flax": "0.12.9"}
    )
    older = rows.target("0.10.0", machine=None)
    unheard = rows.target("0.9.0.dev5")
    page = tree(render(results(tmp_path, known, older, unheard))["targets.html"])
    rows_ = [[text_in(cell) for cell in row] for row in page.iter("tr")]
    (first,), (second,), (third,) = (
        [row[2:-2] for row in rows_ if "2.4.6" in row and row[3] == jax]
        for jax in ("0.9.0", "0.10.0", "0.9.0.dev5")
    )
    assert first == [
        "2026-01-20",
        "0.9.0",
        "2.4.6",
        "3.11.7",
        "cpu",
        "v5e",
        "x86_64",
        "8",
        "32 GiB",
    ]
    assert second[:5] == ["2026-04-16", "0.10.0", "2.4.6", "3.11.7", "cpu"]
    assert set(second[5:]) == {"not recorded"}
    assert not third[0].startswith("20")
    assert "flax 0.12.9" in text_in(page)


def test_the_table_of_releases_is_of_days_in_the_order_of_versions_but_for_patches() -> None:
    table = released()
    minors = [table[version] for version in table if re.fullmatch(r"0\.\d+\.0", version)]
    assert minors == sorted(minors)
    assert {"0.7.2", "0.9.0", "0.12.0.1"} <= table.keys()
