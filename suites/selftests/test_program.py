"""Programs as text: all that they need stands in them, and they do what the clause's cell does.

Whoever pastes a program that is incomplete sees a NameError in place of JAX's answer. What the text
of small modules comes to is told by running it with no JAX; that of real clauses by reading it, and
of two of them by running it.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import dataclasses
import dis
import functools
import importlib
import inspect
import itertools
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any
from unittest import TestCase
from unittest.mock import MagicMock

import jax
import pytest
from parameterized import parameterized
from processes import HANGS_S
from real import catalogue

import conformance.sections
from conformance.catalogue.clause import Clause
from conformance.catalogue.names import IMPLEMENTATIONS, NEW_PMAP, SHARD_MAP
from conformance.catalogue.program import pasteable, program
from conformance.catalogue.reading import ProgramError, line_of, module_of, rows

REAL = catalogue()


def sample(section: str) -> Clause:
    """A clause of a section with a row that is a literal."""
    found = (one for one in REAL.clauses.values() if one.section == section)
    return next(one for one in found if line_of(one) is not None)


# Those of the section `switches` start Pythons of their own.
SECTIONS = [name for name in REAL.sections() if name != "switches"]
SAMPLES = {name: sample(name) for name in SECTIONS}


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def unknown(text: str) -> list[str]:
    """The names that a program uses and has not bound: at all, or yet where its lines run."""
    known, found, later = {*dir(builtins), "__name__", "__annotations__"}, [], set[str]()
    for part in text.split("\n\n\n"):
        order, within = _names(part)
        for bound, name in order:
            if bound:
                known.add(name)
            elif name not in known:
                found.append(name)
        later |= within
    return found + sorted(later - known)


@functools.cache
def _names(part: str) -> tuple[tuple[tuple[bool, str], ...], frozenset[str]]:
    """What a part of a program binds and loads as it runs, in order; and its functions' globals."""
    flags = __future__.annotations.compiler_flag
    code = compile(part, "program", "exec", flags=flags, dont_inherit=True)
    order = [
        (one.opname.startswith("STORE_"), str(one.argval))
        for one in dis.get_instructions(code)
        if one.opname in ("STORE_NAME", "STORE_GLOBAL", "LOAD_NAME")
    ]
    within = {
        str(one.argval)
        for inner in codes(code)
        for one in dis.get_instructions(inner)
        if one.opname == "LOAD_GLOBAL"
    }
    return tuple(order), frozenset(within)


def imported(text: str) -> set[str]:
    """The modules that a program imports, anywhere in it."""
    found = re.findall(r"^ *(?:from|import) ([\w.]+)(?: import .*| as \w+)?$", text, re.MULTILINE)
    return {*found}


def definitions(text: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    body = ast.parse(text).body
    return {one.name: one for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)}


def bound_last(text: str, name: str) -> ast.expr:
    """What a name is assigned at the end of a program."""
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == [name]:
            return node.value
    raise AssertionError(f"{name} is not assigned")


# The programs of the clauses that there are


def test_every_program_has_all_that_it_uses() -> None:
    """Neither a name that nothing binds, nor one that stands too late, nor a part of ours."""
    found = {}
    for one in REAL.clauses.values():
        text = program(one)
        lacking = unknown(text)
        ours = {name for name in imported(text) if name.split(".")[0] == "conformance"}
        if ours and "\n# It starts Pythons of its own" not in text:
            lacking += sorted(ours)
        if lacking:
            found[one.id] = lacking
    assert found == {}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_program_stands_alone(section: str, implementation: str) -> None:
    one = SAMPLES[section]
    text = program(one, implementation)
    assert "@clause" not in text
    assert "@family" not in text
    assert not any(name.startswith("conformance") for name in imported(text))
    assert f'IMPLEMENTATION = "{implementation}"  # or ' in text
    lines = text.splitlines()
    blocks = [after for line, after in itertools.pairwise(lines) if not line.strip()]
    assert [line for line in blocks if line.startswith(" ")] == []
    assert lines[0] == f"# {one.id}: {one.title}"


@pytest.mark.parametrize("section", SECTIONS)
def test_a_program_has_the_probe_as_it_is(section: str) -> None:
    one = SAMPLES[section]
    kept = definitions(program(one))[one.probe.__name__]
    source = ast.parse(textwrap.dedent(inspect.getsource(one.probe))).body[0]
    assert isinstance(source, ast.FunctionDef)
    assert [*map(ast.dump, kept.body[1:])] == [*map(ast.dump, source.body[1:])]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_program_has_the_rows_and_gives_them_to_the_probe(section: str) -> None:
    one = SAMPLES[section]
    text = program(one)
    given = ", ".join(["impl", "cluster", *(f"{name}={name}" for name in one.rows)])
    assert text.splitlines()[-1] == f"{one.probe.__name__}({given})"
    made = {name: bound_last(text, name) for name in one.rows}
    keyed = {
        name
        for name, row in made.items()
        for node in ast.walk(row)
        if isinstance(node, ast.Constant) and node.value == one.parameters[name]
    }
    assert keyed & {name for name, row in made.items() if isinstance(row, ast.Call)}


def test_rows_that_are_asked_of_a_table_are_the_clauses_own() -> None:
    """Such a table is made as the program runs, and may be the wrong one of several."""
    asked: dict[Any, Clause] = {}
    for one in REAL.clauses.values():
        keys = [(name, one.parameters[name]) for name, row in rows(one).items() if row is None]
        if keys:
            asked.setdefault((one.probe, *keys), one)
    assert asked
    found = {}
    for one in asked.values():
        made = before_the_call(program(one))
        if [plain(made[name]) for name in one.rows] != [*map(plain, one.rows.values())]:
            found[one.id] = {name: made[name] for name in one.rows}
    assert found == {}


def before_the_call(text: str) -> dict[str, Any]:
    """What a program's names are once all but its last line has run, on an untouched JAX."""
    made = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jax.config, "update", lambda *_: None)
        patched.setattr(jax.distributed, "initialize", lambda *_: None)
        exec(compile(text.rstrip().rpartition("\n")[0], "program", "exec"), made)
    return made


def plain(row: Any) -> list[Any]:
    """What of a row is text or a number: the rest is another object each time it is made."""
    if not dataclasses.is_dataclass(row):
        return [type(row).__name__]
    parts = [getattr(row, one.name) for one in dataclasses.fields(row)]
    return [one for one in parts if isinstance(one, str | int | float)]


def test_a_row_stands_where_it_is_said_to() -> None:
    for one in SAMPLES.values():
        found = line_of(one)
        assert found is not None
        module, line = found
        file = module_of(module).lines
        row = "\n".join(file[line - 1 : line + 3])
        assert any(f'"{key}"' in row for key in one.parameters.values()), one.id


def test_a_clause_without_rows_has_no_row_to_point_at() -> None:
    alone = next(one for one in REAL.clauses.values() if not one.rows)
    assert line_of(alone) is None
    assert program(alone).endswith(f"\n{alone.probe.__name__}(impl, cluster)\n")


# Where a program runs


def test_without_a_topology_it_is_the_clauses_first() -> None:
    one = next(one for one in REAL.clauses.values() if one.topologies[0] == "2x2")
    assert "\nPROCESSES, DEVICES = 2, 2\n" in program(one)
    assert "\nPROCESSES, DEVICES = 1, 8\n" in program(one, topology="1x8")


def test_a_program_of_several_processes_joins_them() -> None:
    one = next(one for one in REAL.clauses.values() if "2x2" in one.topologies)
    lines = program(one, SHARD_MAP, "2x2").splitlines()
    start = "# As shard_map, in 2 processes with 2 devices: start it once for each PROCESS."
    assert lines[1] == start
    assert 'PROCESS = int(os.environ.get("PROCESS", "0"))' in lines
    at = lines.index("if PROCESSES > 1:")
    assert lines[at + 1].endswith('"jax_cpu_collectives_implementation", "gloo")')
    joins = lines[at + 2].strip()
    assert joins.startswith("jax.distributed.initialize(")
    assert joins.endswith("PROCESSES, PROCESS)")
    assert at < lines.index("impl = PlainImplementation(IMPLEMENTATION)")
    alone = program(one, topology="1x8").splitlines()
    assert alone[1] == "# As new_pmap, in 1 process with 8 devices."


@pytest.mark.parametrize("topology", ["8", "0x8", "1x8x1", "two"])
def test_a_topology_that_is_none_is_refused(topology: str) -> None:
    with pytest.raises(ValueError, match="is not PROCESSESxDEVICES"):
        program(SAMPLES["errors"], topology=topology)


# Two of them, run


def printed(text: str, folder: Path) -> str:
    """What a program prints in a Python that finds no module of this project."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PYTHON"))}
    file = folder / "program.py"
    file.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(file)],
        env=kept,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_program_returns_what_its_clause_expects(tmp_path: Path) -> None:
    one = REAL.clauses["errors.lowered.one-process-map"]
    said = printed(program(one, NEW_PMAP, "1x8"), tmp_path)
    steps = ["the map itself", "first call", "second call"]
    assert [line.split(":")[0] for line in said.splitlines() if "Array(" in line] == steps
    assert said.count("[ 2.,  4.,  6.],") == said.count("[44., 46., 48.]]") == len(steps)
    assert "raised" not in said


def test_a_program_raises_and_tells_what_its_clause_expects(tmp_path: Path) -> None:
    one = REAL.clauses["rank.sum.no-axis.1d"]
    said = printed(program(one, SHARD_MAP, "1x8"), tmp_path)
    assert "\nunchanged again: raised ValueError: " in said
    assert said.count("\n  rank outcome: error\n") == 2
    assert "\nindexed again: returned Array([29.75 , 31.5  ," in said


# Small modules, whose programs are run without JAX

HEAD = """\
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from conformance.catalogue.clause import clause
from conformance.catalogue.family import family, table
from conformance.judging.columns import everywhere
from conformance.judging.expectation import not_applicable

OF = {"claim": "migrate-pmap.incompatible-devices", "expect": everywhere(not_applicable("no"))}


@dataclass(frozen=True)
class Form:
    key: str
    text: str = ""

"""
PROBE = '''
@clause("errors.a", **OF)
def probe(impl, cluster):
    """A probe."""
    print(helper())
'''
COUNT = itertools.count()

Make = Callable[..., Clause]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make a section of these modules; the clause that `main` declares, or that of the id."""
    monkeypatch.setattr(conformance.sections, "__path__", [str(tmp_path)])
    before = set(sys.modules)

    def write(main: str, id: str = "errors.a", **modules: str) -> Clause:
        name = f"sample{next(COUNT)}"
        package = f"conformance.sections.{name}"
        folder = tmp_path / name
        folder.mkdir()
        for module, text in {"__init__": "", "main": HEAD + main, **modules}.items():
            text = textwrap.dedent(text).replace("PACKAGE", package)
            (folder / f"{module}.py").write_text(text, encoding="utf-8")
        loaded = importlib.import_module(f"{package}.main")
        found: list[Clause] = loaded.probe.clauses
        return next(one for one in found if one.id == id)

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("conformance.sections.sample"):
            del sys.modules[name]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    """What the program of a clause prints where JAX does nothing at all."""

    def run(one: Clause) -> list[str]:
        text = program(one)
        assert unknown(text) == []
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(sys.modules, "jax", MagicMock())
            exec(compile(text, "program", "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out.splitlines()

    return run


def test_all_that_a_probe_uses_stands_before_it(make: Make, told: Any) -> None:
    main = """
        LAST = 3
        FIRST = LAST - 2

        def helper():
            return sorted(other())

        @functools.cache
        def other():
            return list(range(FIRST, LAST))
        """
    one = make(textwrap.dedent(main) + PROBE)
    assert told(one) == ["[1, 2]"]
    assert "@functools.cache\ndef other" in program(one)


def test_two_modules_may_use_one_name(make: Make, told: Any) -> None:
    one = make(
        textwrap.dedent("""
            from PACKAGE.other import asked

            WIDTH = 2

            def size():
                return WIDTH

            def helper():
                return size(), asked()
            """)
        + PROBE,
        other="""
            WIDTH = 5

            def size():
                return WIDTH

            def asked():
                return size()
            """,
    )
    assert told(one) == ["(2, 5)"]
    sizes = [name for name in definitions(program(one)) if name.endswith("size")]
    assert sizes == ["size", "main_size"]


class NamesTest(TestCase):
    """One name with two meanings: the text must mean what the modules do."""

    make: Make
    told: Any

    @pytest.fixture(autouse=True)
    def _given(self, make: Make, told: Any) -> None:
        self.make, self.told = make, told

    @parameterized.expand(
        [
            (
                "the_clusters_size",
                "DEVICES = 'ours'\ndef helper():\n    return DEVICES",
                "",
                "ours",
            ),
            (
                "what_a_probe_is_given",
                "def cluster():\n    return 'ours'\ndef helper():\n    return cluster()",
                "",
                "ours",
            ),
            (
                "an_assignment_of_two_names",
                "from PACKAGE.other import asked\nPEAK = 1\n"
                "def helper():\n    return PEAK, asked()",
                "PEAK, LEVEL = 5, 6\ndef asked():\n    return LEVEL",
                "(1, 6)",
            ),
            (
                "a_parameter",
                "from PACKAGE.other import told\ndef rows():\n    return 1\n"
                "def helper():\n    return rows(), told()",
                "def rows():\n    return 5\n"
                "def told():\n    return (lambda rows, other=rows: (rows, other()))(rows() + 1)",
                "(1, (6, 5))",
            ),
            (
                "a_method",
                "from PACKAGE.other import told\ndef rows():\n    return 1\n"
                "def helper():\n    return rows(), told()",
                "def rows():\n    return 5\n"
                "class Asked:\n    def rows(self):\n        return rows() + 1\n"
                "def told():\n    return Asked().rows()",
                "(1, 6)",
            ),
            (
                "a_method_of_a_class_in_a_function",
                "from PACKAGE.other import told\ndef rows():\n    return 1\n"
                "def helper():\n    return rows(), told()",
                "def rows():\n    return 5\n"
                "def told():\n    class Asked:\n        def rows(self):\n"
                "            return rows() + 1\n    return Asked().rows()",
                "(1, 6)",
            ),
            (
                "a_field",
                "from PACKAGE.other import told\nrows = 1\ndef helper():\n    return rows, told()",
                "from dataclasses import dataclass\nrows = 5\n"
                "@dataclass\nclass Asked:\n    rows: int = rows\n"
                "def told():\n    return Asked().rows, Asked(rows=6).rows",
                "(1, (5, 6))",
            ),
            (
                "a_class_and_what_derives_from_it",
                "from PACKAGE.other import asked\nclass Base:\n    said = 1\n"
                "def helper():\n    return Base.said, asked()",
                "class Base:\n    said = 5\nclass Other(Base):\n    pass\n"
                "def asked():\n    return Other.said",
                "(1, 5)",
            ),
            (
                "an_import",
                "from PACKAGE.other import asked\nfrom operator import add as joined\n"
                "def helper():\n    return joined(1, 2), asked()",
                "from operator import mul as joined\ndef asked():\n    return joined(5, 6)",
                "(3, 30)",
            ),
            (
                "an_import_and_a_function",
                "from PACKAGE.other import asked\ndef add(x, y):\n    return 'ours'\n"
                "def helper():\n    return add(1, 2), asked()",
                "from operator import add\ndef asked():\n    return add(5, 6)",
                "('ours', 11)",
            ),
            (
                "a_module_of_ours",
                "from PACKAGE import other\ndef asked():\n    return 1\n"
                "def helper():\n    return asked(), other.asked(), other.TWO",
                "TWO = 2\ndef asked():\n    return 5",
                "(1, 5, 2)",
            ),
            (
                "a_module_in_a_package",
                "import os.path\nimport os\n"
                "def helper():\n    return os.path.basename('a/b'), os.sep",
                "",
                "('b', '/')",
            ),
        ]
    )
    def test_that_is_also(self, case: str, main: str, other: str, said: str) -> None:
        assert self.told(self.make(f"{main}\n{PROBE}", other=other)) == [said]


def test_a_row_may_be_called_as_what_the_probe_uses(make: Make, told: Any) -> None:
    one = make(
        textwrap.dedent("""
            def form():
                return "ours"

            def helper():
                return form()

            @family("errors.{form}", form=table(Form("a", "a row")), **OF)
            def probe(impl, cluster, form):
                '''A probe.'''
                print(helper(), form.text)
            """)
    )
    assert told(one) == ["ours a row"]


# Rows


ROWS = """
    from PACKAGE.other import ELSEWHERE

    FORMS = table(
        Form("b", "another"),
        Form(
            key="a",
            text="the row",
        ),
    )
    BOTH = {**FORMS, "c": Form("c", "a third")}
    """
OTHER_ROWS = """
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Far:
        key: str
        text: str

    ELSEWHERE = {"a": Far("a", "from afar")}
    """


class RowTest(TestCase):
    make: Make
    told: Any

    @pytest.fixture(autouse=True)
    def _given(self, make: Make, told: Any) -> None:
        self.make, self.told = make, told

    def of(self, table: str) -> Clause:
        probe = f"""
            @family("errors.{{form}}", form={table}, **OF)
            def probe(impl, cluster, form):
                '''A probe.'''
                print(form.text)
            """
        main = textwrap.dedent(ROWS) + textwrap.dedent(probe)
        return self.make(main, other=OTHER_ROWS)

    @parameterized.expand(
        [
            ("a_table", "FORMS", "the row", "main", "        Form("),
            ("a_table_written_there", "table(Form('a', 'here'))", "here", "main", "@family"),
            ("a_table_of_tables", "BOTH", "the row", "main", "        Form("),
            ("some_of_a_table", "{k: v for k, v in FORMS.items()}", "the row", "main", "Form("),
            ("another_module", "ELSEWHERE", "from afar", "other", "ELSEWHERE"),
        ]
    )
    def test_is_found_in(self, case: str, table: str, said: str, module: str, line: str) -> None:
        one = self.of(table)
        assert self.told(one) == [said]
        found = line_of(one)
        assert found is not None
        assert found[0].endswith(f".{module}")
        assert line.strip() in module_of(found[0]).lines[found[1] - 1]

    @parameterized.expand(
        [
            ("a_call", "dict(reversed(FORMS.items()))", "the row"),
            ("names_of_rows", "table(*FORMS.values())", "the row"),
            ("rows_that_are_made", "{k: Form(k, k * 2) for k in 'ab'}", "aa"),
        ]
    )
    def test_that_only_running_can_tell_is_asked_of_the_table(
        self, case: str, table: str, said: str
    ) -> None:
        one = self.of(table)
        assert line_of(one) is None
        assert "from afar" not in program(one)
        assert ast.unparse(bound_last(program(one), "form")).endswith("['a']")
        assert self.told(one) == [said]

    def test_other_rows_are_left_out(self) -> None:
        text = program(self.of("FORMS"))
        assert "the row" in text
        assert "another" not in text


def test_a_probe_that_is_declared_twice_has_each_clauses_own_row(make: Make, told: Any) -> None:
    main = """
        @family("errors.second-{form}", form=table(Form("a", "second")), **OF)
        @family("errors.first-{form}", form=table(Form("a", "first")), **OF)
        def probe(impl, cluster, form):
            '''A probe.'''
            print(form.text)
        """
    for which in ("first", "second"):
        assert told(make(textwrap.dedent(main), f"errors.{which}-a")) == [which]


@pytest.mark.parametrize(("key", "said"), [("a", "first"), ("b", "second"), ("c", "third")])
def test_of_families_with_one_id_it_is_the_one_with_the_row(
    make: Make, told: Any, key: str, said: str
) -> None:
    main = """
        def made(*keys):
            return {key: Form(key, "third") for key in keys}

        @family("errors.{form}", form=made("c"), **OF)
        @family("errors.{form}", form=table(Form("b", "second")), **OF)
        @family("errors.{form}", form=table(Form("a", "first")), **OF)
        def probe(impl, cluster, form):
            '''A probe.'''
            print(form.text)
        """
    assert told(make(textwrap.dedent(main), f"errors.{key}")) == [said]


def test_an_id_may_be_put_together_as_the_module_runs(make: Make, told: Any) -> None:
    main = """
        SECTION = "errors"

        @family(SECTION + ".{form}", form=table(Form("a", "the row")), **OF)
        def probe(impl, cluster, form):
            '''A probe.'''
            print(form.text)
        """
    one = make(textwrap.dedent(main))
    assert told(one) == ["the row"]
    assert line_of(one) is not None


def test_rows_that_no_declaration_has_cannot_be_told(make: Make) -> None:
    one = dataclasses.replace(make("def helper():\n    return 1\n" + PROBE), rows={"form": 1})
    with pytest.raises(ProgramError, match=r"errors\.a: no declaration at its probe in .* has"):
        program(one)


def test_a_probe_within_a_function_has_no_program(make: Make) -> None:
    main = """
        def made():
            @clause("errors.a", **OF)
            def inner(impl, cluster):
                '''A probe.'''
            return inner

        probe = made()
        """
    with pytest.raises(ProgramError, match=r"errors\.a: its probe is no function at the top of"):
        program(make(textwrap.dedent(main)))


# Methods


CLASS = '''
class Said:
    """Says things."""

    def __init__(self):
        self.words = ["said"]

    def asked(self):
        return self.needed()

    def needed(self):
        return self.words

    def idle(self):
        return UNUSED

    @property
    def length(self):
        return len(self.words)

UNUSED = "never used"

def helper():
    return Said().asked()
'''


def test_methods_that_nothing_calls_are_left_out(make: Make, told: Any) -> None:
    one = make(CLASS + PROBE)
    assert told(one) == ["['said']"]
    kept = definitions(program(one))["Said"].body
    names = [node.name for node in kept if isinstance(node, ast.FunctionDef)]
    assert names == ["__init__", "asked", "needed"]
    assert "never used" not in program(one)


def test_methods_that_are_called_anywhere_are_there(make: Make, told: Any) -> None:
    one = make(CLASS.replace("Said().asked()", "Said().length, Said().idle()") + PROBE)
    assert told(one) == ["(1, 'never used')"]
    text = program(one)
    assert "    @property\n    def length(self):" in text
    assert "def needed" not in text


def test_what_no_step_needs_is_not_in_a_real_program() -> None:
    one = REAL.clauses["errors.lowered.one-process-map"]
    kept = definitions(program(one))
    names = [n.name for n in kept["PlainCluster"].body if isinstance(n, ast.FunctionDef)]
    assert {"step", "twice"} <= set(names)
    assert "compiled" not in names
    assert "compiled_by" not in kept


# Text that can be pasted


def test_blocks_have_no_empty_lines_and_docstrings_one_line() -> None:
    text = '''\
def f(x):
    """One line.

    More of it.
    """
    y = x

    # said
    return y
'''
    assert pasteable(text).splitlines() == [
        "def f(x):",
        '    """One line."""',
        "    y = x",
        "    # said",
        "    return y",
    ]


def test_a_program_can_be_typed_line_by_line() -> None:
    """As an interactive session takes it: a block ends at the first empty line."""
    import codeop

    compiler = codeop.CommandCompiler()
    block: list[str] = []
    for line in program(SAMPLES["errors"]).splitlines():
        block.append(line)
        text = "\n".join(block)
        if not text.strip() or compiler(text, "session", "single") is not None:
            block = []
    assert block == []
