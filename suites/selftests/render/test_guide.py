"""The documentation in the site: rendered safely, linked within the site, found by the search."""

from __future__ import annotations

import pytest
from sample_results import sample
from site_pages import Tags, links_in, results_of, search_rows, tree

from reports.render.site.build import render
from reports.render.site.guide import CONTENTS, Document, GuideView, anchor, documents, parse


def html(text: str, *others: str) -> str:
    """A page of this text, as the site shows it beside pages of these names."""
    page = parse("page", text)
    return GuideView(page, (page, *(Document(name, ()) for name in others))).html


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return render(results_of(*sample()))


def test_every_page_is_in_the_site_and_in_its_contents(site: dict[str, str]) -> None:
    paths = [one.path for one in documents()]
    assert len(paths) > 10
    assert set(paths) <= set(site)
    listed = [one for one in Tags(site[CONTENTS]).attributes("href") if one.startswith("docs/")]
    assert listed == paths
    assert any(one == CONTENTS for one in Tags(site["index.html"]).attributes("href"))


def test_the_search_finds_sections_of_pages(site: dict[str, str]) -> None:
    rows = search_rows(site)
    found = {row[2]: row for row in rows if row[0] == "guide"}
    plugin = found["docs/run-it-yourself.html#with-your-own-pjrt-plugin"]
    assert "PLATFORMS" in plugin[3]
    assert "docs/upgrade.html" in found


def test_raw_html_is_text() -> None:
    markup, in_code = "<script>alert(1)</script> and <b>bold</b>", "</pre><i>"
    shown = html(f"# T\n\nS\n\n{markup}\n\n```text\n{in_code}\n```\n")
    assert not {"script", "b", "i"} & {tag for tag, _ in Tags(shown).tags}
    assert markup in Tags(shown).text
    assert in_code in Tags(shown).text


def test_rendering_twice_gives_the_same() -> None:
    page = parse("page", "# T\n\nS\n\n[x](other.md)\n")
    view = GuideView(page, (page, Document("other", ())))
    assert view.html == view.html
    assert links_in(tree(view.html)) == ["other.html"]


@pytest.mark.parametrize(
    ("name", "written", "href"),
    [
        ("a page", "other.md", "other.html"),
        ("a heading of one", "other.md#some-words", "other.html#some-words"),
        ("a heading of this one", "#here", "#here"),
        ("elsewhere", "https://example.org/a", "https://example.org/a"),
        ("a page that is not there", "none.md", None),
        ("a file of the project", "../reports/published/FINDINGS.md", None),
        ("no scheme of ours", "javascript:alert(1)", None),
        ("no encryption", "http://example.org", None),
    ],
)
def test_a_link_leads_within_the_site_or_is_text(name: str, written: str, href: str | None) -> None:
    shown = Tags(html(f"# T\n\nS\n\nSee [these words]({written}).\n", "other"))
    assert shown.attributes("href") == ([] if href is None else [href])
    assert "these words" in shown.text


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Run it yourself", "run-it-yourself"),
        ("Indexing an output (x[0]) communicates", "indexing-an-output-x0-communicates"),
        ("In several processes, pmap", "in-several-processes-pmap"),
        ("device_put_sharded", "device_put_sharded"),
    ],
)
def test_a_heading_has_the_anchor_of_code_hosts(heading: str, expected: str) -> None:
    assert anchor(heading) == expected


def test_headings_of_one_text_have_anchors_of_their_own() -> None:
    page = parse("page", "# A\n\n## B\n\n## B\n")
    assert [one.anchor for one in page.headings] == ["a", "b", "b-1"]


def test_a_page_stands_below_its_heading_and_summary() -> None:
    page = parse("page", "# The `title`\n\nThe summary.\n\n## Part\n\nText.\n")
    assert (page.title, page.summary) == ("The title", "The summary.")
    shown = Tags(html("# T\n\nS\n\n## Part\n\nText.\n"))
    assert [tag for tag, _ in shown.tags] == ["h2", "p"]
