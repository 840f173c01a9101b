"""The site: complete, safe to open, linked throughout, written whole or not at all."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment
from records import Record, cause, cell, claim, clause, observation, raised, sample_step, target
from sample_results import HOSTILE, sample
from site_pages import HEAD, Tags, goal, loaded, search_rows, tree, with_lines

from reports.analysis.content import with_content
from reports.render.site.build import LICENSE, POLICY, SiteError, build, render, too_large
from reports.render.site.names import safe_name
from reports.render.site.observed import observed
from reports.render.site.page import MOST_BYTES
from reports.render.site.text import bare_quotes
from reports.render.site.write import put, write
from reports.store.results import Results


@pytest.fixture
def load_records(tmp_path: Path) -> Any:
    """Write each list of records to a file of its own, and load them all."""

    def run(*files: list[Record]) -> Results:
        return loaded(tmp_path, *files)

    return run


@pytest.fixture
def site(load_records: Any) -> dict[str, str]:
    return with_lines(render(load_records(sample())))


def test_foreign_text_is_never_markup(site: dict[str, str]) -> None:
    shown = 0
    for name, page in site.items():
        if name.endswith(".html"):
            tags = Tags(page)
            assert not {"iframe", "img"} & {tag for tag, _ in tags.tags}, name
            scripts = [attrs for tag, attrs in tags.tags if tag == "script"]
            assert all((attrs["src"] or "").endswith(".js") for attrs in scripts), name
            assert not [a for _, attrs in tags.tags for a in attrs if a.startswith("on")], name
            assert "\x1b" not in page
            page.encode("utf-8")
            shown += tags.text.count("<script>alert('&\"')</script>\\x1b[31m\\ud800")
    # The cell alone has more than thirty hostile texts: all are there to be read.
    assert shown > 30


def test_ids_are_escaped_and_stay_in_the_folder(load_records: Any, tmp_path: Path) -> None:
    ids = ["../../escape", HOSTILE, "/etc/passwd", "a\\..\\b", "A.b", "a.b", " ", ".", "x" * 300]
    results = load_records([target(), *(clause(i, section=HOSTILE) for i in ids)])
    build(results, tmp_path / "site")
    written = {p.relative_to(tmp_path / "site") for p in (tmp_path / "site").rglob("*.html")}
    pages = [p for p in written if str(p.parent) == "clauses"]
    assert len(pages) == len(ids)
    assert all(len(p.parts) <= 2 for p in written)
    assert all(re.fullmatch(r"[a-z0-9._~-]+\.html", p.name) for p in written)
    assert {p.name for p in tmp_path.iterdir()} == {"0.jsonl", "site"}


def test_safe_names_differ_where_ids_do() -> None:
    ids = ["a.b", "A.b", "a b", "a-b", "a/b", "a..b", "a.b.", "..", "a" * 81, "a" * 82]
    assert len({safe_name(i).lower() for i in ids}) == len(ids)
    assert safe_name("errors.incompatible-devices") == "errors.incompatible-devices"
    # A name that was made for one id is not the name of another.
    assert safe_name(safe_name("A")) != safe_name("A")


def test_only_https_is_linked(site: dict[str, str]) -> None:
    ours = {path for path in site if path.startswith("docs/") or path == "user-reports.html"}
    away = {
        h
        for path, page in site.items()
        if path not in ours  # documentation links what its authors chose, and trackers
        for h in Tags(page).attributes("href")
        if ":" in h
    }
    assert away == {"https://example.org/issues/1", "https://example.org/1"}
    assert "javascript:alert(1)" in Tags(site["clauses/errors.fix.html"]).text


def test_nothing_is_loaded_from_elsewhere(site: dict[str, str]) -> None:
    for name, page in site.items():
        if name.endswith(".html"):
            loads = [
                attrs.get("src") or attrs.get("href") or ""
                for tag, attrs in Tags(page).tags
                if tag in ("script", "link")
            ]
            assert {goal(name, address)[0] for address in loads} <= site.keys(), name
    assert not re.search(r"@import|url\(|//", site["style.css"])
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|https?:", site["site.js"])


def test_a_page_says_first_that_it_loads_its_own_files_alone(site: dict[str, str]) -> None:
    pages = [text for path, text in site.items() if path.endswith(".html")]
    assert pages
    for text in pages:
        kinds = [(tag, one.get("http-equiv"), one.get("content")) for tag, one in Tags(text).tags]
        at = kinds.index(("meta", "Content-Security-Policy", POLICY))
        assert not {"script", "link", "style", "img"} & {tag for tag, *_ in kinds[:at]}
    assert "default-src 'self' file:;" in POLICY
    assert "connect-src 'none'" in POLICY
    assert "unsafe" not in POLICY


def test_every_inner_link_leads_somewhere(site: dict[str, str]) -> None:
    assert links_that_lead(site) > 200


def test_statements_of_another_revision_lie_on_their_documents_page(load_records: Any) -> None:
    records = [
        one | {"document": "migrate-pmap-later", "outline": "migrate-pmap"}
        if one["kind"] == "claim"
        else one
        for one in sample()
    ]
    assert links_that_lead(with_lines(render(load_records(records)))) > 200


def test_a_part_of_the_catalogue_has_the_pages_of_what_ran(load_records: Any) -> None:
    records = [
        *sample(),
        claim("migrate-pmap.never"),
        *(clause(f"never.{n}", claim="migrate-pmap.never", cause="never") for n in range(3)),
        cause("never"),
    ]
    whole = load_records(records)
    every, some = render(whole), with_lines(render(with_content(whole)))
    gone = {path for path in every.keys() - some.keys() if path.endswith(".html")}
    assert {"clauses/never.0.html", "causes/never.html", "claims/migrate-pmap.never.html"} <= gone
    assert gone.isdisjoint({"matrix.html", "causes.html", "errata.html", "removed.html"})
    assert links_that_lead(some) > 200
    assert "without a result have no page" in " ".join(Tags(some["unknown.html"]).text.split())


def links_that_lead(site: dict[str, str]) -> int:
    """Return the number of inner links, the search's included; each must have a target."""
    anchors = {name: set(Tags(page).attributes("id")) for name, page in site.items()}
    count = 0
    for name, page in site.items():
        for href in Tags(page).attributes("href"):
            if href.startswith("https:"):
                continue
            path, anchor = goal(name, href)
            assert path in site, (name, href)
            assert not anchor or anchor in anchors[path], (name, href)
            count += 1
    found = search_rows(site)
    for _, title, href, *_ in found:
        path, anchor = goal("index.html", href)
        assert path in site, (title, href)
        assert not anchor or anchor in anchors[path], (title, href)
    return count + len(found)


def test_anchors_are_unique(site: dict[str, str]) -> None:
    for page in site.values():
        ids = Tags(page).attributes("id")
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_readable_contrast(scheme: str, site: dict[str, str]) -> None:
    """WCAG AA for small text: 4.5 to 1, wherever a rule names both colours, and on the page."""
    css = site["style.css"]
    light, dark = css.split("@media (prefers-color-scheme: dark)", 1)
    tokens = dict(re.findall(r"--([a-z-]+): (#\w{6})", light))
    if scheme == "dark":
        tokens |= dict(re.findall(r"--([a-z-]+): (#\w{6})", dark.split("/* ----", 1)[0]))
    rule = r"background: var\(--([a-z-]+)\); color: var\(--([a-z-]+)\)"
    pairs = re.findall(rule, css)
    assert len(pairs) > 15
    words = ("ink", "soft", "link", "right", "partly", "wrong", "none")
    pairs += [(ground, word) for ground in ("paper", "wash") for word in words]
    for ground, text in pairs:
        low, high = sorted((luminance(tokens[text]), luminance(tokens[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("errors.deviates", ["raised ValueError", "returns float32[8,4]", "pytest -k errors.devi"]),
        ("errors.known-deviation", ["the check was removed", "2027-03-01"]),
        ("errors.crashed", ["signal SIGSEGV", "exit status 1", "Fatal Python error", "line 3 in"]),
        ("errors.removed", ["the reason of removed"]),
        (
            "errors.conforms",
            [
                "NamedSharding ('i',) · mesh i=8 · devices [0, 1, 2, 3, 4, 5, 6, 7]",
                "Array float32[8, 2], committed",
                "local [2, 2]:",
                "[[1.0, 2.0],",
                '[3.0, "nan"]]',
                "raised ValueError in phase lower",
                "Received incompatible devices",
                "pjit.py:_resolve_and_lower",
                "DeprecationWarning: old (2 times)",
                "WARNING jax: slow",
                "all-gather",
                "new pmap → NamedSharding",
                "processes 0, 1, 2, 3",
                "return impl.map(f)(x)",
                "What migrate-pmap.errors says.",
            ],
        ),
    ],
)
def test_a_clause_page_shows_the_evidence(id: str, words: list[str], site: dict[str, str]) -> None:
    text = Tags(site[f"clauses/{id}.html"]).text
    assert [w for w in words if w not in text] == []


def test_the_odd_process_comes_first() -> None:
    other = observation(raised(type="OtherError"), process=2)
    same = [observation(raised(), process=p) for p in (0, 1, 3)]
    views = observed([*same[:2], other, same[2]])
    assert [view.who for view in views] == ["process 2", "processes 0, 1, 3"]
    alike = [observation(raised(message=f"on device {p}"), process=p) for p in (0, 1)]
    views = observed([*alike, other])
    assert [view.who for view in views] == ["process 2", "process 0", "process 1"]


def test_processes_that_differ_in_time_alone_are_shown_once() -> None:
    between: dict[str, list[str]] = {"logs": [], "warnings": []}
    some = [
        observation(raised(), process=p, seconds=1.0 + p, cpu_seconds=p / 8, between=between)
        for p in (0, 1)
    ]
    assert [(view.who, view.rest) for view in observed(some)] == [("processes 0, 1", "")]
    warned = observation(raised(), between=between | {"warnings": ["deprecated"]})
    assert [view.rest for view in observed([warned])] == [
        '{"between": {"warnings": ["deprecated"]}}'
    ]


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"process": 0, "steps": None, "new": {"deep": [1]}},
        {"process": "x", "steps": [None, 3, {"value": 5, "exception": "odd", "warnings": ["w"]}]},
        {"steps": [{"value": {"leaves": [7, {"shape": 3, "values": 9, "sharding": "s"}]}}]},
        {"witness": [1, {"wrapper": None, "outputs": 4}], "steps": [{"extra": None, "logs": [1]}]},
        {"steps": [{"value": {"leaves": [{"values": [1, 2], "local_shape": [0, "a"]}]}}]},
    ],
)
def test_strange_observations_are_shown(strange: Record, load_records: Any) -> None:
    results = load_records([*HEAD, cell("errors.a", observations=[strange])])
    text = Tags(render(results)["clauses/errors.a.html"]).text
    assert "Evidence: 0.9.0" in text
    if "new" in strange:
        assert '"deep"' in text


def test_every_page_names_the_license_and_links_the_repository(load_records: Any) -> None:
    address = "https://example.org/pmap"
    site = render(load_records(sample()), address)
    pages = {name: page for name, page in site.items() if name.endswith(".html")}
    assert pages
    for name, page in pages.items():
        assert LICENSE in Tags(page).text, name
        assert address in Tags(page).attributes("href"), name
    without = render(load_records(sample()))["index.html"]
    assert "Source code" not in without


# Writing


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_same_results_give_the_same_bytes(load_records: Any, tmp_path: Path) -> None:
    results = load_records(sample())
    build(results, tmp_path / "a")
    build(results, tmp_path / "b")
    build(results, tmp_path / "b")
    assert files_below(tmp_path / "a") == files_below(tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.jsonl", "a", "b"]


def test_a_second_site_compiles_no_template(
    load_records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = render(load_records(HEAD))

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("a template is compiled again")

    monkeypatch.setattr(Environment, "compile", refuse)
    assert render(load_records(HEAD)) == first


def test_an_earlier_site_is_replaced_whole(load_records: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    build(load_records(sample()), site)
    assert (site / "clauses" / "errors.fix.html").exists()
    build(load_records(HEAD), site)
    assert not (site / "clauses" / "errors.fix.html").exists()
    assert (site / "clauses" / "errors.a.html").exists()


@pytest.mark.parametrize("foreign", ["notes.txt", "clauses/mine.html", "index.html"])
def test_what_no_report_wrote_is_never_lost(
    foreign: str, load_records: Any, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    if foreign != "index.html":
        build(load_records(sample()), site)
    (site / foreign).parent.mkdir(exist_ok=True, parents=True)
    (site / foreign).write_text("someone's", encoding="utf-8")
    before = files_below(tmp_path)
    with pytest.raises(SiteError, match=f"{foreign} was not written"):
        build(load_records(HEAD), site)
    assert files_below(site) == {k[5:]: v for k, v in before.items() if k.startswith("site/")}


def test_a_link_to_elsewhere_is_never_followed(load_records: Any, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    site = tmp_path / "site"
    build(load_records(HEAD), site)
    (site / "more").symlink_to(kept)
    with pytest.raises(SiteError, match="more was not written"):
        build(load_records(HEAD), site)
    assert kept.is_dir()


def test_a_failure_midway_leaves_the_earlier_site(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(lambda new: [put(new, "index.html", "one"), put(new, "a/b.html", "two")], site)

    def failing(new: Path) -> Iterator[str]:
        yield put(new, "index.html", "new")
        raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        write(failing, site)
    assert files_below(site).keys() == {"index.html", "a/b.html", "contents.txt.xz"}
    assert (site / "index.html").read_text(encoding="utf-8") == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["site"]


def test_a_site_with_an_earlier_list_of_files_is_replaced(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(lambda new: [put(new, "index.html", "one")], site)
    (site / "contents.txt.xz").unlink()
    (site / "contents.txt").write_text("pmap-conformance report\nindex.html\n")
    write(lambda new: [put(new, "index.html", "two")], site)
    assert files_below(site).keys() == {"index.html", "contents.txt.xz"}


@pytest.mark.parametrize(
    ("compiled", "said"), [(None, "0.010 s"), (0, "0.010 s"), (2, "0.010 s, 2 compiled")]
)
def test_a_step_shows_how_many_programs_it_compiled(compiled: int | None, said: str) -> None:
    other = {} if compiled is None else {"compiled": compiled}
    (one,) = observed([observation(sample_step(**other))])
    assert (one.steps[0].seconds, one.steps[0].rest.count("compiled")) == (said, 0)


def test_a_page_that_is_too_large_is_named(tmp_path: Path) -> None:
    write(
        lambda new: [
            put(new, "a/large.html", "x" * (MOST_BYTES + 1)),
            put(new, "index.html", "x" * MOST_BYTES),
            put(new, "large.txt", "x" * (MOST_BYTES + 1)),
        ],
        tmp_path / "site",
    )
    assert list(too_large(tmp_path / "site")) == [("a/large.html", MOST_BYTES + 1)]


def test_quotes_stay_escaped_in_attributes_alone() -> None:
    page = '<p title="&#34;a&quot;">&#34;b&quot; &#39;c&#x27; &lt;&amp;#34;</p>'
    assert bare_quotes(page) == '<p title="&#34;a&quot;">"b" \'c\' &lt;&amp;#34;</p>'


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("../a/b.html#c-1", False),
        ("wrong", False),
        ("", True),
        ("two words", True),
        ("a=b", True),
        ("it's", True),
        ("&lt;x&gt;", True),
        ("`x`", True),
    ],
)
def test_a_value_is_quoted_where_html_needs_it(value: str, quoted: bool) -> None:
    page = bare_quotes(f'<a id="x" class="{value}">class="{value}"</a>')
    written = f'"{value}"' if quoted else value
    assert page == f'<a id=x class={written}>class="{value}"</a>'
    (link,) = (one for one in tree(page).iter("a"))
    assert link.get("class") == html.unescape(value)
