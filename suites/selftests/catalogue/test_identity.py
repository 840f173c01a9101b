"""The digest of a program: another one wherever other code runs, and only there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from processes import HANGS_S
from real import catalogue
from sample_section import Make, make

import conformance
from conformance.catalogue import identity
from conformance.catalogue.identity import program_digest
from harness.targets.interpreters import find

__all__ = ["make"]  # a fixture

REAL = catalogue()

MAIN = """
from PACKAGE.helpers import Kept, helper

class Local:
    def used(self):
        return 1

    def unused(self):
        return 2

@family(
    "errors.{form}",
    form=table(Form("a", "the row", aside=1), Form("b", "another")),
    **OF,
)
def probe(impl, cluster, form):
    '''A probe.'''
    mapped = impl.map(helper, "i")
    print(form.text, Local().used(), Kept.name, mapped)
"""
HELPERS = """
from conformance.spec.texts import described
from PACKAGE.deeper import LIMIT

class Kept:
    name = "kept"

def helper(x):
    return within(x) + LIMIT

def within(x):
    return x * 2

def unused(x):
    return x
"""
DEEPER = "LIMIT = 3\n"


def digest(make: Make, main: str = MAIN, helpers: str = HELPERS, deeper: str = DEEPER) -> str:
    return program_digest(make(main, helpers=helpers, deeper=deeper))


def replaced(text: str, now: str, other: str) -> str:
    assert now in text
    return text.replace(now, other)


@pytest.mark.parametrize(
    ("where", "now", "other"),
    [
        pytest.param("main", "form.text, ", "", id="probe"),
        pytest.param("main", '"the row"', '"a row"', id="row"),
        pytest.param("main", "return 1", "return 2", id="method-of-a-class"),
        pytest.param("main", '"i"', '"j"', id="argument"),
        pytest.param("helpers", "within(x) + LIMIT", "LIMIT + within(x)", id="helper"),
        pytest.param("helpers", "x * 2", "x * 4", id="helper-of-a-helper"),
        pytest.param("helpers", '"kept"', '"other"', id="class-attribute"),
        pytest.param("deeper", "3", "4", id="constant-of-a-third-module"),
    ],
)
def test_other_code_is_another_program(make: Make, where: str, now: str, other: str) -> None:
    texts = {"main": MAIN, "helpers": HELPERS, "deeper": DEEPER}
    changed = texts | {where: replaced(texts[where], now, other)}
    assert digest(make, **texts) != digest(make, **changed)


@pytest.mark.parametrize(
    ("where", "now", "other"),
    [
        pytest.param("main", "'''A probe.'''", "'''In other words.'''", id="docstring"),
        pytest.param("main", "    mapped = ", "    # why\n\n    mapped = ", id="comment"),
        pytest.param("main", 'Form("b", "another")', 'Form("b", "other")', id="another-row"),
        pytest.param("main", "return 2", "return 3", id="method-that-nothing-calls"),
        pytest.param("main", "aside=1", "aside=2", id="field-that-nothing-reads"),
        pytest.param("main", "**OF,", 'fact="errors.one", **OF,', id="declaration"),
        pytest.param("helpers", "return x\n", "return -x\n", id="function-that-nothing-calls"),
        pytest.param("helpers", "def helper(x):", "def helper(x: int) -> int:", id="annotation"),
        pytest.param("helpers", "def helper", "@described('text')\ndef helper", id="model-text"),
        pytest.param("main", '"a", "the row"', '"a",\n "the row"', id="line-break"),
    ],
)
def test_the_same_code_is_the_same_program(make: Make, where: str, now: str, other: str) -> None:
    texts = {"main": MAIN, "helpers": HELPERS, "deeper": DEEPER}
    changed = texts | {where: replaced(texts[where], now, other)}
    assert digest(make, **texts) == digest(make, **changed)


def test_code_may_move_to_another_module(make: Make) -> None:
    moved = replaced(HELPERS, "from PACKAGE.deeper import LIMIT", "LIMIT = 3")
    assert digest(make) == digest(make, helpers=moved)


def test_a_row_that_its_table_makes_is_told_by_the_table(make: Make) -> None:
    made = replaced(
        MAIN,
        'table(Form("a", "the row", aside=1), Form("b", "another"))',
        '{k: Form(k, k * 2) for k in "ab"}',
    )
    assert digest(make, made) != digest(make, replaced(made, "k * 2", "k * 3"))


@pytest.mark.parametrize(
    ("row", "other", "same"),
    [
        ('_form("a", 1, "the row")', '_form("a", 1, "a row")', False),
        ('_form("a", 1, "the row")', '_form("a", 2, "the row")', True),
        ('_form("a", aside=1, shown="the row")', '_form("a", aside=2, shown="the row")', True),
        ('_form("a", *(1, "the row"))', '_form("a", *(1, "a row"))', False),
        ('_form("a", *(), 1, "the row")', '_form("a", *(), 1, "a row")', False),
    ],
)
def test_a_row_that_a_helper_makes_is_told_by_what_the_helper_takes(
    make: Make, row: str, other: str, same: bool
) -> None:
    """Its third argument is the field `text`, which the probe reads, and not the third field."""
    helper = "def _form(key, aside, shown):\n    return Form(key, shown, aside=aside)\n\n@family("
    helped = replaced(MAIN, "@family(", helper)
    one, two = (
        digest(make, replaced(helped, 'Form("a", "the row", aside=1)', text))
        for text in (row, other)
    )
    assert (one == two) is same


def test_what_a_probe_is_given_is_part_of_its_program(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The methods that it calls, and no others."""
    other = replaced(MAIN, 'impl.map(helper, "i")', "impl.sharding()")
    one = digest(make), digest(make, other)
    given = identity._callable_methods(frozenset({"map"}))
    assert {"map", "adopt", "select", "mesh"} <= {getattr(node, "name", "") for node in given}
    kept = tuple(node for node in given if getattr(node, "name", "") != "map")
    monkeypatch.setattr(
        identity, "_callable_methods", lambda used: kept if "map" in used else given[:1]
    )
    two = digest(make), digest(make, other)
    assert one[0] != two[0]


def test_a_probe_within_a_function_is_refused(make: Make) -> None:
    main = """
        def made():
            @clause("errors.a", **OF)
            def inner(impl, cluster):
                '''A probe.'''
            return inner

        probe = made()
        """
    with pytest.raises(ValueError, match=r"errors\.a: its probe inner"):
        program_digest(make(main))


def test_clauses_of_two_programs_have_two_digests() -> None:
    digests: dict[str, set[str]] = {}
    for one in REAL.clauses.values():
        digests.setdefault(program_digest(one), set()).add(one.id)
    shared = [ids for ids in digests.values() if len({REAL.clauses[id].run for id in ids}) > 1]
    assert shared == []


# Syntax trees differ between versions of Python, and controllers run on all of them.
OTHERS = {one.version[:2]: one.path for one in find() if one.version[:2] != sys.version_info[:2]}
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from conformance.catalogue.modules import module_of, tree_of
found = {}
for name in json.loads(sys.argv[2]):
    for bound, node in module_of(name).bound.items():
        found[f"{name}.{bound}"] = tree_of(node)
print(json.dumps(found))
"""
MODULES = ("conformance.worker.plain", "conformance.judging.judge", "conformance.worker.memory")


@pytest.mark.skipif(not OTHERS, reason="one version of Python is installed here")
def test_every_python_writes_a_tree_alike() -> None:
    root = Path(conformance.__file__).parents[1]
    wanted = [str(root), json.dumps(MODULES)]
    told = [
        subprocess.run(
            [python, "-c", PROGRAM, *wanted],
            capture_output=True,
            text=True,
            check=True,
            timeout=HANGS_S,
        ).stdout
        for python in (sys.executable, *map(str, OTHERS.values()))
    ]
    assert len(json.loads(told[0])) > 30
    assert all(one == told[0] for one in told)
