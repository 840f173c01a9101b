"""Results of a part of the catalogue: what is kept, and what is left out with its number."""

from __future__ import annotations

from records import cause, cell, claim, clause, deviation
from two_sides import read

from reports.analysis.content import with_content

FILE = (
    claim("migrate-pmap.other"),
    clause("errors.a", cause="named"),
    clause("errors.b", claim="migrate-pmap.other", cause="of-another"),
    cause("named"),
    cause("seen", part_of="whole"),
    cause("whole"),
    cause("of-another"),
    cell("errors.a", "known deviation", deviation=deviation(cause="seen")),
)


def test_what_no_cell_is_about_is_left_out_and_counted() -> None:
    kept = with_content(read(*FILE))
    assert set(kept.clauses) == {"errors.a"}
    assert set(kept.grid) == {"errors.a"}
    assert set(kept.claims) == {"migrate-pmap.errors"}
    assert set(kept.causes) == {"named", "seen", "whole"}
    assert kept.absent == 1


def test_what_explains_a_change_of_its_cells_is_kept() -> None:
    """`known.toml` names this issue for clauses that begin like this one."""
    slug = "donated-copy-original-deleted"
    kept = with_content(read(*FILE, clause("donation.a"), cause(slug), cell("donation.a")))
    assert slug in kept.causes


def test_results_of_every_clause_are_not_changed() -> None:
    results = read(*FILE, cell("errors.b"))
    assert with_content(results) is results
