"""By which factor a recorded gradient differs from the wanted one."""

from __future__ import annotations

import pytest
from records import FIRST, Record, cell, clause, leaf, observation, returned
from two_sides import EVERYWHERE, read

from reports.analysis.effects.pairs import Effects
from reports.analysis.gradients import AROUND_THE_MAP, IN_THE_BODY, Factor, Form, factor
from reports.render.site.gradients import pages

OWN = "rewriting.gradients.own"
ROWS = [[14.0, 28.0], [128.0, 160.0]]  # of two devices
SUM, MEAN = [142.0, 188.0], [71.0, 94.0]


def took(id: str, rows: list[list[float]], process: int = 0) -> Record:
    """What one process returned of its devices."""
    values = [value for row in rows for value in row]
    shape = [len(rows), len(rows[0])]
    array = leaf(values, shape=shape, local_shape=shape)
    return observation(returned(array, name=FIRST), process=process)


def cells(id: str, *observations: Record, topology: str = "1x8", **other: object) -> list[Record]:
    where = {"implementation": "new_pmap", "target": "jax==0.9.0", "topology": topology}
    one = cell(id, "conforms", findings=[], observations=[*observations], **where | other)
    return [clause(id, expected=EVERYWHERE), one]


def asked(form: Form, *records: Record, passing: str = "unmapped", topology: str = "1x8") -> Factor:
    own = cells(f"{OWN}.stacked", took(OWN, ROWS))
    effects = Effects(read(*own, *records))
    return factor(effects, form, passing, "new_pmap", "", topology)


@pytest.mark.parametrize(
    ("rows", "says", "right"),
    [
        ([MEAN, MEAN], "1", True),
        ([SUM, SUM], "N", False),
        (ROWS, "own gradient", False),
        ([[2 * a for a in row] for row in ROWS], "N × own gradient", False),  # noqa: RUF001
        ([MEAN, [1.0, 2.0]], "another gradient", False),
    ],
)
def test_what_a_cell_returned_is_named(rows: list[list[float]], says: str, right: bool) -> None:
    form = next(one for one in IN_THE_BODY if one.code == "pmean(grad(loss))")
    found = asked(form, *cells(f"{form.stem}.unmapped", took(form.stem, rows)))

    assert (found.says, found.right, found.clause) == (says, right, f"{form.stem}.unmapped")


def test_what_no_clause_takes_is_not_tested() -> None:
    form = next(one for one in AROUND_THE_MAP if one.several == "")

    assert asked(form).says == ""
    assert asked(form, topology="4x2").says == ""


def test_a_gradient_of_one_process_alone_is_named() -> None:
    others = [[350.0, 400.0], [680.0, 748.0]]
    own = [took(OWN, ROWS, 0), took(OWN, others, 1)]
    form = next(one for one in AROUND_THE_MAP if one.code == "grad(map(pmean(loss)).sum())")
    alone = [took("x", [SUM], 0), took("x", [[1030.0, 1148.0]], 1)]
    records = [
        *cells(f"{OWN}.stacked", *own, topology="4x2"),
        *cells(f"{form.several}.unmapped", *alone, topology="4x2"),
    ]
    found = factor(Effects(read(*records)), form, "unmapped", "new_pmap", "", "4x2")

    assert found.says == "sum over this process's devices"


def tables_of(*records: Record) -> tuple[list[tuple[str, list[str]]], int]:
    """The short tables by their headings, each row in words, and the number of all rows."""
    own = cells(f"{OWN}.stacked", took(OWN, ROWS))
    (page,) = pages(Effects(read(*own, *records)))
    short = [
        (
            one.heading,
            [
                f"{row.parameter}: {row.cells[1].says} {row.cells[1].note}".strip()
                for row in one.rows
            ],
        )
        for one in page.view.short
    ]
    return short, sum(len(one.rows) for one in page.view.tables)


def of(stem: str, parameter: str, rows: list[list[float]], topology: str = "1x8") -> list[Record]:
    return cells(f"{stem}.{parameter}", took(stem, rows), topology=topology)


MEANS = "rewriting.gradients.pmean-of-gradient"


def test_rows_of_equal_factors_are_joined() -> None:
    both = [*of(MEANS, "unmapped", [MEAN, MEAN]), *of(MEANS, "closed-over", [MEAN, MEAN])]
    short, rows = tables_of(*both)
    assert short == [
        ("In the mapped body, one process", ["mapped: 1", "unmapped or closed over: 1"])
    ]
    assert rows == 3


def test_rows_of_other_factors_are_apart() -> None:
    both = [*of(MEANS, "unmapped", [MEAN, MEAN]), *of(MEANS, "closed-over", [SUM, SUM])]
    ((_, rows),) = tables_of(*both)[0]
    assert rows == ["mapped: 1", "unmapped: 1", "closed over: N"]


def test_a_factor_of_one_kind_of_parameter_says_of_which() -> None:
    legacy = {"implementation": "legacy_pmap"}
    other = cells(f"{MEANS}.closed-over", took(MEANS, [MEAN, MEAN]), **legacy)
    ((_, rows),) = tables_of(*of(MEANS, "unmapped", [MEAN, MEAN]), *other)[0]
    assert rows == ["mapped: 1", "unmapped or closed over: 1 if unmapped"]


def test_tables_of_one_process_and_of_several_are_one_where_they_are_equal() -> None:
    one = cells(f"{OWN}.stacked", took(OWN, ROWS), topology="4x2")
    short, _ = tables_of(*one)
    assert [heading for heading, _ in short] == ["In the mapped body, one process or several"]
    more = of(MEANS, "unmapped", [MEAN, MEAN])
    assert [heading for heading, _ in tables_of(*one, *more)[0]] == [
        "In the mapped body, one process",
        "In the mapped body, several processes",
    ]


def test_where_new_pmap_has_the_factors_of_legacy_pmap_is_said() -> None:
    legacy = {"implementation": "legacy_pmap"}

    def as_legacy(*records: Record) -> tuple[str, ...]:
        own = cells(f"{OWN}.stacked", took(OWN, ROWS))
        (page,) = pages(Effects(read(*own, *records)))
        found: tuple[str, ...] = page.view.as_legacy
        return found

    assert as_legacy() == ()  # nothing is known of legacy pmap
    new = of(MEANS, "unmapped", [MEAN, MEAN])
    new += cells(f"{OWN}.stacked", took(OWN, ROWS), **legacy)[1:]
    same = cells(f"{MEANS}.unmapped", took(MEANS, [MEAN, MEAN]), **legacy)[1:]
    assert as_legacy(*new, *same) == ("In the mapped body, one process",)
    other = cells(f"{MEANS}.unmapped", took(MEANS, [SUM, SUM]), **legacy)[1:]
    assert as_legacy(*new, *other) == ()
