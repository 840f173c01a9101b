"""How the project is laid out: who may import whom, how long a module is, what no file names.

A worker of another interpreter has jax and numpy and nothing else: an import too many there would
break only targets that nobody runs every day.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MOST_LINES = 380

PACKAGES = ("conformance", "harness", "reports")
MAY_IMPORT = {
    "conformance": {"conformance"},
    "harness": {"conformance", "harness"},
    "reports": {"reports"},
    "suites": {"conformance", "harness", "reports", "suites"},
}

WORKER_SIDE = ("worker", "zygote", "channel", "deadlines", "ports", "faults")
WORKER_HAS = {*sys.stdlib_module_names, "jax", "jaxlib", "numpy", "conformance", "harness"}

TEXT = {".py", ".toml", ".md", ".json", ".jsonl", ".j2", ".css", ".ini", ".cfg", ".sh", ".yml", ""}
GENERATED = {"__pycache__", "build", "dist", "node_modules", "venv", "env"}
CI = ".ci"

# Written in parts, so that this file does not name them itself.
MACHINE_PATHS = re.compile(
    r"(?<![\w.$}])/(?:"
    + "|".join(["ro" + "ot", "wo" + "rk", "ho" + r"me/\w+", "Use" + r"rs/\w+", "tmp/d" + "ev"])
    + r")(?![\w-])"
)
INDEX_HOSTS = re.compile(
    "|".join(
        [
            r"pypi\." + "org",
            "python" + "hosted",
            "index" + r"[-_]url\s*[=:]?\s*[\"']?http",
            "arti" + "factory",
            "dev" + "pi",
        ]
    ),
    re.IGNORECASE,
)


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
    return sorted((ROOT / package).rglob("*.py"))


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
    """What a module of this project imports when it is itself imported."""
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


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_dependencies_point_one_way(package: str) -> None:
    forbidden = {*MAY_IMPORT} - MAY_IMPORT[package]
    found = [
        f"{relative(file)} imports {module}"
        for file in modules(package)
        for module in sorted(imports(file.read_text(encoding="utf-8"), everywhere=True))
        if module.split(".")[0] in forbidden
    ]
    assert modules(package)
    assert found == []


WORKERS_FILES = [
    *(ROOT / "harness" / f"{name}.py" for name in WORKER_SIDE),
    *modules("conformance/clauses"),
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
    loaded = with_all_it_imports(ROOT / "harness" / "worker.py")
    assert {"harness", "harness.channel", "conformance.claims", "conformance.topology"} <= {*loaded}
    assert "jax" in loaded["harness.worker"]
    assert "harness.cluster" not in loaded
    assert (
        "packaging.version"
        in with_all_it_imports(ROOT / "conformance" / "judge.py")["conformance.deviations"]
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


# Sizes


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_can_be_read_at_a_sitting(package: str) -> None:
    lengths = {
        relative(file): len(file.read_text(encoding="utf-8").splitlines())
        for file in modules(package)
    }
    assert {file: lines for file, lines in lengths.items() if lines > MOST_LINES} == {}


# What no file names


def files() -> list[Path]:
    """The project's own text files."""
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and path.suffix in TEXT
        and not any(
            part in GENERATED
            or part.endswith(".egg-info")
            or (part.startswith(".") and part not in (CI, ".gitignore"))
            for part in path.relative_to(ROOT).parts
        )
    )


@pytest.mark.parametrize("pattern", [MACHINE_PATHS, INDEX_HOSTS], ids=["paths", "hosts"])
def test_no_file_names_a_machine_or_an_index(pattern: re.Pattern[str]) -> None:
    found = [
        f"{relative(path)}:{number}: {line.strip()[:120]}"
        for path in files()
        for number, line in enumerate(
            path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
        if pattern.search(line)
    ]
    assert found == []


def test_the_files_are_those_of_the_project() -> None:
    found = {relative(path) for path in files()}
    assert {"README.md", "pyproject.toml", "conformance/claims.toml", "harness/worker.py"} <= found
    assert relative(Path(__file__).resolve()) in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cd /ro" + "ot/project", True),
        ("'/wo" + "rk/main'", True),
        ("path=/ho" + "me/somebody/x", True),
        ("/Use" + "rs/somebody", True),
        ("/tmp/d" + "ev/bin/python", True),
        ("harness/worker.py", False),
        ("cache / 'workers'", False),
        ("a/wo" + "rk/b", False),
        ("${HOME}/wo" + "rk", False),
        ("/wo" + "rk-in-progress", False),
    ],
)
def test_a_machines_path_is_told_from_others(text: str, found: bool) -> None:
    assert (MACHINE_PATHS.search(text) is not None) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://pypi." + "org/simple", True),
        ("files.python" + "hosted.org", True),
        ("uv pip install --index" + "-url https://index.invalid/simple", True),
        ("UV_INDEX" + "_URL=http://index.invalid", True),
        ("no package index that answers", False),
    ],
)
def test_an_indexs_host_is_told_from_words(text: str, found: bool) -> None:
    assert (INDEX_HOSTS.search(text) is not None) is found
