"""A plain program as the processes of one job, started or forked: their ends and their output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from processes import ENDS_S, MARK, end, gone, kill_at_once, new_mark, until

from conformance.spec.topology import Topology
from conformance.worker import job_server
from conformance.worker.folders import sweep
from conformance.worker.jobs import Ended, Job, run_job

ONE = Topology(1, 8)
SHORT_S = 2.0  # enough for a Python that imports nothing, also where it must start first
QUICK_S = 30.0  # well before a job's deadline, on a loaded machine

Run = Callable[..., list[Ended]]


@pytest.fixture(scope="module", autouse=True)
def _servers_of_this_process() -> Iterator[None]:
    """End the servers that `job_server.run` starts here, where no zygote owns their folder."""
    job_server.SERVERS.own_folder()
    yield
    job_server.SERVERS.close()


@pytest.fixture(params=[run_job, job_server.run], ids=["started", "forked"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a program's text either way; its environment is this process's, and what is given."""

    def run_program(
        text: str,
        topology: Topology = ONE,
        deadline_s: float = 60.0,
        alone: bool = False,
        quiet_s: float | None = None,
        **more: str,
    ) -> list[Ended]:
        program = tmp_path / "program.py"
        program.write_text(text, encoding="utf-8")
        processes, devices = topology.processes, topology.devices_per_process
        environment = dict(os.environ) | more
        ended: list[Ended] = request.param(
            Job(str(program), processes, devices, environment, deadline_s, quiet_s, alone)
        )
        return ended

    return run_program


only_started = pytest.mark.parametrize("run", [run_job], indirect=True, ids=["started"])


@pytest.mark.parametrize(
    ("last", "status", "said"),
    [
        ("", 0, "exit 0"),
        ("raise SystemExit(3)", 3, "exit 3"),
        ("os.kill(os.getpid(), signal.SIGABRT)", -6, "SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, "SIGKILL"),
    ],
)
def test_a_process_ends_as_it_ends(run: Run, last: str, status: int, said: str) -> None:
    text = f"import os, signal, sys\nprint('out')\nprint('err', file=sys.stderr)\n{last}\n"
    (one,) = run(text)
    assert one == Ended(status, "out\n", "err\n")
    assert one.end == said


def test_an_exception_is_in_what_was_said(run: Run) -> None:
    (one,) = run("raise ValueError('wrong')")
    assert one.end == "exit 1"
    assert one.err.endswith("ValueError: wrong\n")


def test_what_hangs_is_ended_with_all_that_it_started(run: Run) -> None:
    mark = new_mark()
    text = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('begun')\n"
        "time.sleep(600)\n"
    )
    try:
        (one,) = run(text, deadline_s=SHORT_S * 2, **{MARK: mark})
        assert one == Ended(None, "begun\n", "")
        assert one.end == "hangs"
        assert gone(mark, ENDS_S)
    finally:
        end(mark)


def test_one_that_hangs_does_not_hide_how_another_ended(run: Run) -> None:
    text = "import sys, time\nif sys.argv[3] == '0':\n    raise SystemExit(7)\ntime.sleep(600)\n"
    assert [one.end for one in run(text, Topology(2, 1), SHORT_S)] == ["exit 7", "hangs"]


def test_a_job_that_says_no_more_is_ended_before_its_deadline(run: Run) -> None:
    text = "import time\nprint('begun')\ntime.sleep(600)\n"
    began = time.monotonic()
    ends = [one.end for one in run(text, Topology(2, 1), quiet_s=SHORT_S)]
    assert ends == ["hangs", "hangs"]
    assert time.monotonic() - began < QUICK_S


def test_a_job_is_not_quiet_until_each_process_has_said_something(run: Run) -> None:
    text = (
        "import sys, time\n"
        "time.sleep(2.5 * int(sys.argv[3]))\n"
        "print('begun', flush=True)\n"
        "time.sleep(0.3)\n"
    )
    ends = [one.end for one in run(text, Topology(2, 1), quiet_s=SHORT_S)]
    assert ends == ["exit 0", "exit 0"]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_that_goes_on_speaking_is_not_quiet(run: Run, stream: str) -> None:
    text = (
        "import sys, time\n"
        "print('begun', flush=True)\n"
        f"for n in range(8):\n    print(n, file=sys.{stream}, flush=True)\n    time.sleep(0.3)\n"
    )
    (one,) = run(text, quiet_s=SHORT_S)
    assert one.end == "exit 0"


def test_a_stopped_process_is_not_waited_for(run: Run) -> None:
    text = (
        "import os, signal, sys\n"
        "if sys.argv[3] == '0':\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "raise SystemExit(7)\n"
    )
    began = time.monotonic()
    assert [one.end for one in run(text, Topology(2, 1))] == ["hangs", "exit 7"]
    assert time.monotonic() - began < QUICK_S


# The first listens, all others wait until it is gone, and tell of it.
WATCHING = """
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
if sys.argv[3] == "0":
    one = socket.create_server((host, int(port)), reuse_port=True)
    others = [one.accept() for _ in range(int(sys.argv[2]) - 1)]
    print("watched", flush=True)
    ours, theirs = socket.socketpair()
    ours.recv(1)  # for ever
while True:
    try:
        watched = socket.create_connection((host, int(port)))
        break
    except ConnectionRefusedError:
        pass
print("watching", flush=True)
watched.recv(1)
print("it is gone", flush=True)
"""


@only_started  # what is patched is this process's
def test_processes_that_hang_see_nothing_of_the_end_of_others(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    killpg = os.killpg

    def slowly(group: int, number: int) -> None:
        killpg(group, number)
        time.sleep(SHORT_S / 2)

    monkeypatch.setattr(os, "killpg", slowly)
    ends = run(WATCHING, Topology(3, 1), quiet_s=SHORT_S)
    assert [(one.end, one.out) for one in ends] == [
        ("hangs", "watched\n"),
        ("hangs", "watching\n"),
        ("hangs", "watching\n"),
    ]


ARGUMENTS = "import os, sys\nprint(os.environ['JAX_NUM_CPU_DEVICES'], *sys.argv[1:])\n"


def test_a_process_alone_gets_no_arguments(run: Run) -> None:
    assert [one.out for one in run(ARGUMENTS)] == ["8\n"]


def test_a_job_of_one_is_told_where_and_which_it_is(run: Run) -> None:
    (one,) = run(ARGUMENTS, alone=True)
    assert one.out.split()[2:] == ["1", "0"]


def test_when_each_ended_is_told_by_the_clock_of_all(run: Run) -> None:
    text = "import sys, time\nprint(time.monotonic())\ntime.sleep(600 * int(sys.argv[3]))\n"
    one, other = run(text, Topology(2, 1), SHORT_S)
    assert one.at is not None
    assert float(one.out) <= one.at <= time.monotonic()
    assert other.at is None


def test_several_processes_are_told_where_and_which_they_are(run: Run) -> None:
    outs = [one.out.split() for one in run(ARGUMENTS, Topology(3, 2))]
    assert [(out[0], *out[2:]) for out in outs] == [("2", "3", str(n)) for n in range(3)]
    (address,) = {out[1] for out in outs}
    host, port = address.rsplit(":", 1)
    assert host
    assert int(port) > 0


def test_nothing_but_the_given_variables_is_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_LEFT_OVER", "1")
    program = tmp_path / "program.py"
    program.write_text("import os\nprint(sorted(k for k in os.environ if k[:4] == 'JAX_'))\n")
    (one,) = run_job(Job(str(program), 1, 8, {"JAX_GIVEN": "1"}))
    assert one.out == "['JAX_GIVEN', 'JAX_NUM_CPU_DEVICES']\n"


def test_what_the_collectives_library_prints_is_left_out(run: Run) -> None:
    rest = " is connected to 2 peer ranks. Expected number of connected peer ranks is : 2\n"
    whole, cut = f"[Gloo] Rank 0{rest}", f"[Gloo] Rank [Gloo] Rank 1{rest}"
    texts = [whole, "kept\n", "not at the start: [Gloo]\n", cut, f"0{rest}", "[Gloo] Rank last\n"]
    (one,) = run(f"print({''.join(texts)!r}, end='')\n")
    assert one.out.splitlines() == ["kept", "not at the start: [Gloo]", "last"]


# --- What a forked process must have in common with one that is started ---------------------------

# All that a program sees of where it runs; a job's folder and port differ.
SEES = """
import atexit, os, signal, sys, tempfile, threading, warnings
import jax
print(os.getsid(0) == os.getpid(), sorted(os.environ) == sorted(dict(os.environ)), len(sys.argv))
print(__name__, os.path.basename(__file__), sys.modules["__main__"].__dict__ is globals())
print(os.path.basename(sys.path[0]), sorted(os.listdir()), sys.stdin.read())
print(threading.active_count(), tempfile.gettempdir())
print([signal.getsignal(getattr(signal, f"SIG{n}")) for n in ("INT", "TERM", "USR1", "CHLD")])
print(warnings.filters[:2], sys.stdout.line_buffering, sys.stdout.write_through)
atexit.register(print, "at exit")
class Last:
    def __del__(self): print("globals are cleared")
last = Last()
print(jax.config.jax_num_cpu_devices, jax.config.jax_platforms, jax.config.jax_enable_x64)
"""
GIVEN = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}


def test_a_forked_process_sees_what_a_started_one_sees(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SEES)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | GIVEN
    job = Job(str(program), 2, 3, environment)
    # As in a worker: a shell starts what runs in the background with it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        started, forked = run_job(job), job_server.run(job)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [(one.status, one.out, one.err) for one in forked] == [
        (one.status, one.out, one.err) for one in started
    ]
    assert "3 cpu True\nat exit\nglobals are cleared\n" in forked[0].out


@pytest.fixture
def servers() -> Iterator[job_server.JobServers]:
    """Servers that end with the test."""
    servers = job_server.JobServers()
    yield servers
    servers.close()


def test_each_environment_of_an_import_has_a_server_of_its_own(
    tmp_path: Path, servers: job_server.JobServers
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import jax\nprint(jax.config.jax_enable_x64, len(jax.devices()))\n")
    seen = []
    for devices, x64 in ((1, "0"), (2, "0"), (1, "1"), (1, "0")):
        environment = dict(os.environ) | {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": x64}
        (one,) = servers.run(Job(str(program), 1, devices, environment))
        seen.append(one.out)
    assert seen == ["False 1\n", "False 2\n", "True 1\n", "False 1\n"]
    assert len(psutil.Process().children()) >= 3


def test_a_server_that_is_gone_is_started_again(
    tmp_path: Path, servers: job_server.JobServers
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('here')\n")
    job = Job(str(program), 1, 1, dict(os.environ))
    before = {one.pid for one in psutil.Process().children()}
    servers.run(job)
    (server,) = (one for one in psutil.Process().children() if one.pid not in before)
    server.kill()
    server.wait(QUICK_S)
    (one,) = servers.run(job)
    assert one.out == "here\n"


def test_a_handler_that_is_gone_is_reported(tmp_path: Path, servers: job_server.JobServers) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    with pytest.raises(job_server.JobServerError, match="ended before the job did"):
        servers.run(Job(str(program), 1, 1, dict(os.environ)))


def test_a_job_ends_with_the_worker_that_asked_for_it(
    tmp_path: Path, servers: job_server.JobServers
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path)!r}, f'{{os.getpid()}}.up').touch()\ntime.sleep(600)\n"
    )
    servers.run(Job(os.devnull, 1, 1, dict(os.environ)))  # the server is there
    worker = os.fork()
    if worker == 0:
        with contextlib.suppress(BaseException):
            servers.run(Job(str(program), 2, 1, dict(os.environ)))
        os._exit(0)
    assert until(lambda: len(list(tmp_path.glob("*.up"))) == 2, QUICK_S)
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    jobs = [int(one.stem) for one in tmp_path.glob("*.up")]
    assert until(lambda: not any(map(psutil.pid_exists, jobs)), QUICK_S)


# As a zygote, and a worker of it that asks for a job; all is killed while the job runs.
ASKS = """
import os, sys
from conformance.worker import job_server
from conformance.worker.jobs import Job
job_server.SERVERS.own_folder()
job_server.run(Job(sys.argv[1], 2, 1, dict(os.environ)))
"""


def test_what_a_job_leaves_if_everything_is_killed_is_removed_by_the_next_run(
    tmp_path: Path,
) -> None:
    program, mark = tmp_path / "program.py", new_mark()
    program.write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    with tempfile.TemporaryDirectory() as name:  # a path short enough for a socket
        there = Path(name)
        variables = {"TMPDIR": name, MARK: mark, "PYTHONPATH": os.pathsep.join(sys.path)}
        asks = subprocess.Popen([sys.executable, "-c", ASKS, program], env=os.environ | variables)
        try:
            assert until(lambda: len(_printed(there)) == 2, ENDS_S)
            sweep(there)
            assert len(_printed(there)) == 2, "its owner lives"
        finally:
            kill_at_once(mark)
            asks.wait()
        assert list(there.iterdir())
        sweep(there)
        assert list(there.iterdir()) == []


def _printed(there: Path) -> list[Path]:
    return [one for one in there.rglob("*.out") if one.read_text()]


def test_what_a_job_used_is_counted(tmp_path: Path, servers: job_server.JobServers) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time\nwhile time.process_time() < 0.2: pass\n")
    servers.run(Job(str(program), 2, 1, dict(os.environ)))
    assert servers.cpu_seconds > 0.3  # of two processes, 0.2 each but for the fork's share
