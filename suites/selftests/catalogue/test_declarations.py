"""Finding a clause's source, and the parts that are shown: its rows and its probe, unchanged."""

from __future__ import annotations

import inspect
import textwrap

import pytest
from real import catalogue
from sample_section import Make, make

from conformance.catalogue.declarations import line_of, rows, source_text
from conformance.catalogue.modules import module_of

__all__ = ["make"]  # a fixture

REAL = catalogue()
SCREEN = 55  # lines: a row and a probe are read at one look
SAMPLES = {
    section: next(
        one for one in REAL.clauses.values() if one.section == section and line_of(one) is not None
    )
    for section in REAL.sections()
}


@pytest.mark.parametrize("section", SAMPLES)
def test_a_clause_is_shown_as_it_is_written(section: str) -> None:
    one = SAMPLES[section]
    text = source_text(one)
    source = textwrap.dedent(inspect.getsource(one.probe))
    assert text.rstrip().endswith(source[source.index("\ndef ") :].strip())
    assert "@family" not in text
    assert all(f"{name} = " in text for name in one.rows)


def test_every_clause_fits_a_screen() -> None:
    long = {
        id: lines for id, one in REAL.clauses.items() if (lines := source_text(one).count("\n"))
    }
    assert {id: lines for id, lines in long.items() if lines > SCREEN} == {}


def test_every_probe_names_the_types_of_its_arguments() -> None:
    types = {"impl": "Implementation", "cluster": "Cluster"}
    untyped = [
        id
        for id, one in REAL.clauses.items()
        if not types.items() <= inspect.get_annotations(one.probe).items()
    ]
    assert untyped == []


def test_a_row_stands_where_it_is_said_to() -> None:
    for one in SAMPLES.values():
        found = line_of(one)
        assert found is not None
        module, line = found
        row = "\n".join(module_of(module).lines[line - 1 : line + 3])
        assert any(f'"{key}"' in row for key in one.parameters.values()), one.id


def test_a_clause_without_rows_has_no_row_to_point_at() -> None:
    alone = next(one for one in REAL.clauses.values() if not one.rows)
    assert line_of(alone) is None
    assert source_text(alone).startswith("# conformance/sections/")


FORMS = """
    FORMS = table(Form("a", "the row"), Form("b", "another"))
    """
PROBE = """
    @family("errors.{{form}}", form={}, **OF)
    def probe(impl, cluster, form):
        '''A probe.'''
        print(form.text)
    """


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("FORMS", 'Form("a", "the row")'),
        ('table(Form("a", "here"))', 'Form("a", "here")'),
        ('{"a": Form("a", "in a dict")}', 'Form("a", "in a dict")'),
        ('{**FORMS, "c": Form("c")}', 'Form("a", "the row")'),
        ('{k: v for k, v in FORMS.items() if k == "a"}', 'Form("a", "the row")'),
        ("table(*FORMS.values())", None),
        ("{k: Form(k) for k in 'ab'}", None),
    ],
)
def test_a_row_is_found_in_its_table(make: Make, table: str, wanted: str | None) -> None:
    one = make(textwrap.dedent(FORMS) + textwrap.dedent(PROBE.format(table)))
    text = source_text(one)
    if wanted is None:
        assert rows(one) == {"form": None}
        assert "# form = 'a', a row that its table makes" in text
    else:
        assert f"form = {wanted}\n" in text
    assert "another" not in text
    assert text.endswith("    print(form.text)\n")


def test_a_row_from_another_module_names_its_file(make: Make) -> None:
    rows_module = """
        from dataclasses import dataclass
        @dataclass
        class Form:
            key: str
            text: str = ""
        FORMS = {"a": Form("a", "from afar")}
        """
    main = "from PACKAGE.forms import FORMS\n" + textwrap.dedent(PROBE.format("FORMS"))
    one = make(main, forms=rows_module)
    assert 'forms.py:7\nform = Form("a", "from afar")\n' in source_text(one)


@pytest.mark.parametrize(("key", "text"), [("a", "first"), ("b", "second"), ("c", None)])
def test_of_families_with_one_id_it_is_the_one_with_the_row(
    make: Make, key: str, text: str | None
) -> None:
    main = textwrap.dedent(FORMS) + textwrap.dedent(
        """
            def made(*keys):
                return {key: Form(key, "third") for key in keys}

            @family("errors.{form}", form=made("c"), **OF)
            @family("errors.{form}", form=table(Form("b", "second")), **OF)
            @family("errors.{form}", form=table(Form("a", "first")), **OF)
            def probe(impl, cluster, form):
                '''A probe.'''
                print(form.text)
            """
    )
    shown = source_text(make(main, f"errors.{key}"))
    assert (f'form = Form("{key}", "{text}")\n' in shown) is (text is not None)


def test_a_family_that_a_helper_declares_shows_its_probe(make: Make) -> None:
    main = textwrap.dedent(FORMS) + textwrap.dedent(
        """
        def of_forms(id):
            return family(id + ".{form}", form=FORMS, **OF)

        @of_forms("errors")
        def probe(impl, cluster, form):
            '''A probe.'''
            print(form.text)
        """
    )
    text = source_text(make(main))
    assert "# form = 'a', a row that its table makes" in text
    assert "def probe(impl, cluster, form):" in text
