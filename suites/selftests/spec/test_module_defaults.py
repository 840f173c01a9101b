"""Defaults of a module, and further checks of a run: what their clauses have in common."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from records import doubled

from conformance.catalogue.modules import declares
from conformance.spec.clause import Clause, check, clause, devices
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import not_applicable, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import IMPLEMENTATIONS

CLAIM = "migrate-pmap.incompatible-devices"
OTHER_CLAIM = "migrate-pmap.fix-host-local-global"
EXPECT: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, returns(doubled))
NOTHING: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, not_applicable("no reason"))
SEVERAL = ("2x2", "4x2")


@dataclass(frozen=True)
class Form:
    key: str
    text: str
    topologies: tuple[str, ...] = ("1x8",)


FORMS = table(Form("zero", "`x[0]`"), Form("slice", "`x[0:1]`", SEVERAL))


def clauses(declare: Callable[[Any], Any]) -> dict[str, Clause]:
    def probe(impl: Any, cluster: Any, **rows: Any) -> None:
        """The rows are doubled."""

    return {one.id: one for one in declare(probe).__dict__["clauses"]}


def test_a_clause_has_the_defaults_that_it_does_not_declare() -> None:
    here = Defaults(claim=CLAIM, expect=EXPECT, needs=devices(2), fact="errors.fact")
    one = clauses(here.clause("errors.a", fact="errors.other"))["errors.a"]
    assert (one.claim, one.needs, one.fact) == (CLAIM, devices(2), "errors.other")


def test_defaults_may_be_changed_without_changing_the_first() -> None:
    here = Defaults(claim=CLAIM, expect=EXPECT, needs=devices(2))
    there = here.but(claim=OTHER_CLAIM)
    assert clauses(there.clause("errors.a"))["errors.a"].claim == OTHER_CLAIM
    assert clauses(there.clause("errors.a"))["errors.a"].needs == devices(2)
    assert clauses(here.clause("errors.a"))["errors.a"].claim == CLAIM


def test_a_field_of_a_row_counts_for_more_than_a_default_and_a_keyword_for_most() -> None:
    here = Defaults(claim=CLAIM, expect=EXPECT, topologies=("4x2",))
    of_rows = clauses(here.family("errors.{form}", form=FORMS))
    assert [one.topologies for one in of_rows.values()] == [("1x8",), SEVERAL]
    named = clauses(here.family("errors.{form}", form=FORMS, topologies=("2x2",)))
    assert {one.topologies for one in named.values()} == {("2x2",)}


def test_a_keyword_that_no_clause_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no clause declares topology"):
        Defaults(topology=("1x8",))


@pytest.mark.parametrize("missing", ["claim", "expect"])
def test_a_clause_without_claim_or_expectation_is_refused(missing: str) -> None:
    declared: dict[str, Any] = {"claim": CLAIM, "expect": EXPECT}
    del declared[missing]
    with pytest.raises(ValueError, match=f"clause errors.a has no {missing}"):
        Defaults().clause("errors.a", **declared)


def test_a_further_check_is_a_clause_about_the_same_run() -> None:
    again = check("again", expect=NOTHING, title="Nothing is traced again.", claim=OTHER_CLAIM)
    found = clauses(
        clause(
            "errors.a",
            claim=CLAIM,
            expect=EXPECT,
            topologies=SEVERAL,
            needs=devices(2),
            fresh=True,
            fact="errors.fact",
            cause="a-cause",
            fixes="errors.b",
            also=[again, check("placed", expect=EXPECT, title="It is placed.")],
        )
    )
    one, other, placed = found.values()
    assert [*found] == ["errors.a", "errors.a.again", "errors.a.placed"]
    assert one.run == other.run
    assert (other.topologies, other.needs, other.claim) == (SEVERAL, devices(2), OTHER_CLAIM)
    assert (other.title, other.expect) == ("Nothing is traced again.", NOTHING)
    # These are about the first clause alone.
    assert (other.fact, other.cause, other.fixes) == ("errors.a.again", "", None)
    assert placed.claim == CLAIM


def test_a_family_has_a_further_check_for_the_rows_that_it_is_about() -> None:
    again = check(
        "again",
        expect=lambda form: NOTHING,
        title="{form.text} again.",
        only=lambda form: form.key == "slice",
    )
    found = clauses(family("errors.{form}", form=FORMS, claim=CLAIM, expect=EXPECT, also=[again]))
    assert [*found] == ["errors.zero", "errors.slice", "errors.slice.again"]
    assert found["errors.slice.again"].title == "`x[0:1]` again."
    assert found["errors.slice.again"].topologies == SEVERAL
    assert found["errors.slice.again"].run == found["errors.slice"].run


def test_defaults_may_have_further_checks_for_all_their_clauses() -> None:
    here = Defaults(claim=CLAIM, expect=EXPECT, also=[check("b", expect=NOTHING, title="It.")])
    assert [*clauses(here.clause("errors.a"))] == ["errors.a", "errors.a.b"]
    assert len(clauses(here.family("errors.{form}", form=FORMS))) == 4


@pytest.mark.parametrize(
    ("decorator", "declaring"),
    [
        ("clause('errors.a')", True),
        ("family('errors.{form}')", True),
        ("nested.clause('errors.a')", True),
        ("nested.family('errors.{form}')", True),
        ("functools.cache", False),
        ("described('the rows')", False),
    ],
)
def test_a_declaration_is_no_part_of_a_program(decorator: str, declaring: bool) -> None:
    text = textwrap.dedent(f"""
        @{decorator}
        def probe(impl, cluster):
            pass
        """)
    probe = ast.parse(text).body[0]
    assert isinstance(probe, ast.FunctionDef)
    assert declares(probe.decorator_list[0]) is declaring
