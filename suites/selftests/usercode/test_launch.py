"""`launch`: a user's script as a job of several processes, however it ends."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from processes import ENDS_S, HANGS_S, MARK, before_its_end, end, gone, new_mark, outside_pytest
from started_launch import launch, launching

from conformance.commandline.ending import EXIT_INTERRUPTED, PROGRAM
from conformance.spec.topology import Topology
from conformance.worker.agent import new_key
from conformance.worker.channel import KEY_VARIABLE
from harness.clusters.launchers.starting import Way
from harness.commandline.command import DONE, FAILED, FOUND
from harness.commandline.main import main
from harness.targets.platforms import PLATFORMS
from harness.usercode import hosts, job_text
from harness.usercode.ending import Job, Outcome, Process, Raised, user_frame
from harness.usercode.joining import process_variables
from harness.usercode.printing import Printer
from harness.usercode.processes import Program

ROOT = Path(__file__).parents[3]
Capture = pytest.CaptureFixture[str]

NUMBER = "import os, sys, time, signal\nnumber = int(os.environ['JAX_PROCESS_ID'])\n"
JOINS = """
import jax, numpy
from jax.experimental import multihost_utils
jax.distributed.initialize()
here = numpy.array([jax.process_index()])
print(jax.__version__, jax.local_device_count(), multihost_utils.process_allgather(here).ravel())
"""


AS_PYTHON = """
import multiprocessing, os, pickle, sys
class Pair:
    pass
def double(x):
    return 2 * x
if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(Pair())).__class__ is Pair
    assert os.path.isabs(__file__) and sys.path[0] == os.path.dirname(__file__)
    import beside
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [beside.NUMBER]), sys.argv[0])
"""

# How it ends


def test_a_script_runs_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NUMBER = 21")
    status, said = launch(tmp_path, AS_PYTHON, "--topology", "1x1")
    assert status == DONE, said
    assert "[0] [42] script.py\n" in said


def test_a_module_is_run_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "train.py").write_text("import sys\nprint(__name__, sys.argv[1:])")
    words = [sys.executable, "-m", "harness.commandline", "launch", "-m", "package.train", "7"]
    environment = {**outside_pytest(), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*words, "--topology", "1x1"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
    )
    assert (done.returncode, done.stdout) == (DONE, "[0] __main__ ['7']\n"), done.stderr


def test_output_has_the_number_of_its_process_and_arguments_arrive(tmp_path: Path) -> None:
    script = NUMBER + "print('out', sys.argv[1:]); print('err', file=sys.stderr)"
    status, said = launch(tmp_path, script, "3", "--topology", "2x1", "--", "--lr", "1")
    assert status == DONE
    for number in (0, 1):
        assert f"[{number}] out ['3', '--lr', '1']\n" in said
        assert f"[{number}] err\n" in said
    assert re.search(rf"{PROGRAM}: 2 processes .* status 0", said)


RAISES = """
def load():
    raise KeyError("no such shard")
if number == 1:
    load()
time.sleep(3600)
"""


# Both processes run: a busy machine may start one seconds after the other.
MEET = """
open(f"up-{number}", "w").close()
while not os.path.exists(f"up-{1 - number}"):
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("script", "first", "then"),
    [
        (RAISES, r"raised KeyError: 'no such shard' \(script.py:5 in load\)", "still running at"),
        ("number and sys.exit(3)\ntime.sleep(3600)", "exit status 3", "still running at script"),
        ("number and os._exit(4)\ntime.sleep(3600)", "exit status 4", "still running at script"),
        ("number and os.kill(os.getpid(), 9)\ntime.sleep(3600)", "killed by SIGKILL", "still"),
        (
            f"{MEET}number and os._exit(5)\ntime.sleep(1)\nos.abort()",
            "exit status 5",
            "killed by SIGABRT",
        ),
        # What a peer of JAX's does, seen first: it is not what failed first.
        (
            f"{MEET}number or os.abort()\ntime.sleep(0.5)\nos._exit(6)",
            "exit status 6",
            "killed by SIGABRT",
        ),
    ],
    ids=["raises", "exits", "exits-at-once", "killed", "takes-a-peer-along", "peer-is-seen-first"],
)
def test_the_process_that_failed_first_is_named_first(
    script: str, first: str, then: str, tmp_path: Path
) -> None:
    status, said = launch(tmp_path, NUMBER + script, "--topology", "2x1", "--grace", "2")
    assert status == FOUND
    assert re.search(rf"process 1 failed first.*: {first}\n", said), said
    assert re.search(rf"then process 0: {then}", said), said


def test_a_traceback_shows_the_users_frames_alone(tmp_path: Path) -> None:
    status, said = launch(tmp_path, NUMBER + RAISES, "--topology", "2x1", "--grace", "0")
    assert status == FOUND
    assert "[1] KeyError: 'no such shard'\n" in said
    assert "entry.py" not in said


def test_a_hang_shows_where_every_process_is(tmp_path: Path) -> None:
    script = (
        NUMBER + "def stall():\n    time.sleep(3600)\nif number:\n    stall()\ntime.sleep(3600)"
    )
    status, said = launch(tmp_path, script, "--topology", "2x1", "--deadline", "3")
    assert status == FOUND
    assert 'script.py", line 4 in stall' in said
    assert "hung: " in said
    still = re.findall(r"process (\d): still .*script\.py:(\d)", said)
    assert {("0", "7"), ("1", "4")} <= set(still)
    assert "entry.py" not in said


HELD = """
import subprocess
subprocess.Popen(["sleep", "3600"], start_new_session=True)
print("up", flush=True)
while True:
    time.sleep(0.1)
"""
IGNORES = NUMBER + "signal.signal(signal.SIGINT, signal.SIG_IGN)" + HELD
COUNT = 2


def _up(log: Path) -> Callable[[], bool]:
    return lambda: log.read_text().count("] up") == COUNT


@pytest.mark.parametrize(
    "script",
    [NUMBER + HELD, pytest.param(IGNORES, marks=pytest.mark.long)],
    ids=["ends", "ignores-it"],
)
def test_an_interrupt_shows_the_stacks_and_ends_everything(script: str, tmp_path: Path) -> None:
    with launching(tmp_path, script, "--topology", "2x1") as (process, mark, log):
        assert before_its_end(process, _up(log)), log.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_S) == EXIT_INTERRUPTED
        assert gone(mark, ENDS_S), log.read_text()
        assert log.read_text().count("Python stack") == COUNT
        assert "interrupted after" in log.read_text()


def test_processes_end_with_a_command_that_is_killed(tmp_path: Path) -> None:
    script = NUMBER + "print('up', flush=True)\ntime.sleep(3600)"
    with launching(tmp_path, script, "--topology", "2x1") as (process, mark, log):
        assert before_its_end(process, _up(log)), log.read_text()
        process.kill()
        process.wait()
        assert gone(mark, ENDS_S)


def test_a_report_for_programs_is_all_of_standard_output(tmp_path: Path, capfd: Capture) -> None:
    (tmp_path / "script.py").write_text(NUMBER + "print('out')\nsys.exit(number * 2)")
    words = [str(tmp_path / "script.py"), "--topology", "2x1", "--format", "json"]
    assert main(["launch", *words, "--log-dir", str(tmp_path / "logs")]) == FOUND
    said = capfd.readouterr()
    report = json.loads(said.out)
    assert report["outcome"] == "failed"
    assert report["failed_first"] == 1
    assert [one["exit"] for one in report["processes"]] == [0, 2]
    assert [one["output"] for one in report["processes"]] == ["out", "out"]
    assert "[1] out" in said.err
    assert (tmp_path / "logs" / "process-1.log").read_text() == "out\n"


@pytest.mark.long
@pytest.mark.parametrize("target", ["current", "jax==0.7.2", "jax==0.9.0", "newest"])
def test_initialize_finds_its_arguments(target: str, tmp_path: Path) -> None:
    words = ("--topology", "2x2", "--target", target, "--deadline", "300")
    status, said = launch(tmp_path, JOINS, *words)
    assert status == DONE, said
    assert re.search(r"^\[0\] \S+ 2 \[0 1\]$", said, re.MULTILINE), said
    assert re.search(r"^\[1\] \S+ 2 \[0 1\]$", said, re.MULTILINE), said


ENDS = """
import os, signal, sys, time, jax, numpy
jax.distributed.initialize()
total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
ones = numpy.ones(jax.local_device_count())
jax.block_until_ready(total(ones))
if jax.process_index() == int(sys.argv[1]):
    if sys.argv[2] == "raises":
        raise ValueError("its own")
    os.kill(os.getpid(), signal.SIGKILL)
for _ in range(20):
    jax.block_until_ready(total(ones))
    time.sleep(0.05)
"""


@pytest.mark.long
@pytest.mark.parametrize("target", ["jax==0.7.2", "newest"])
@pytest.mark.parametrize("number", ["0", "1"])
@pytest.mark.parametrize(
    ("how", "end"), [("killed", "killed by SIGKILL"), ("raises", "raised ValueError: its own")]
)
def test_the_first_of_a_real_job_is_found_whatever_its_peers_raise(
    target: str, number: str, how: str, end: str, tmp_path: Path
) -> None:
    words = (number, how, "--topology", "3x1", "--target", target, "--grace", "5")
    status, said = launch(tmp_path, ENDS, *words)
    assert status == FOUND
    assert re.search(rf"process {number} failed first.*: {end}", said), said


@pytest.mark.long
def test_processes_that_did_not_join_are_reported(tmp_path: Path) -> None:
    status, said = launch(tmp_path, "import jax\nprint(jax.process_count())", "--topology", "2x1")
    assert status == DONE
    assert "did not join" in said


@pytest.mark.long
def test_a_process_that_stalls_in_python_is_shown_first_and_its_peer_in_jax(tmp_path: Path) -> None:
    script = """
import time, jax, numpy
jax.distributed.initialize()
def stall():
    time.sleep(3600)
total = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")
ones = numpy.ones(jax.local_device_count())
jax.block_until_ready(total(ones))
if jax.process_index():
    stall()
jax.block_until_ready(total(ones))
"""
    status, said = launch(tmp_path, script, "--topology", "2x2", "--deadline", "30")
    assert status == FOUND
    lines = re.findall(r"process (\d): still running at (\S+) in (\S+),", said)
    assert [(number, function) for number, _, function in lines] == [
        ("1", "stall"),
        ("0", "<module>"),
    ]


# Wrong inputs


def wrong(*words: str, says: str) -> object:
    return pytest.param(list(words), says, id=" ".join(words) or "nothing")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        wrong(says="the following arguments are required: SCRIPT"),
        wrong("none.py", says="none.py: No such file"),
        wrong(".", says="is a folder: name a Python file"),
        wrong("script.py", "--topology", "4", says="topology '4' is not PROCESSES"),
        wrong("script.py", "--topology", "900x1", says="at most 64 processes"),
        wrong("script.py", "--target", "foo", says="'foo' is not a target"),
        wrong("script.py", "--target", "/none/python", says="is not a Python that runs"),
        wrong("script.py", "--deadline", "0", says="argument --deadline"),
        wrong("script.py", "--grace", "-1", says="argument --grace"),
        wrong("script.py", "--format", "yaml", says="argument --format"),
        wrong("script.py", "--lr", "3", says="unrecognized arguments: --lr 3"),
        wrong("-m", "no-such.module", says="no module is called no-such"),
        wrong("-m", "no_such_module", says="no module is called no_such_module"),
        wrong("script.py", "--platform", "gpu", says="--platform gpu"),
        wrong("script.py", "--extra", "a b", says="is not a requirement"),
        wrong("script.py", "--log-dir", "script.py", says="script.py: Not a directory"),
    ],
)
def test_a_wrong_input_is_one_line(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("raise SystemExit(9)")
    assert main(["launch", *words]) == FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"{PROGRAM}: .+\n", said.err)
    assert says in said.err


def test_help_has_an_example_and_says_whose_rights_the_script_has(capsys: Capture) -> None:
    assert main(["launch", "--help"]) == DONE
    said = capsys.readouterr().out
    assert f"{PROGRAM} launch train.py --topology" in said
    assert "your rights" in said


# Records


def process(number: int, code: int | None = 0, **fields: object) -> Process:
    made = Process(number, code, 1.0)
    return Process(**{**{n: getattr(made, n) for n in Process.__slots__}, **fields})  # type: ignore[arg-type]


def job(*processes: Process, outcome: Outcome = Outcome.FAILED, target: str = "current") -> Job:
    return Job(outcome, "2x1", target, 2.0, processes)


GLOO = Raised("XlaRuntimeError", "INTERNAL: Gloo all-reduce failed: Connection closed by peer", "")
OWN = Raised("ValueError", "bad batch", "train.py:3 in load")


# On hosts


def test_an_agent_whose_launcher_ended_looks_for_no_controller(tmp_path: Path) -> None:
    mark = new_mark()
    agent = [sys.executable, "-m", "harness.usercode.host_agent", "--rank", "0", "--controller"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANGS_S)
        command = shlex.join([*agent, f"127.0.0.1:{silent.getsockname()[1]}"])
        environment = outside_pytest() | {MARK: mark, KEY_VARIABLE: new_key()}
        launcher = subprocess.Popen(["sh", "-c", f"{command} & wait"], env=environment)
        try:
            dialled, _ = silent.accept()
            launcher.kill()
            launcher.wait()
            assert gone(mark, ENDS_S)
        finally:
            end(mark)
        dialled.close()


@pytest.mark.parametrize(
    ("ranks", "says"), [((0, 0), "several hosts have one rank"), ((1, 0), "")], ids=str
)
def test_two_hosts_of_one_rank_are_refused(
    ranks: tuple[int, int], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that is started twice would have both hosts run the same processes."""
    hellos = [{"rank": one, "host": f"h{at}", "coordinator": ""} for at, one in enumerate(ranks)]
    started = dict.fromkeys(("start", "close", "ended"), lambda _: None)
    monkeypatch.setattr(hosts, "WayStarter", lambda *_: type("Started", (), started)())
    with ExitStack() as stack:
        ends = [end for _ in hellos for end in map(stack.enter_context, Pipe())]
        channels = [
            SimpleNamespace(connection=one, send=lambda order: None, close=one.close)
            for one in ends[::2]
        ]
        arriving = iter(zip(channels, hellos, strict=True))
        monkeypatch.setattr(hosts.Hub, "wait_for", lambda *_: next(arriving))
        monkeypatch.setattr(hosts, "OBEYS_S", dict.fromkeys(hosts.OBEYS_S, 0.0))
        way = Way("own", "", "sh", "", lambda plan: [])
        some = hosts.Hosts(2, way, (), "127.0.0.1:0", "127.0.0.1", Path(sys.executable), 1.0)
        program = Program(Path(sys.executable), "script.py")
        printer = Printer(2, io.StringIO(), io.StringIO(), None)
        refused: Any = pytest.raises(hosts.HostsDown, match=says) if says else nullcontext()
        with (
            refused,
            hosts.host_processes(
                some, program, Topology(2, 1), PLATFORMS["cpu"], printer, tmp_path, lambda _: None
            ) as found,
        ):
            assert [one.host for one in found.records()] == ["h1", "h0"]


@pytest.mark.parametrize(
    ("processes", "first"),
    [
        ([process(0), process(1)], None),
        ([process(0, 3, seconds=2.0), process(1, 3, seconds=1.0)], 1),
        ([process(0, -6, seconds=1.0), process(1, 7, seconds=1.1)], 1),
        ([process(0, 1, script=1, raised=GLOO), process(1, -9, seconds=1.2)], 1),
        ([process(0, None, script=1, raised=OWN, seconds=1.2), process(1, -6)], 0),
        ([process(0, -6, seconds=1.3), process(1, -6, seconds=1.2)], 1),
    ],
    ids=["none", "earliest", "aborted-after", "its-peer-raised", "raised-and-waits", "all-aborted"],
)
def test_which_process_failed_first(processes: list[Process], first: int | None) -> None:
    found = job(*processes).first
    assert (None if found is None else found.number) == first


STACK = """Thread 0x01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 5 in wait
Current thread 0x02 (most recent call first):
  File "/x/site-packages/jax/_src/array.py", line 647 in _value
  File "train.py", line 8 in step
  File "train.py", line 20 in <module>"""


@pytest.mark.parametrize(
    ("stack", "frame"),
    [
        (STACK, "train.py:8 in step"),
        ("\n".join(STACK.splitlines()[:4]), "/x/site-packages/jax/_src/array.py:647 in _value"),
        ("", ""),
    ],
)
def test_a_stack_is_known_by_the_users_innermost_frame(stack: str, frame: str) -> None:
    assert user_frame(stack) == frame


def test_of_two_that_wait_elsewhere_the_one_outside_of_jax_is_odd() -> None:
    slept = 'Current thread 0x02 (most recent call first):\n  File "train.py", line 3 in load'
    found = job(process(0, None, stack=STACK), process(1, None, stack=slept)).odd
    assert found is not None
    assert found.number == 1


def test_another_jax_than_the_targets_is_reported() -> None:
    done = job(process(0, jax="0.8.0"), outcome=Outcome.SUCCEEDED, target="jax==0.9.0")
    assert [one for one in job_text.remarks(done) if "0.8.0, not jax==0.9.0" in one]
    same = job(process(0, jax="0.9.0"), outcome=Outcome.SUCCEEDED, target="jax==0.9.0")
    assert list(job_text.remarks(same)) == []


def test_no_text_ends_a_block_of_markdown() -> None:
    hostile = job(process(0, 1, stack="```\n# not a heading\n| x"), process(1))
    text = job_text.markdown(hostile, lambda _: "```\n# neither")
    assert not re.search(r"^(# (not|neither)|```)", text, re.MULTILINE)


# Printing


def test_a_line_is_printed_when_it_is_whole_and_noise_is_not() -> None:
    out = io.StringIO()
    printer = Printer(12, out, out, None, {})
    noise = b"[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of ranks is : 1\n"
    printer.out[3].take(b"on")
    printer.out[3].take(b"e\ntwo")
    printer.err[11].take(noise + b"thr\xffee\n")
    assert out.getvalue() == "[ 3] one\n[11] thr�ee\n"
    printer.close()
    assert out.getvalue().endswith("[ 3] two\n")
    assert printer.tail(3) == "one\ntwo"


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_prefixes_have_colours_on_a_terminal(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    Printer(1, out, out, None, {"TERM": "xterm"} | variables).out[0].take(b"one\n")
    assert ("\x1b[" in out.getvalue()) == coloured


# Variables


def test_a_process_is_given_its_place_and_devices() -> None:
    base = {"XLA_FLAGS": "--a=1 --xla_force_host_platform_device_count=9", "PYTHONHOME": "x"}
    made = process_variables(base, Topology(4, 2), 3, "127.0.0.1:7", PLATFORMS["cpu"], {})
    assert made["XLA_FLAGS"] == "--a=1"
    assert "PYTHONHOME" not in made
    assert made["JAX_NUM_CPU_DEVICES"] == "2"
    assert made["JAX_COORDINATOR_ADDRESS"] == "127.0.0.1:7"
    assert made["OMPI_COMM_WORLD_RANK"] == made["JAX_PROCESS_ID"] == "3"
    assert os.environ.get("OMPI_COMM_WORLD_RANK") != "3"


def test_a_gpu_process_uses_the_devices_that_it_sees() -> None:
    own = {"CUDA_VISIBLE_DEVICES": "4,5"}
    made = process_variables({}, Topology(4, 2), 2, "h:1", PLATFORMS["cuda12"], own)
    assert made["JAX_LOCAL_DEVICE_IDS"] == "0,1"
    assert made["CUDA_VISIBLE_DEVICES"] == "4,5"
    assert "JAX_NUM_CPU_DEVICES" not in made
