"""Launchers of clusters: what they start, how it ended, and that nothing of theirs goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from processes import ENDS_S, MARK, end, gone, new_mark

from conformance.worker import launchers
from conformance.worker.jobs import found
from conformance.worker.launchers import OPEN_MPI, SLURM, Launcher, LauncherError, launched
from conformance.worker.ports import ReservedPort

DEADLINE_S = 60.0
SHORT_S = 5.0

RANK = "import os\nrank = os.environ.get('OMPI_COMM_WORLD_RANK') or os.environ['SLURM_PROCID']\n"


@pytest.fixture(
    params=[pytest.param(one, marks=pytest.mark.long) for one in (OPEN_MPI, SLURM)],
    ids=lambda one: one.key,
)
def launcher(request: pytest.FixtureRequest) -> Launcher:
    one: Launcher = request.param
    absent = [name for name in one.programs if not found(name)]
    if absent:
        pytest.skip(f"{', '.join(absent)} is not on this machine's PATH")
    return one


def test_each_process_ends_as_it_ends(launcher: Launcher) -> None:
    text = f"{RANK}print(rank, os.environ['GIVEN'])\nif rank == '1':\n    raise SystemExit(3)\n"
    ended = launched(launcher, text, 2, {"GIVEN": "given"}, deadline_s=DEADLINE_S)
    assert [(one.end, one.out) for one in ended] == [
        ("exit 0", "0 given\n"),
        ("exit 3", "1 given\n"),
    ]


def test_what_hangs_is_ended_with_all_that_was_started(launcher: Launcher) -> None:
    mark = new_mark()
    text = f"{RANK}import time\nprint(rank)\ntime.sleep(600 * int(rank))\n"
    try:
        ended = launched(launcher, text, 2, {MARK: mark}, deadline_s=SHORT_S)
        assert [(one.end, one.out) for one in ended] == [("exit 0", "0\n"), ("hangs", "1\n")]
        assert gone(mark, ENDS_S)
    finally:
        end(mark)


@pytest.mark.long
def test_daemons_are_gone_afterwards() -> None:
    if not all(map(found, SLURM.programs)):
        pytest.skip("no Slurm on this machine's PATH")
    launched(SLURM, RANK, 1, {}, deadline_s=DEADLINE_S)
    mine = subprocess.run(["ps", "-o", "comm=", "--ppid", f"{os.getpid()}"], stdout=subprocess.PIPE)
    assert not {"munged", "slurmctld", "slurmd"} & set(mine.stdout.decode().split())


def test_a_launcher_that_starts_nothing_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "launch"
    script.write_text("#!/bin/sh\necho no slots\n")
    script.chmod(0o755)

    @launchers.contextlib.contextmanager
    def command(folder: Path, processes: int):  # type: ignore[no-untyped-def]
        yield [str(script)], {}

    with pytest.raises(LauncherError, match="no slots"):
        launched(Launcher("own", "", (), command), "", 2, {}, deadline_s=DEADLINE_S)


def test_a_job_is_told_where_it_is_by_its_launcher_alone() -> None:
    base = {"PATH": "/bin", "JAX_X": "1", "SLURM_PROCID": "3", "OMPI_X": "1", "TPU_WORKER_ID": "1"}
    assert launchers.plain_environment(base) == {"PATH": "/bin"}


def test_a_port_that_is_asked_for_is_reserved() -> None:
    free = ReservedPort()
    free.close()
    one = ReservedPort(port=free.port)
    assert one.address == f"127.0.0.1:{free.port}"
    one.close()
