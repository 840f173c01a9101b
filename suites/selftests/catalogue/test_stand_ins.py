"""The catalogue without JAX: who loads it so, and what its stand-ins answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import HANGS_S, outside_pytest

ROOT = Path(__file__).resolve().parents[3]
ID = "rank.argmax.no-axis.1d"

# Whether any module of JAX was executed, told after all else.
TOLD = """
import atexit, sys
atexit.register(lambda: print("\\nexecuted:", sum(
    name.split(".")[0] in ("jax", "jaxlib") for name in sys.modules
)))
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, with the project and `folder` on its path."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def executed(program: str, folder: Path) -> int:
    """Return the number of JAX modules that a program executes."""
    ended = run(TOLD + program, folder)
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout.rpartition("executed:")[2])


def of_command(*arguments: str) -> str:
    package, *rest = arguments if arguments[0] == "pytest" else ("harness.commandline", *arguments)
    return (
        f"import runpy, sys; sys.argv = [{package!r}, *{rest!r}]\n"
        f"try: runpy.run_module({package!r}, run_name='__main__')\n"
        "except SystemExit as ended: assert not ended.code, ended.code"
    )


LOADED = "from conformance.catalogue.loading import load; clauses = load().clauses\n"


def test_a_program_that_imports_jax_is_noticed(tmp_path: Path) -> None:
    assert executed("import jax", tmp_path) > 100


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(LOADED, id="load"),
        pytest.param(of_command("show", ID), id="show"),
        pytest.param(of_command("list", "claims"), id="claims"),
        pytest.param(of_command("causes", "list"), id="causes"),
        pytest.param(of_command("targets", "list"), id="targets"),
        pytest.param(
            of_command("pytest", str(ROOT / "suites"), "--collect-only", "-q", "--clause", ID),
            id="collect",
        ),
    ],
)
def test_no_tool_executes_jax(program: str, tmp_path: Path) -> None:
    assert executed(program, tmp_path) == 0


def test_the_clauses_are_those_that_a_process_with_jax_loads(tmp_path: Path) -> None:
    told = LOADED + (
        "print(*((one.id, one.title, one.fact, one.topologies, one.where,"
        " [(name, e.text) for name, e in one.expect.items()]) for one in clauses.values()),"
        " sep='\\n')"
    )
    without, beside = (run(first + told, tmp_path) for first in ("", "import jax\n"))
    assert without.returncode == 0, without.stderr
    assert len(without.stdout.splitlines()) > 2000
    assert without.stdout == beside.stdout


def test_a_stand_in_is_jax_where_it_is_needed_after_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "written.py").write_text("import jax.numpy as jnp\nimport jax\n", encoding="utf-8")
    program = (
        "import sys\nfrom conformance.catalogue.loading import load\nload(['written'])\n"
        "import written\nassert 'jax' not in sys.modules\n"
        "half = written.jnp.bfloat16\n"
        "import jax\nassert half is jax.numpy.bfloat16 and written.jax.pmap is jax.pmap"
    )
    assert executed(program, tmp_path) > 100


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("SUM = jnp.sum", False),
        ("SPEC = jax.sharding.PartitionSpec('i')", False),
        ("NAME = jax.errors.TracerArrayConversionError.__name__", False),
        ("WHOLE = jnp.ones(3)", True),
        ("WHOLE = jax.nn.relu(3.0)", True),
        ("FIRST = list(jax.devices())", True),
        ("CPU = jax.default_backend() == 'cpu'", True),
        ("ON = 1 if jax.config.jax_enable_x64 else 2", True),
        ("IS = isinstance(3, jax.Array)", True),
        ("NEW = jax.version.version_info > (0, 9)", True),
    ],
)
def test_what_needs_jax_as_a_module_is_loaded_is_refused(
    line: str, refused: bool, tmp_path: Path
) -> None:
    text = f"import jax\nimport jax.numpy as jnp\n\n{line}\n"
    (tmp_path / "written.py").write_text(text, encoding="utf-8")
    program = "from conformance.catalogue.loading import load; load(['written'])"
    ended = run(program, tmp_path)
    assert (ended.returncode != 0) is refused, ended.stderr
    assert ("written.py:4" in ended.stderr) is refused, ended.stderr


def test_a_name_is_not_called_after_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "written.py").write_text("import jax\nP = jax.jit\n", encoding="utf-8")
    program = "from conformance.catalogue.loading import load; load(['written'])\n"
    ended = run(program + "import written; written.P(abs)", tmp_path)
    assert "jax.jit is used" in ended.stderr


def test_what_a_worker_loads_holds_no_stand_in(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom conformance.worker import process\n"
        "process.load(['conformance.sections'])\n"
        "from conformance.catalogue.stand_ins import Name\n"
        "import conformance.sections.rank as rank\nfrom jax.sharding import PartitionSpec\n"
        "assert rank.P is PartitionSpec and rank.EACH_ROW == PartitionSpec('i')\n"
        "assert not any(isinstance(value, Name) for module in list(sys.modules.values())\n"
        "    if module.__name__.startswith('conformance.') for value in vars(module).values())"
    )
    assert executed(program, tmp_path) > 100


NOTING = """
import os
from harness.plugin import hooks

check = hooks._check

def noted(session):
    with open(os.environ["NOTED"], "a") as file:
        file.write(os.environ.get("PYTEST_XDIST_WORKER", "controller") + "\\n")
    check(session)

hooks._check = noted
"""


def test_the_controller_alone_checks_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "noting.py").write_text(NOTING, encoding="utf-8")
    noted = tmp_path / "noted"
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = ["-m", "pytest", "-p", "noting", "-p", "no:cacheprovider", "-n", "1", "-v"]
    ended = subprocess.run(
        [sys.executable, *command, "suites/test_rank.py", "-k", "no_such_cell"],
        cwd=ROOT,
        # Without the variables of the xdist worker that runs this: a controller has none.
        env=outside_pytest() | {"PYTHONPATH": path, "NOTED": str(noted)},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ended.stdout + ended.stderr
    assert "created: 1/1 worker" in ended.stdout
    assert noted.read_text(encoding="utf-8").split() == ["controller"]
