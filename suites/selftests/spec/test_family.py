"""Families: which clauses the rows of tables make, and which tables make none.

A row that is lost or named wrongly would be a finding that nobody makes, or nobody finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from records import doubled

from conformance.spec.clause import Clause, Timing, clause, devices
from conformance.spec.expectation import not_applicable, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import IMPLEMENTATIONS, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.worker import recording

CLAIM = "migrate-pmap.incompatible-devices"
OTHER_CLAIM = "migrate-pmap.fix-host-local-global"
EXPECT: dict[str, Expectation] = dict.fromkeys(IMPLEMENTATIONS, returns(doubled))


@dataclass(frozen=True)
class Form:
    key: str
    text: str
    width: int = 1

    @property
    def wide(self) -> bool:
        return self.width > 1


TIMING = Timing(("call",), ())
ZERO = Form("zero", "`x[0]`")
SLICE = Form("slice", "`x[0:1]`", 2)
FORMS = table(ZERO, SLICE)
PLACES = {"inside": "under jit", "outside": "at top level"}


def declared(id: str = "errors.{form}", **other: Any) -> list[Clause]:
    """The clauses that a family makes, in the order in which it makes them."""
    options: dict[str, Any] = {"claim": CLAIM, "expect": EXPECT, "form": FORMS} | other
    tables = {name: rows for name, rows in options.items() if rows is not None}

    @family(id, **tables)
    def probe(impl: Any, cluster: Any, **rows: Any) -> None:
        """The rows are doubled."""

    clauses: list[Clause] = probe.__dict__.get("clauses", [])
    assert all(one.probe is probe for one in clauses)
    return clauses


def one_of(id: str = "errors.{form}", **other: Any) -> Clause:
    """The clause of the row `ZERO`."""
    return declared(id, **other)[0]


# Ids and rows


def test_there_is_a_clause_for_each_row_under_its_key() -> None:
    clauses = declared("errors.indexing.{form}-of-a-row")
    ids = ["errors.indexing.zero-of-a-row", "errors.indexing.slice-of-a-row"]
    assert [one.id for one in clauses] == ids
    assert [dict(one.parameters) for one in clauses] == [{"form": "zero"}, {"form": "slice"}]
    assert [one.rows["form"] for one in clauses] == [ZERO, SLICE]
    assert {one.section for one in clauses} == {"errors"}


def test_the_probe_is_declared_and_stays_itself() -> None:
    def probe(impl: Any, cluster: Any, form: Form) -> str:
        """The rows are doubled."""
        return form.text

    declare = family("errors.{form}", claim=CLAIM, expect=EXPECT, form=FORMS)
    assert declare(probe) is probe
    assert probe(None, None, ZERO) == "`x[0]`"


def test_a_probe_may_have_families_and_clauses_of_its_own() -> None:
    one: dict[str, Any] = {"claim": CLAIM, "expect": EXPECT}

    @family("errors.second-{form}", form=table(ZERO), **one)
    @family("errors.first-{form}", form=table(ZERO), **one)
    @clause("errors.alone", **one)
    def probe(impl: Any, cluster: Any, form: Form = ZERO) -> None:
        """The rows are doubled."""

    ids = [clause.id for clause in cast(Any, probe).clauses]
    assert ids == ["errors.alone", "errors.first-zero", "errors.second-zero"]


def test_of_several_tables_there_is_a_clause_for_every_choice() -> None:
    clauses = declared("errors.{form}.{place}", place=PLACES)
    assert [one.id for one in clauses] == [
        "errors.zero.inside",
        "errors.zero.outside",
        "errors.slice.inside",
        "errors.slice.outside",
    ]
    assert dict(clauses[1].parameters) == {"form": "zero", "place": "outside"}
    assert dict(clauses[1].rows) == {"form": ZERO, "place": "at top level"}


def test_choices_that_mean_nothing_are_left_out() -> None:
    clauses = declared(
        "errors.{form}.{place}",
        place=PLACES,
        only=lambda form, place: not (form.wide and place == "under jit"),
    )
    assert [one.id for one in clauses] == [
        "errors.zero.inside",
        "errors.zero.outside",
        "errors.slice.outside",
    ]


def test_a_function_takes_the_rows_that_its_parameters_name_and_no_other() -> None:
    clauses = declared("errors.{form}.{place}", place=PLACES, only=lambda form: form is SLICE)
    assert [one.id for one in clauses] == ["errors.slice.inside", "errors.slice.outside"]


def test_where_all_choices_are_left_out_there_is_no_clause() -> None:
    assert declared(only=lambda: False) == []


def test_a_suffix_may_be_empty() -> None:
    suffixes = {"": "once", "-again": "a second time"}
    clauses = declared("errors.{form}{times}", times=suffixes, title="{form.text} {times}.")
    assert {one.id: one.title for one in clauses} == {
        "errors.zero": "`x[0]` once.",
        "errors.zero-again": "`x[0]` a second time.",
        "errors.slice": "`x[0:1]` once.",
        "errors.slice-again": "`x[0:1]` a second time.",
    }
    assert clauses[0].parameters["times"] == ""


def test_a_table_keeps_its_rows_in_order() -> None:
    assert list(table(SLICE, ZERO).items()) == [("slice", SLICE), ("zero", ZERO)]


# What the rows say
@pytest.mark.parametrize(
    ("case", "title", "said"),
    [
        ("of_a_key", "{form} is read.", "zero is read."),
        ("of_a_field", "{form.text} is read.", "`x[0]` is read."),
        ("of_another_field", "{form.width} wide.", "1 wide."),
        ("of_a_row_that_is_text", "Read {place}.", "Read under jit."),
        ("of_both", "{form.text} {place}.", "`x[0]` under jit."),
        ("of_nothing", "Something is read.", "Something is read."),
    ],
)
def test_makes_the_title(case: str, title: str, said: str) -> None:
    assert one_of("errors.{form}.{place}", place=PLACES, title=title).title == said


@pytest.mark.parametrize(
    ("case", "option", "given", "said"),
    [
        ("fact_has_keys", "fact", "errors.{place}.{form}", "errors.inside.zero"),
        ("fixes_has_keys", "fixes", "errors.bad-{form}-{place}", "errors.bad-zero-inside"),
        ("claim_has_texts", "claim", "migrate-pmap.{form}", "migrate-pmap.zero"),
    ],
)
def test_makes(case: str, option: str, given: str, said: str) -> None:
    one = one_of("errors.{form}.{place}", place=PLACES, **{option: given})
    assert getattr(one, option) == said


@pytest.mark.parametrize(
    ("case", "title", "said"),
    [
        ("a_field_that_is_not_there", "{form.kind}", "names 'kind', which the row 'zero'"),
        ("a_property", "{form.wide}", "names 'wide', which the row 'zero'"),
        ("a_method_of_a_text", "{place.upper}", "names 'upper', which the row 'inside'"),
    ],
)
def test_that_names_what_a_row_does_not_have_is_refused(case: str, title: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        declared("errors.{form}.{place}", place=PLACES, title=title)


def test_without_a_title_it_is_the_probes_first_line() -> None:
    assert {one.title for one in declared()} == {"The rows are doubled."}


@pytest.mark.parametrize(
    ("option", "function", "of_zero", "of_slice"),
    [
        ("title", lambda form: f"{form.width} wide.", "1 wide.", "2 wide."),
        ("title", lambda form: "{form.text} is read.", "`x[0]` is read.", "`x[0:1]` is read."),
        ("claim", lambda form: CLAIM if form is ZERO else OTHER_CLAIM, CLAIM, OTHER_CLAIM),
        ("fact", lambda form: f"errors.w{form.width}", "errors.w1", "errors.w2"),
        ("fixes", lambda form: "errors.{form}" if form.wide else None, None, "errors.slice"),
        ("needs", lambda form: devices(form.width), devices(1), devices(2)),
        ("topologies", lambda form: (f"1x{form.width}",), ("1x1",), ("1x2",)),
        ("fresh", lambda form: form.wide, False, True),
        ("deadline_s", lambda form: 3.0 * form.width, 3.0, 6.0),
        ("requires", lambda form: ("flax",) if form.wide else (), (), ("flax",)),
        ("programs", lambda form: ("srun",) if form.wide else (), (), ("srun",)),
        ("selects", lambda form: form.wide, False, True),
        ("timing", lambda form: TIMING if form.wide else None, None, TIMING),
    ],
)
def test_may_be_a_function_of_rows(option: str, function: Any, of_zero: Any, of_slice: Any) -> None:
    seen = [getattr(one, option) for one in declared(**{option: function})]
    assert seen == [of_zero, of_slice]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("needs", devices(2)),
        ("topologies", ("2x2", "4x2")),
        ("fresh", True),
        ("deadline_s", 2.5),
        ("requires", ("flax",)),
        ("programs", ("srun",)),
        ("selects", True),
        ("timing", Timing(("call",), ("errors.a",))),
    ],
)
def test_may_be_a_value_for_all_rows(option: str, value: Any) -> None:
    assert [getattr(one, option) for one in declared(**{option: value})] == [value, value]


# What is expected


def width_of(form: Form) -> Expectation:
    return not_applicable(f"{form.width} wide")


def texts(one: Clause) -> Mapping[str, str]:
    return {name: expectation.text for name, expectation in one.expect.items()}


def test_each_implementation_may_have_a_function_of_its_own() -> None:
    fixed = not_applicable("of all")
    expect = {
        LEGACY_PMAP: width_of,
        NEW_PMAP: lambda place: not_applicable(place),
        SHARD_MAP: fixed,
    }
    clauses = declared("errors.{form}.{place}", place=PLACES, expect=expect)
    assert texts(clauses[3]) == {
        LEGACY_PMAP: not_applicable("2 wide").text,
        NEW_PMAP: not_applicable("at top level").text,
        SHARD_MAP: fixed.text,
    }
    assert texts(clauses[0])[LEGACY_PMAP] == not_applicable("1 wide").text


def test_one_function_may_say_what_all_of_them_do() -> None:
    clauses = declared(expect=lambda form: dict.fromkeys(IMPLEMENTATIONS, width_of(form)))
    assert [set(texts(one).values()) for one in clauses] == [
        {not_applicable("1 wide").text},
        {not_applicable("2 wide").text},
    ]


# Families that are refused


@pytest.mark.parametrize(
    ("id", "other", "said"),
    [
        ("errors.{form}", {"form": {}}, r"family 'errors\.\{form\}': the table 'form' has no rows"),
        ("errors.{form}", {"place": PLACES}, r"has the tables \['form', 'place'\]: name each"),
        ("errors.{form}.{place}", {}, r"has the tables \['form'\]: name each of them once"),
        ("errors.alone", {"form": None}, r"has the tables \[\]: name each of them once"),
        ("errors.{form}", {"form": {"Zero": ZERO}}, r"'errors\.Zero' is not dotted lower-case"),
        ("errors.{form}", {"form": {"": ZERO}}, r"clause id 'errors\.' is not dotted"),
        ("errors.{form}", {"fact": "Errors of {form}"}, "the fact 'Errors of zero' is not dotted"),
        ("errors.{form}", {"needs": devices(9)}, r"errors\.zero can run on none of its topologies"),
        ("errors.{form}", {"topologies": "1x8"}, "topologies is a text; write a tuple"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("errors") else "",
)
def test_a_family_that_can_make_no_clause_is_refused(
    id: str, other: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        declared(id, **other)


def test_two_rows_of_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^two rows .*'zero'"):
        table(ZERO, SLICE, Form("zero", "another"))


@pytest.mark.parametrize("missing", IMPLEMENTATIONS)
def test_every_row_must_expect_something_of_every_implementation(missing: str) -> None:
    def expect(form: Form) -> dict[str, Expectation]:
        return {name: e for name, e in EXPECT.items() if name != missing or form is ZERO}

    with pytest.raises(ValueError, match=rf"errors\.slice has no expectation for {missing}"):
        declared(expect=expect)


# Rows on their way to the probe


def test_a_worker_takes_the_rows_from_the_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order names a clause and no row: rows are objects, which do not travel."""
    from conformance.spec.topology import Topology
    from conformance.worker.process import Worker

    given: list[tuple[Any, Any]] = []

    def observe(probe: Any, parameters: Any, *_: Any) -> dict[str, Any]:
        given.append((probe, parameters))
        return {"steps": []}

    monkeypatch.setattr(recording, "observe", observe)
    one = declared()[1]
    sent: list[Any] = []
    worker: Any = Worker.__new__(Worker)
    worker._channel = SimpleNamespace(send=sent.append)
    worker._clauses = SimpleNamespace(clauses={one.id: one})
    worker._topology, worker._process, worker._cases = Topology(1, 8), 0, 0
    order = {"case": 1, "clause": one.id, "implementation": NEW_PMAP, "deadline_s": 1.0}
    worker._case(order | {"parameters": dict(one.parameters)})
    assert given == [(one.probe, {"form": SLICE})]
    assert sent[-1] == {"case": 1, "ready": True, "unharmed": True}


# Runs


def clause_with(name: str = "probe", **other: Any) -> Clause:
    """The first clause of a family of the probe of that name; each is a function of its own."""

    def probe(impl: Any, cluster: Any, **rows: Any) -> None:
        """The rows are doubled."""

    probe.__qualname__ = name
    options: dict[str, Any] = {"claim": CLAIM, "expect": EXPECT, "form": FORMS} | other
    family("errors.{form}", **options)(probe)
    return cast(Clause, cast(Any, probe).clauses[0])


@pytest.mark.parametrize(
    ("case", "other"),
    [
        ("its_claim", {"claim": OTHER_CLAIM}),
        ("what_it_expects", {"expect": dict.fromkeys(IMPLEMENTATIONS, not_applicable("no"))}),
        ("its_title_and_fact", {"title": "Another.", "fact": "errors.other"}),
        ("what_it_fixes", {"fixes": "errors.faulty"}),
        ("another_row_of_its_table", {"form": table(ZERO)}),
        ("its_topologies", {"topologies": ("2x2",)}),
    ],
)
def test_is_the_same_whatever_is(case: str, other: dict[str, Any]) -> None:
    assert clause_with(**other).run == clause_with().run


@pytest.mark.parametrize(
    ("case", "other"),
    [
        ("another_probe", {"name": "other_probe"}),
        ("another_row", {"form": table(SLICE)}),
        ("another_table_with_an_equal_key", {"form": table(Form("zero", "another"))}),
        ("an_equal_row_that_is_another", {"form": table(Form("zero", "`x[0]`"))}),
        ("a_row_that_is_text", {"form": {"zero": "zero"}}),
        ("a_fresh_cluster", {"fresh": True}),
        ("another_deadline", {"deadline_s": 3.0}),
        ("what_it_requires", {"requires": ("flax",)}),
        ("what_it_starts", {"programs": ("srun",)}),
        ("what_it_selects", {"selects": True}),
    ],
)
def test_is_another_with(case: str, other: dict[str, Any]) -> None:
    assert clause_with(**other).run != clause_with().run


@pytest.mark.parametrize(
    ("case", "one", "other", "same"),
    [
        ("texts", "under jit", "under jit", True),
        ("other_texts", "under jit", "at top level", False),
        ("numbers", 1.5, 1.5, True),
        ("other_numbers", 1, 2, False),
        ("tuples", (1, "a"), (1, "a"), True),
        ("nothing", None, None, True),
    ],
)
def test_of_plain_rows_goes_by_what_they_are(case: str, one: Any, other: Any, same: bool) -> None:
    runs = [clause_with(form={"a": row}).run for row in (one, other)]
    assert (runs[0] == runs[1]) is same


def test_clauses_of_two_families_of_one_probe_judge_one_run() -> None:
    @family("errors.second-{form}", claim=OTHER_CLAIM, expect=EXPECT, form=FORMS)
    @family("errors.first-{form}", claim=CLAIM, expect=EXPECT, form=FORMS)
    def both(impl: Any, cluster: Any, form: Form) -> None:
        """The rows are doubled."""

    runs: dict[Any, list[str]] = {}
    for one in cast(Any, both).clauses:
        runs.setdefault(one.run, []).append(one.id)
    assert list(runs.values()) == [
        ["errors.first-zero", "errors.second-zero"],
        ["errors.first-slice", "errors.second-slice"],
    ]


# Facts


def test_a_clause_is_a_fact_of_its_own() -> None:
    assert [one.fact for one in declared()] == ["errors.zero", "errors.slice"]


def test_clauses_may_vary_one_fact() -> None:
    assert [one.fact for one in declared(fact="errors.reads")] == ["errors.reads"] * 2


@pytest.mark.parametrize("fact", ["Errors", "errors", "errors.", "errors.a b", "errors.A", "a.b_c"])
def test_a_fact_that_is_not_dotted_words_is_refused(fact: str) -> None:
    def plain(impl: Any, cluster: Any) -> None:
        """The rows are doubled."""

    with pytest.raises(ValueError, match=r"errors\.a: the fact .* dotted lower-case"):
        clause("errors.a", claim=CLAIM, expect=EXPECT, fact=fact)(plain)


# Keywords that are left out


@dataclass(frozen=True)
class Placed(Form):
    topologies: tuple[str, ...] = ("2x2",)
    fact: str = "errors.fact"
    left_out: str = "no reason"


PLACED = table(Placed("zero", "`x[0]`"), Placed("slice", "`x[0:1]`", fact="errors.slice-{form}"))


def test_a_keyword_that_is_left_out_is_the_rows_own_field() -> None:
    zero, slice_ = declared(form=PLACED, title="It.")
    assert (zero.topologies, zero.fact, zero.left_out) == (("2x2",), "errors.fact", "no reason")
    assert slice_.fact == "errors.slice-slice"


def test_a_keyword_that_is_given_is_not_the_rows_field() -> None:
    zero, _ = declared(form=PLACED, title="It.", topologies=("1x8",))
    assert zero.topologies == ("1x8",)


def test_rows_without_the_field_leave_clauses_default() -> None:
    zero, _ = declared(title="It.")
    assert (zero.topologies, zero.left_out, zero.fact) == (("1x8",), "", zero.id)


def test_a_field_that_the_rows_of_two_tables_have_is_refused() -> None:
    message = r"rows of form and other both have '(\w+)': give \1 as a function"
    with pytest.raises(ValueError, match=message):
        declared("errors.{form}.{other}", form=PLACED, other=PLACED, title="It.")


def test_a_family_whose_rows_have_no_claim_must_name_one() -> None:
    with pytest.raises(ValueError, match="has no claim"):
        declared(claim=None, title="It.")
