"""User reports: they name what there is, and the site's search finds it by their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from searched import PUBLISHED, messages_of, search_of

from conformance.catalogue.causes import load_causes
from conformance.catalogue.loading import load as load_catalogue
from reports.analysis.issues.shown import shown_by
from reports.analysis.public_names import load_names
from reports.render.site.build import asked
from reports.render.site.names import cause_path, clause_path
from reports.render.site.removed import name_path
from reports.render.site.upstream import threads, threads_of
from reports.render.site.user_reports import EFFECTS, WORKS, Report, reports
from reports.store.results import load

FIRST = 5
SEEN = ("raises", "warns", "fails", "holds", WORKS)
SINCE = 2021
ANSWERED = [one for one in reports() if one.causes or one.clauses]


def test_each_report_is_answered_or_says_why_not() -> None:
    for one in reports():
        ways = (bool(one.causes or one.clauses), bool(one.open), bool(one.out_of_scope))
        assert sum(ways) == 1, one.address
        assert one.out_of_scope or (one.words and one.kind in EFFECTS), one.address
        assert one.title, one.address
        assert one.year >= SINCE, one.address


def test_what_a_report_names_is_of_the_catalogue() -> None:
    clauses = set(load_catalogue().clauses)
    causes = set(load_causes())
    for one in reports():
        assert set(one.causes) <= causes, one.address
        assert set(one.clauses) <= clauses, one.address


def test_where_a_report_is_still_so_is_told_by_what_it_names() -> None:
    for one in ANSWERED:
        assert one.seen in SEEN if one.seen else one.causes, one.address
        assert one.clauses or not one.seen, one.address


def test_each_address_is_of_a_tracker_and_stands_once() -> None:
    assert len({one.anchor for one in reports()}) == len(reports())
    with pytest.raises(ValueError, match="not the address"):
        _ = replace(reports()[0], address="http://github.com/jax-ml/jax/issues/1").name


def test_each_upstream_thread_is_of_a_known_issue_and_says_its_state() -> None:
    causes = load_causes()
    shown = {
        one.address for cause in causes.values() for one in threads_of(cause.slug, cause.links)
    }
    asked = {one.address for one in reports()}
    assert len({one.address for one in threads()}) == len(threads())
    for one in threads():
        assert one.state in ("open", "closed", "merged"), one.address
        assert one.state != "merged" or "/pull/" in one.address
        assert set(one.causes) <= set(causes), one.address
        assert one.read <= date.today(), one.address
        assert one.address in shown | asked, one.address


def test_a_title_is_not_the_words_of_the_report() -> None:
    for one in reports():
        assert one.title.lower() not in one.words.lower(), one.address


Asked = tuple[Callable[[str], dict[str, Any]], Callable[[Report], set[str]], frozenset[str]]


@pytest.fixture(scope="module")
def asked_by_words() -> Asked:
    """The search of the published results, and the pages that answer a report."""
    results = load([PUBLISHED])
    effects = asked(results)
    found = messages_of(effects)
    shown = shown_by(results)

    def answers(report: Report) -> set[str]:
        """Its known issues and tests, and the error messages that one of their tests meets."""
        of_causes = {key.clause for slug in report.causes for key in shown.get(slug, ())}
        concerned = of_causes.union(report.clauses)
        removed = "public-names-removed" in report.causes
        return {
            *(
                name_path(results, one)
                for one in load_names().names
                if one.text in report.words or (removed and one.attribute in report.words)
            ),
            *map(cause_path, report.causes),
            *map(clause_path, report.clauses),
            *(f"errors/{one.slug}.html" for one in found if concerned.intersection(one.clauses)),
        }

    return search_of(effects, found), answers, frozenset((*results.causes, *results.clauses))


@pytest.mark.long
@pytest.mark.parametrize("report", ANSWERED, ids=lambda one: one.name)
def test_the_words_of_a_report_find_its_answer(asked_by_words: Asked, report: Report) -> None:
    search, answers, published = asked_by_words
    if not published.issuperset((*report.causes, *report.clauses)):
        pytest.skip("the published results do not have what shows it yet")
    found = search(report.words)["found"][:FIRST]
    assert answers(report).intersection(found), found
