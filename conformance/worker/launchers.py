"""Start a plain program as one job through a cluster launcher: mpirun or srun.

A launcher passes information to its processes by their environment only: the program gets no
arguments.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.worker.jobs import Ended, found, read_output
from conformance.worker.slurm import slurm

TERM_S = 10.0  # from being asked to end to being killed
MOST_CHARACTERS = 400  # of what a launcher that started nothing said

# What decides where JAX believes that it runs: a job of ours is told by its own launcher alone.
_TOLD = (
    *("JAX_", "XLA_", "PYTHON", "OMPI_", "PMIX_", "PRTE_", "SLURM_"),
    *("TPU_", "CLOUD_TPU_", "MEGASCALE_", "KUBERNETES_", "JOB_COMPLETION_INDEX"),
)

# Run by the launcher for each process: output and end go to files, since lines of several meet
# in the launcher's own output, and since it ends as one of them does.
_EACH = (
    'folder="$1"; shift; n="${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}"; '
    '"$@" >"$folder/$n.out" 2>"$folder/$n.err"; echo $? >"$folder/$n.status"'
)
LATE = "late"  # the file that marks the deadline
_SIGNALLED = 128  # what a shell adds to the number of the signal that ended a program


class LauncherError(RuntimeError):
    """The launcher started nothing; the text is its output."""


Command = tuple[list[str], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Launcher:
    """A way to start processes; `programs` are what it needs, `command` is its command line."""

    key: str
    text: str
    programs: tuple[str, ...]
    command: Callable[[Path, int], contextlib.AbstractContextManager[Command]]


@contextlib.contextmanager
def _mpirun(folder: Path, processes: int) -> Iterator[Command]:
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    # As many processes as are asked for, on however few cores, each on all of them.
    where = ["--oversubscribe", "--bind-to", "none"]
    variables = {"OMPI_MCA_orte_tmpdir_base": str(folder)}
    if not (shutil.which("ssh") or shutil.which("rsh")):
        # Open MPI refuses to start without one, although it needs none on a single host.
        variables["OMPI_MCA_plm_rsh_agent"] = "false"
    yield ["mpirun", *root, *where, "-n", str(processes)], variables


@contextlib.contextmanager
def _srun(folder: Path, processes: int) -> Iterator[Command]:
    with slurm() as variables:
        yield ["srun", "--quiet", "-n", str(processes)], variables


OPEN_MPI = Launcher("open-mpi", "Open MPI's mpirun", ("mpirun",), _mpirun)
SLURM = Launcher("slurm", "Slurm's srun", ("munged", "slurmctld", "slurmd", "srun"), _srun)


def plain_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return these variables without those that tell Python or JAX where a program runs."""
    return {name: value for name, value in base.items() if not name.startswith(_TOLD)}


def launched(
    launcher: Launcher,
    text: str,
    processes: int,
    variables: Mapping[str, str],
    *,
    deadline_s: float,
) -> list[Ended]:
    """Run the program `text` on each of the `processes`, by their rank; return how each ended.

    `variables` are added to the plain environment. What still runs after `deadline_s` seconds is
    ended. LauncherError if nothing was started.
    """
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        # Its daemons are other users' business too: they must be able to reach their sockets.
        folder.chmod(0o711)
        program = folder / "program.py"
        program.write_text(text, encoding="utf-8")
        environment = plain_environment(os.environ) | dict(variables)
        with launcher.command(folder, processes) as (command, more):
            each = ["sh", "-c", _EACH, "sh", name, sys.executable, "-u", str(program)]
            said_by_launcher = _run([*command, *each], environment | more, folder, deadline_s)
        ended = [_ended(folder, rank) for rank in range(processes)]
        if not any((folder / f"{rank}.out").exists() for rank in range(processes)):
            raise LauncherError(said_by_launcher[-MOST_CHARACTERS:] or "it said nothing")
        return ended


def _run(command: list[str], environment: dict[str, str], folder: Path, deadline_s: float) -> str:
    """Run the launcher to its end, or end it, so that it ends its processes; return its output."""
    file = folder / "launcher"
    with file.open("wb") as out:
        launcher = subprocess.Popen(
            [found(command[0]) or command[0], *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
        )
        try:
            launcher.wait(deadline_s)
        except subprocess.TimeoutExpired:
            (folder / LATE).touch()
            launcher.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                launcher.wait(TERM_S)
        finally:
            launcher.kill()
            launcher.wait()
    return read_output(file)


def _ended(folder: Path, rank: int) -> Ended:
    status, out, err = (folder / f"{rank}.{name}" for name in ("status", "out", "err"))
    late = folder / LATE
    # A launcher that is ended kills its programs, and their shells may live to say so.
    in_time = status.exists() and not (
        late.exists() and status.stat().st_mtime_ns >= late.stat().st_mtime_ns
    )
    code = int(status.read_text()) if in_time else None
    if code is not None and code > _SIGNALLED:
        code = _SIGNALLED - code
    return Ended(
        code, read_output(out) if out.exists() else "", read_output(err) if err.exists() else ""
    )
