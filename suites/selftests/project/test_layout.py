"""The project's layout: the allowed imports, and what modules are called.

A worker of another interpreter has only jax and numpy: an import too many there would break only
targets that nobody runs every day.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).resolve().parents[3]

PACKAGES = ("conformance", "harness", "reports")
SECTIONS = "conformance/sections"
SCANNED = ROOT / "suites" / "selftests" / "scanning"
# Which way imports may point: a room may import itself and those named here, and no other.
# Each folder of a package is a room.
ROOMS: dict[str, set[str]] = {
    "conformance.model": set(),
    "conformance.spec": set(),
    "conformance.catalogue": {"conformance.model", "conformance.spec"},
    "conformance.judging": {"conformance.catalogue", "conformance.model", "conformance.spec"},
    "conformance.mutation": {
        "conformance.catalogue",
        "conformance.judging",
        "conformance.model",
        "conformance.spec",
    },
    # What runs beside JAX.
    "conformance.worker": {
        "conformance.catalogue",
        "conformance.commandline",
        "conformance.spec",
    },
    "conformance.patterns": set(),
    "conformance.sections": {"conformance.patterns", "conformance.spec", "conformance.worker"},
    "conformance.store": {"conformance.model"},
    "conformance.commands": {"conformance.*"},
    # It reads what others wrote: rules it takes from the catalogue, what changes it is given.
    "conformance.scanning": {
        "conformance.catalogue",
        "conformance.commandline",
        "conformance.model",
        "conformance.spec",
    },
    # What all commands have in common knows nothing of what a command does.
    "conformance.commandline": set(),
    "conformance.plain": {"conformance.catalogue", "conformance.spec", "conformance.worker"},
    "harness.targets": {"conformance.spec"},
    "harness.clusters": {"conformance.*"},
    "harness.running": {"conformance.*", "harness.targets", "harness.clusters"},
    "harness.results": {"conformance.*", "harness.running"},
    "harness.plugin": {"conformance.*", "harness.*"},
    "harness.suite": {"harness.plugin", "harness.running"},
    "harness.entry": set(),
    "harness.usercode": {
        "conformance.*",
        "harness.targets",
        "harness.clusters",
        "harness.running",
    },
    # The command is the outermost edge.
    "harness.commandline": {"conformance.*", "harness.*", "reports.*"},
    "reports.store": {"conformance.model", "conformance.store"},
    "reports.analysis": {"conformance.model", "conformance.store", "reports.store"},
    "reports.render": {
        "conformance.commandline",
        "conformance.model",
        "conformance.patterns",
        "conformance.store",
        "reports.analysis",
        "reports.store",
    },
    "reports.store.input_error": set(),
    "suites": {"conformance.*", "harness.*", "reports.*"},
}

NO_JAX = tuple(f"conformance.{room}" for room in ("catalogue", "judging", "mutation", "spec"))
WORKER_HAS = {*sys.stdlib_module_names, "jax", "jaxlib", "numpy", "conformance", "harness"}


@functools.cache
def imports(source: str, *, everywhere: bool) -> set[str]:
    """The modules that a source imports, `everywhere` in it or when it is itself imported.

    `from a import b` is both `a` and `a.b`, since b may be a module. What is under `TYPE_CHECKING`
    is imported by no interpreter.
    """
    found: set[str] = set()
    for node in _statements(ast.parse(source), everywhere):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            module = node.module or ""
            found.update({module, *(f"{module}.{alias.name}" for alias in node.names)})
    return found


def _statements(node: ast.AST, everywhere: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if not everywhere:
                continue
        elif isinstance(child, ast.If) and not everywhere:
            test = ast.unparse(child.test)
            if test in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                for other in child.orelse:
                    yield other
                    yield from _statements(other, everywhere)
                continue
        yield from _statements(child, everywhere)


def modules(package: str) -> list[Path]:
    files = sorted((ROOT / package).rglob("*.py"))
    # A user's programs, which a scan reads and nothing imports, are no part of the project.
    return [one for one in files if SCANNED not in one.parent.parents]


@functools.cache
def file_of(module: str) -> Path | None:
    """The file of a module of this project; None where it is none."""
    path = ROOT.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def loaded_by(module: str) -> frozenset[str]:
    """Return the modules that are loaded when a module of this project is imported."""
    file = file_of(module)
    return frozenset(imports(file.read_text(encoding="utf-8"), everywhere=False) if file else ())


def with_all_it_imports(start: Path) -> dict[str, frozenset[str]]:
    """Each module of the project that importing `start` loads, and what that one imports."""
    seen: dict[str, frozenset[str]] = {}
    todo = [name_of(start)]
    while todo:
        name = todo.pop()
        if file_of(name) is None or name in seen:
            continue
        seen[name] = loaded_by(name)
        packages = [name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)]
        todo += [*packages, *seen[name]]
    return seen


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Dependencies


def room_of(module: str) -> str | None:
    """The room of a module of this project; None where it is none of them."""
    top, _, rest = module.partition(".")
    name = f"{top}.{rest.split('.')[0]}" if top in PACKAGES and rest else top
    return name if name in ROOMS else None


def forbidden(importer: str, imported: str) -> bool:
    """Return whether a module of package `importer` may not import one of `imported`."""
    allowed = ROOMS[importer] | {importer}
    return imported not in allowed and f"{imported.split('.')[0]}.*" not in allowed


@pytest.mark.parametrize("package", [*PACKAGES, "suites"])
def test_dependencies_point_one_way(package: str) -> None:
    found = [
        f"{relative(file)} imports {module}"
        for file in modules(package)
        if (here := room_of(name_of(file))) is not None
        for module in sorted(imports(file.read_text(encoding="utf-8"), everywhere=True))
        if (there := room_of(module)) is not None and forbidden(here, there)
    ]
    assert modules(package)
    assert found == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    files = [file for package in PACKAGES for file in modules(package)]
    graph = {
        name_of(file): {
            module
            for module in imports(file.read_text(encoding="utf-8"), everywhere=False)
            if module != name_of(file) and file_of(module) is not None
        }
        for file in files
    }
    assert len([*TopologicalSorter(graph).static_order()]) >= len(files)


def test_every_folder_is_a_room() -> None:
    known = {name_of(file) for package in PACKAGES for file in modules(package)}
    assert {name for name in known if room_of(name) is None} == {*PACKAGES}


# The time lane repeats programs of another section.
REPEATED = {"timing": ["conformance.sections.idioms"]}
SECTION_PACKAGES = sorted(path.name for path in (ROOT / SECTIONS).iterdir() if path.is_dir())


def declares_clauses(module: str) -> bool:
    file = file_of(module)
    text = file.read_text(encoding="utf-8") if file else ""
    return "\n@clause(" in text or "\n@family(" in text


@pytest.mark.parametrize("package", [p for p in SECTION_PACKAGES if p != "__pycache__"])
def test_modules_of_clauses_do_not_import_each_other(package: str) -> None:
    """Shared code is where no clause is declared: in the package itself, `probing` or `judging`."""
    ours = f"conformance.sections.{package}"
    repeated = tuple(REPEATED.get(package, ()))
    found = [
        f"{relative(file)} imports {module}"
        for file in modules(f"{SECTIONS}/{package}")
        for module in imports(file.read_text(encoding="utf-8"), everywhere=True)
        if module.startswith("conformance.sections.") and file_of(module) is not None
        if not (repeated and module.startswith(repeated))
        if declares_clauses(module) or not f"{module}.".startswith(f"{ours}.")
    ]
    assert found == []
    assert not declares_clauses(ours)


def test_no_self_test_imports_another() -> None:
    """Shared code is in modules of builders, without tests."""
    found = [
        f"{relative(file)} imports {module}"
        for file in modules("suites/selftests")
        for module in sorted(imports(file.read_text(encoding="utf-8"), everywhere=True))
        if module.split(".")[0].startswith("test_")
    ]
    assert found == []


def test_deviations_lie_beside_the_module_of_their_clauses() -> None:
    entries = sorted((ROOT / SECTIONS).glob("*/*.toml"))
    assert entries
    assert [relative(one) for one in entries if not one.with_suffix(".py").is_file()] == []


@pytest.mark.parametrize("package", NO_JAX)
def test_what_judges_imports_no_jax(package: str) -> None:
    found = [
        f"{importer} imports {module}"
        for file in modules(package.replace(".", "/"))
        for importer, imported in with_all_it_imports(file).items()
        for module in sorted(imported)
        if module.split(".")[0] in ("jax", "jaxlib")
    ]
    assert found == []


WORKERS_FILES = [
    *modules("conformance/worker"),
    *(ROOT / "harness" / "usercode" / f"{name}.py" for name in ("entry", "probe")),
    # The programs of causes are no worker's: they say themselves what they require.
    *(file for file in modules(SECTIONS) if file.parent.name != "causes"),
]


@pytest.mark.parametrize("file", WORKERS_FILES, ids=relative)
def test_a_worker_needs_only_jax_and_numpy(file: Path) -> None:
    found = [
        f"{importer} imports {module}"
        for importer, imported in with_all_it_imports(file).items()
        for module in sorted(imported)
        if module.split(".")[0] not in WORKER_HAS
    ]
    assert found == []


def test_what_a_worker_loads_is_followed_from_module_to_module() -> None:
    loaded = with_all_it_imports(ROOT / "conformance" / "worker" / "process.py")
    wanted = {"conformance", "conformance.worker.channel", "conformance.spec.topology"}
    assert wanted <= {*loaded}
    assert "jax" in loaded["conformance.worker.process"]
    assert "harness.clusters.cluster" not in loaded
    assert (
        "packaging.version"
        in with_all_it_imports(ROOT / "conformance" / "judging" / "judge.py")[
            "conformance.judging.deviations"
        ]
    )


SOURCE = """
import os.path
from a import b
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import c
else:
    import d
try:
    import e
except ImportError:
    import f
class K:
    import g
def function():
    import h
"""


def test_imports_are_found_where_they_run() -> None:
    loaded = {"os.path", "a", "a.b", "typing", "typing.TYPE_CHECKING", "d", "e", "f", "g"}
    assert imports(SOURCE, everywhere=False) == loaded
    assert imports(SOURCE, everywhere=True) == loaded | {"c", "h"}


# Docstrings


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_docstring(package: str) -> None:
    """Probes and rows are described by their clauses, so sections are left out."""
    found = [
        f"{relative(file)}:{line} {name}"
        for file in modules(package)
        if not file.is_relative_to(ROOT / SECTIONS)
        for line, name in undocumented(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_undocumented_are_public_functions_classes_and_methods() -> None:
    source = "class A:\n    def b(self): ...\n    def _c(self): ...\ndef d():\n    def e(): ...\n"
    assert undocumented(ast.parse(source)) == [(1, "A"), (2, "A.b"), (4, "d")]
    assert undocumented(ast.parse('def f():\n    "Return nothing."\n')) == []


def undocumented(tree: ast.AST, owner: str = "") -> list[tuple[int, str]]:
    """The lines and names of public definitions without a docstring."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if ast.get_docstring(node) is None:
                found.append((node.lineno, owner + node.name))
            if isinstance(node, ast.ClassDef):
                found += undocumented(node, f"{owner}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            found += undocumented(node, owner)
    return found


# Names of files


def test_no_two_files_of_tests_have_one_name() -> None:
    names = [file.name for file in (ROOT / "suites").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names)), "pytest imports them by it: rename one"


def test_every_self_test_lies_in_the_folder_of_a_room() -> None:
    """What several need is a module of `building`, without tests."""
    flat = {file.name for file in (ROOT / "suites" / "selftests").glob("*.py")}
    assert flat == {"conftest.py"}
    assert list((ROOT / "suites" / "selftests" / "building").rglob("test_*.py")) == []


# What the judge writes for readers; fields beside it say the same for programs.
RENDERED = {"saw", "expected", "reason"}
MATCHES = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind", "index", "count"),
    *("partition", "rpartition", "split", "rsplit"),
}
READS_OLDER_FILES = "reports/store/older.py"


@pytest.mark.parametrize("package", ["conformance/judging", "conformance/commands", "reports"])
def test_no_code_matches_a_text_that_other_code_has_rendered(package: str) -> None:
    found = [
        f"{relative(file)}:{line}"
        for file in sorted((ROOT / package).rglob("*.py"))
        if relative(file) != READS_OLDER_FILES
        for line in matched_texts(file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'one.saw.startswith("it is ")',
        're.search("raised", one.saw)',
        "_WORDS.search(f.expected)",
        '"WRONG" in one.saw',
        'finding.reason.partition(":")',
        'finding.saw == "returned another value"',
        '"raises" in expected',
        "saw.split(':')[0]",
    ],
)
def test_a_match_of_a_rendered_text_is_found(source: str) -> None:
    assert matched_texts(source) == [1]


def matched_texts(source: str) -> list[int]:
    """The lines in which a text for readers is looked into."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if _matches_text(node)]


def _matches_text(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        # That a text is empty says that there is none.
        words = (one.value for one in sides if isinstance(one, ast.Constant))
        return any(isinstance(one, str) and one for one in words) and any(map(_is_rendered, sides))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in MATCHES and node.args:  # without arguments, split() only joins lines
        return _is_rendered(node.func.value)
    return node.func.attr in {"search", "match", "fullmatch"} and any(map(_is_rendered, node.args))


def _is_rendered(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
    return name in RENDERED


# Words that no search finds again.
# `impl.given`, which every probe calls.
DECLARE_GIVEN = {"plain.py", "protocols.py"}
UNSEARCHABLE = {"of", "told", "said", "held", "given"}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_has_a_name_that_cannot_be_searched_for(package: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in sorted((ROOT / package).rglob("*.py"))
        if not file.is_relative_to(ROOT / SECTIONS) and file.name not in DECLARE_GIVEN
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") in UNSEARCHABLE
    ]
    assert found == []


# Code that probes run keeps its names: they are part of the published programs' identity.
KEEPS_ITS_NAMES = (ROOT / SECTIONS, ROOT / "conformance" / "worker")
MEANINGLESS = {*UNSEARCHABLE, "felt", "rubbish"}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_variable_has_a_name_that_says_nothing(package: str) -> None:
    """A field may be called `of`, as in published records."""
    found = [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for file in sorted((ROOT / package).rglob("*.py"))
        if not any(file.is_relative_to(folder) for folder in KEEPS_ITS_NAMES)
        for line, name in bound_names(file.read_text(encoding="utf-8"))
        if name in MEANINGLESS
    ]
    assert found == []


def test_bound_names_are_those_of_parameters_and_variables() -> None:
    source = "class A:\n    of: int\ndef f(told, *, one=1):\n    held = [said for said in told]\n"
    assert bound_names(source) == [(3, "told"), (3, "one"), (4, "held"), (4, "said")]


def bound_names(source: str) -> list[tuple[int, str]]:
    """The lines and names of parameters and variables; not of fields."""
    tree = ast.parse(source)
    fields = {
        line.target
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
    }
    found = [
        (node.lineno, node.col_offset, node.arg if isinstance(node, ast.arg) else node.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields)
    ]
    return [(line, name) for line, _, name in sorted(found)]
