"""Files that commands and runs write: an earlier file is replaced as a whole, or unchanged."""

from __future__ import annotations

import errno
import json
import lzma
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from processes import until

from conformance.catalogue.claims import load_claims
from conformance.catalogue.loading import Catalogue
from conformance.store import outputs
from conformance.store.errors import ResultsError
from conformance.store.outputs import Output, write_text
from harness.commandline.options import expand
from harness.plugin.session import Session
from harness.results.recorder import Recorder
from harness.running.background import Outcome
from harness.running.cells import CellId
from harness.running.runner import not_run

ROOT = Path(__file__).parents[3]
SOON_S = 60.0  # of a command that imports what it needs, on a loaded machine
CLAIMS = load_claims()
FULL = os.strerror(errno.ENOSPC)  # what the system says of a full disk
CELL = not_run(CellId("errors.none", "new_pmap", "1x8", "t"), "no such target")
SUITE = """
import pytest

@pytest.mark.section("errors")
def test_errors(cell):
    cell.check()
"""


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def recorder(file: Path, *, whole: bool = False, keep: bool = True) -> Recorder:
    return Recorder(file, "run-1", Catalogue({}), CLAIMS, whole=whole, keep=keep)


# Any file


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.txt"
    write_text(file, "first")
    file.chmod(0o640)
    write_text(file, "second")
    assert file.read_text() == "second"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert names(file.parent) == ["a.txt"]


def test_what_is_not_finished_leaves_the_earlier_file(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("first")

    def fail() -> None:
        with outputs.written(file) as stream:
            stream.write(b"second")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert file.read_text() == "first"
    assert names(tmp_path) == ["a.txt"]


def test_what_nobody_closes_is_removed(tmp_path: Path) -> None:
    output = Output(tmp_path / "a.txt")
    output.stream.write(b"half")
    assert len(names(tmp_path)) == 1
    output.stream.close()
    del output
    assert names(tmp_path) == []


def test_of_a_link_the_file_that_it_names_is_replaced(tmp_path: Path) -> None:
    file, link = tmp_path / "a.txt", tmp_path / "link"
    file.write_text("first")
    link.symlink_to(file)
    write_text(link, "second")
    assert link.is_symlink()
    assert file.read_text() == "second"


def test_a_device_is_written_and_not_replaced() -> None:
    write_text(Path(os.devnull), "lost")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder, "Is a directory"),
        (lambda folder: folder / "file" / "x", "Not a directory"),
    ],
)
def test_an_error_names_the_file_that_the_user_named(
    tmp_path: Path, make: object, says: str
) -> None:
    (tmp_path / "file").write_text("")
    file = make(tmp_path)  # type: ignore[operator]
    with pytest.raises(OSError, match=says) as caught:
        write_text(file, "text")
    assert caught.value.filename == str(file)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_names_the_file_and_leaves_nothing() -> None:
    with pytest.raises(OSError, match=f"{FULL}: '/dev/full'"):
        write_text(Path("/dev/full"), "text")


# A results file


def test_a_run_without_a_cell_leaves_the_earlier_results(tmp_path: Path) -> None:
    file = tmp_path / "precious.jsonl"
    file.write_text("precious\n")
    one = recorder(file)
    assert file.read_text() == "precious\n"
    one.close()
    assert names(tmp_path) == ["precious.jsonl"]
    assert file.read_text() == "precious\n"


@pytest.mark.parametrize("keep", [True, False])
def test_the_first_cell_puts_the_file_in_its_place_and_the_earlier_aside(
    tmp_path: Path, keep: bool
) -> None:
    file = tmp_path / "precious.jsonl"
    for earlier in ("precious\n", "second\n"):
        file.write_text(earlier)
        one = recorder(file, keep=keep)
        one.cell(CELL, None)
        one.cell(replace(CELL, reason="another"), None)
        assert [json.loads(line)["kind"] for line in file.open()][-2:] == ["cell", "cell"]
        one.close()
    kept = {"precious.jsonl.bak": "precious\n", "precious.jsonl.bak2": "second\n"} if keep else {}
    assert names(tmp_path) == ["precious.jsonl", *kept]
    assert {name: (tmp_path / name).read_text() for name in kept} == kept
    assert one.kept == (tmp_path / "precious.jsonl.bak2" if keep else None)


def test_what_is_written_whole_has_its_place_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl.xz"
    file.write_bytes(b"earlier")
    one = recorder(file, whole=True, keep=False)
    one.cell(CELL, None)
    assert file.read_bytes() == b"earlier"
    one.put()
    one.close()
    assert json.loads(lzma.decompress(file.read_bytes()).splitlines()[-1])["kind"] == "cell"
    assert names(tmp_path) == ["all.jsonl.xz"]


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    one = recorder(file)
    with pytest.raises(ResultsError, match=r"results\.jsonl: another run"):
        recorder(file)
    one.cell(CELL, None)
    with pytest.raises(ResultsError, match="another run"):
        recorder(file)
    one.close()
    recorder(file).close()
    assert names(tmp_path) == ["results.jsonl"]


def test_what_a_killed_run_left_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from conformance.catalogue.claims import load_claims\n"
        "from conformance.catalogue.loading import Catalogue\n"
        "from harness.results.recorder import Recorder\n"
        "one = Recorder(Path(sys.argv[1]), 'run', Catalogue({}), load_claims())\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, file], cwd=ROOT, timeout=SOON_S)
    assert ended.returncode == -signal.SIGKILL
    one = recorder(file)
    one.cell(CELL, None)
    one.close()
    assert names(tmp_path) == ["results.jsonl"]


def test_a_link_at_the_locks_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".results.jsonl.lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        recorder(tmp_path / "results.jsonl")
    assert victim.read_text() == "precious"


def run_pytest(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "suite").mkdir(exist_ok=True)
    (folder / "suite" / "test_cells.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "harness.plugin"]
    command += ["-p", "no:cacheprovider", "--rootdir", str(folder / "suite"), *words]
    return subprocess.run(
        [*command, str(folder / "suite")], cwd=ROOT, capture_output=True, text=True, timeout=SOON_S
    )


@pytest.mark.parametrize("words", [["--collect-only", "-q"], ["-k", "nothing_is_called_so"]])
def test_whoever_only_looks_loses_no_results(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "precious.jsonl"
    file.write_text("precious\n")
    ended = run_pytest(tmp_path, "--results", str(file), *words)
    assert ended.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), ended
    assert file.read_text() == "precious\n"
    assert names(file.parent) == ["precious.jsonl"]


def test_a_second_run_with_one_results_file_is_refused_at_its_start(tmp_path: Path) -> None:
    file = tmp_path / "out" / "results.jsonl"
    one = recorder(file)
    ended = run_pytest(tmp_path, "--results", str(file), "--collect-only", "-q")
    one.close()
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert re.fullmatch(rf"ERROR: {re.escape(str(file))}: another run .+", ended.stderr.strip())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_disk_refuses_the_results_at_the_start(tmp_path: Path) -> None:
    ended = run_pytest(tmp_path, "--results", "/dev/full", "--collect-only", "-q")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert ended.stderr.strip() == f"ERROR: /dev/full: {FULL}"


def test_a_disk_that_fills_up_ends_the_run_in_a_line(tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, FULL, "results.jsonl")

    session: Any = SimpleNamespace(recorder=SimpleNamespace(cell=full), died={}, count=repr)
    with pytest.raises(pytest.exit.Exception) as ended:
        Session.take(session, "id", Outcome(CELL, None))
    assert ended.value.returncode == 2
    assert str(ended.value.msg).endswith(f": results.jsonl: {FULL}")


def test_of_a_folder_the_results_are_read_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.xz", "b.jsonl.bak", ".b.jsonl.lock", ".b.jsonl", "c.json"):
        (tmp_path / name).touch()
    assert [one.name for one in expand([tmp_path])] == ["a.jsonl.xz", "b.jsonl"]


# How commands end


def run(*words: str, **other: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "harness.commandline", *words],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT} | other,
        text=True,
        timeout=SOON_S,
    )


COMMANDS = [
    ["list", "claims"],
    ["targets", "list"],
    ["results", "summary", "suites/selftests/store/results_of_schema_1.jsonl.xz"],
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("words", COMMANDS)
def test_output_that_cannot_be_written_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ended = run(*words, stdout=full)
    said = "pmap-conformance: standard output: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (2, said)


@pytest.mark.parametrize("words", COMMANDS)
def test_output_that_nobody_reads_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = run(*words, stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize(
    "words",
    [
        ["results", "strength", "none.jsonl"],
        ["results", "merge", "none.jsonl", "-o", "out.jsonl"],
        ["results", "summary", "none.jsonl"],
        ["drift", "migrate-pmap", "none.jsonl"],
    ],
)
def test_a_file_that_is_not_there_is_named_without_a_number(
    words: list[str], tmp_path: Path
) -> None:
    ended = run(*words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "none.jsonl" in line
    assert os.strerror(errno.ENOENT) in line
    assert "Errno" not in line
    assert names(tmp_path) == []


def test_a_command_that_is_terminated_leaves_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "in.jsonl"
    os.mkfifo(pipe)  # which is read for as long as somebody may write
    words = [
        sys.executable,
        "-m",
        "harness.commandline",
        "results",
        "merge",
        str(pipe),
        "-o",
        str(tmp_path / "out"),
    ]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        writer = os.open(pipe, os.O_WRONLY)
        try:
            assert until(lambda: len(names(tmp_path)) > 1, SOON_S)
            process.terminate()
            said = process.communicate(timeout=SOON_S)[1]
        finally:
            process.kill()  # or a failure would wait for it forever
            os.close(writer)
    assert process.returncode == 143
    assert re.fullmatch(r"pmap-conformance: terminated: .+\n", said)
    assert names(tmp_path) == ["in.jsonl"]


DEAF = """
import os, signal, sys, time
from conformance.commandline import ending

def command():
    again = {signal.SIGALRM}  # waits for the line below, however busy the machine is
    signal.pthread_sigmask(signal.SIG_BLOCK, again)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(600)
    except BaseException:
        print("not noticed", flush=True)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, again)
    time.sleep(600)
    return 0

ending.AGAIN_S = 0.1
sys.exit(ending.without_traceback(command))
"""


def test_a_command_that_did_not_notice_its_end_is_told_again() -> None:
    """As if the signal came while a weak reference's callback runs, which cannot raise."""
    words = [sys.executable, "-c", DEAF]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=SOON_S)
    assert (ended.returncode, ended.stdout) == (143, "not noticed\n")
    assert re.fullmatch(r"pmap-conformance: terminated: .+\n", ended.stderr)
