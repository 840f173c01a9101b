"""The command `pmap-conformance`: its table, its help, wrong inputs, terminals, and `run`."""

from __future__ import annotations

import importlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from records import cell, claim, clause, target, write

import conformance.sections
from conformance.commandline.ending import PROGRAM
from harness.commandline import main as commandline
from harness.commandline import run as running
from harness.commandline import terminal
from harness.commandline.command import DONE, FAILED, FOUND, STATUSES, UsageError
from harness.commandline.main import COMMANDS, main
from harness.commandline.terminal import Style
from harness.suite import SECTIONS, test_sections

ROOT = Path(__file__).parents[3]
HANGS_S = 60
NAMES = [one.name for one in COMMANDS]
Capture = pytest.CaptureFixture[str]


# The table


@pytest.mark.parametrize("module", sorted({one.module for one in COMMANDS}))
def test_a_module_has_the_commands_of_its_rows(module: str) -> None:
    actions = importlib.import_module(f"harness.commandline.{module}").ACTIONS
    assert list(actions) == [one.name for one in COMMANDS if one.module == module]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_and_its_exit_status(name: str, capsys: Capture) -> None:
    assert main([*name.split(), "--help"]) == DONE
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith(f"usage: {PROGRAM} {name} ")
    assert STATUSES in said.out


def test_help_lists_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == DONE
    everything = capsys.readouterr().out
    assert main(["results", "-h"]) == DONE
    group = capsys.readouterr().out
    for one in COMMANDS:
        assert f"\n  {one.name} " in everything
        assert (f"\n  {one.name} " in group) == one.name.startswith("results ")


def test_the_version_is_printed(capsys: Capture) -> None:
    assert main(["--version"]) == DONE
    assert re.fullmatch(rf"{PROGRAM} \S.*\n", capsys.readouterr().out)


@pytest.mark.parametrize("words", [["--help"], ["agent", "--help"]])
def test_an_agents_host_needs_no_more_than_jax_and_numpy(words: list[str]) -> None:
    """Nor has `--help` of all commands to import any of them."""
    code = (
        "import sys; from harness.commandline.main import main; "
        f"status = main({words!r}); "
        "print(status, [m for m in sys.modules if m in ('packaging', 'msgspec', 'psutil', "
        "'pytest', 'jinja2', 'reports', 'harness.targets')], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANGS_S
    )
    assert done.stderr == "0 []\n"


# Wrong inputs


def wrong(*words: str, says: str) -> object:
    return pytest.param(list(words), says, id=" ".join(words) or "nothing")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        wrong(says="no command; "),
        wrong("sumary", says="no command is called sumary"),
        wrong("upgrade", says="no command is called upgrade; did you mean report upgrade?"),
        wrong("resluts", says="did you mean results"),
        wrong("results", says="name one of merge, summary"),
        wrong("results", "sumary", says="did you mean summary"),
        wrong("report", "zzz", says="there are site, upgrade"),
        wrong("results", "summary", says="the following arguments are required: RESULTS"),
        wrong("results", "summary", "none.jsonl", says="none.jsonl: "),
        wrong("results", "summary", "r.jsonl", "--format", "yaml", says="argument --format"),
        wrong("results", "summary", "r.jsonl", "--fail-on", "rd", says="--fail-on: 'rd'"),
        wrong("results", "summary", "r.jsonl", "--nope", says="unrecognized arguments: --nope"),
        wrong("results", "merge", "r.jsonl", says="-o/--output"),
        wrong("results", "merge", "none.jsonl", "-o", "out.jsonl", says="none.jsonl: "),
        wrong("results", "compare", "r.jsonl", says="only one run is given"),
        wrong("results", "compare", "r.jsonl", "--from", "0.9.0", "--to", "a@1", says="write IMPL"),
        wrong(
            *("results", "compare", "r.jsonl", "--from", "new_pmap@0.9.0", "--to", "shard_map@1"),
            says=f"{PROGRAM} report upgrade",
        ),
        wrong("results", "strength", "empty.jsonl", says="no cell"),
        wrong("results", "propose", "none.jsonl", says="none.jsonl: "),
        wrong("report", "site", "none.jsonl", "-o", "site", says="none.jsonl: "),
        wrong(
            *("report", "site", "r.jsonl", "-o", "site", "--repository", "javascript:x"),
            says="argument --repository: javascript:x is not an https address",
        ),
        wrong(
            "report", "upgrade", "r.jsonl", "--from", "x", "--to", "y", says="--from x: write it"
        ),
        wrong(
            "report", "agreement", "r.jsonl", "--reference", "x@1", says="--reference x@1: write"
        ),
        wrong("report", "nightly", "r.jsonl", "none", "-o", "issue.md", says="none: "),
        wrong("show", "rank.argmx.no-axis.1d", says="did you mean rank.argm"),
        wrong("list", "clauses", "eror", says="no clause has the id 'eror'"),
        wrong(
            *("list", "clauses", "migrate-pmap.incompatible-devices"),
            says="migrate-pmap.incompatible-devices is a claim: `list claims migrate-pmap.incom",
        ),
        wrong(
            *("list", "clauses", "errors", "migrate-pmap.incompatible-device"),
            says="no claim is called migrate-pmap.incompatible-device; did you mean migrate-pmap.i",
        ),
        wrong("list", "claims", "migrate-pmap.rank", says="did you mean migrate-pmap."),
        wrong("list", "cells", "--tier", "half", says="argument --tier: invalid choice"),
        wrong("new", "errors.x-y", "--claim", "no-such", says="no claim is called no-such"),
        wrong("drift", "migrate-pmap", "none.md", says="none.md: "),
        wrong(
            "causes", "run", "one-device-argument-reshard-ed", says="did you mean one-device-arg"
        ),
        wrong("run", "--section", "eror", says="did you mean errors"),
        wrong("manifest", "--hosts", "0", "--image", "i", says="argument --hosts"),
        wrong("dev", "freeze", "r.jsonl", says="one of the arguments -o/--output --against"),
        wrong("dev", "readme", "r.jsonl", "-o", "none.md", says="none.md: "),
    ],
)
def test_a_wrong_input_is_one_line_and_nothing_is_written(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PMAP_CONFORMANCE_CACHE", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    head = [target(), claim("migrate-pmap.errors"), clause("errors.a")]
    write(tmp_path / "r.jsonl", [*head, cell("errors.a")])
    write(tmp_path / "empty.jsonl", head)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert main(words) == FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"{PROGRAM}: .+\n", said.err)
    assert says in said.err
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_slip_of_this_program_is_no_wrong_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def slip(words: list[str]) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(commandline, "_run", slip)
    with pytest.raises(ZeroDivisionError):
        main(["--help"])


# Terminals


def test_elsewhere_lines_are_as_they_are() -> None:
    long = f"  {'word ' * 100}deviates"
    assert Style().render(long) == long


def test_in_a_terminal_lines_are_wrapped_below_their_indent() -> None:
    lines = Style(40).render("  one: " + "word " * 20).split("\n")
    assert len(lines) > 2
    assert max(map(len, lines)) <= 40
    assert lines[0].startswith("  one: ")
    assert all(one.startswith("      word") for one in lines[1:])
    assert Style(40).render("short   as it is") == "short   as it is"


def test_in_a_terminal_verdicts_have_colours() -> None:
    style = Style(80, colours=True)
    assert style.render("2 crashed, 1 conforms") == (
        "2 \x1b[31mcrashed\x1b[0m, 1 \x1b[32mconforms\x1b[0m"
    )
    assert style.render("undeviates") == "undeviates"
    assert Style(80).render("2 crashed") == "2 crashed"


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_no_color_is_obeyed(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert terminal.style({"TERM": "xterm"} | variables).colours == coloured


def test_a_terminal_gets_lines_of_its_width() -> None:
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "60", "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "harness.commandline", "list", "claims"],
        stdout=follower,
        cwd=ROOT,
        env=environment,
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                block = os.read(leader, 1 << 16)
            except OSError:  # how Linux says that the other end is closed
                break
            if not block:
                break
            shown += block
    os.close(leader)
    assert process.returncode == DONE
    lines = shown.decode().replace("\r\n", "\n").splitlines()
    assert len(lines) > 400
    assert sum(len(one) > 60 for one in lines) < len(lines) / 20  # a word that is longer


# `run`


def words_of(*words: str) -> list[str]:
    parser = next(one for one in COMMANDS if one.name == "run").parser()
    at = words.index("--") if "--" in words else len(words)
    chosen = parser.parse_intermixed_args(words[:at])
    chosen.passed = list(words[at + 1 :])
    return running.pytest_words(chosen)


def test_by_default_a_run_is_the_main_job() -> None:
    words = words_of()
    assert [one for one in words if one.startswith("--target")] == [
        "--target=jax==0.9.0",
        "--target=newest",
    ]
    assert "--extra=flax" in words
    assert "--skip-missing-targets" in words
    assert words[words.index("-n") + 1] == "auto"
    assert words[-1] == str(ROOT / running.SUITE)


def test_a_run_takes_what_is_asked_for() -> None:
    words = words_of(
        *("--clause", "rank.argmax", "--target", "current", "--topology", "1x8"),
        *("--section", "rank", "--tier", "full", "--", "-x", "-n", "0"),
    )
    assert {"--clause=rank.argmax", "--target=current", "--topology=1x8"} <= {*words}
    assert not [one for one in words if one.startswith("--extra") or "skip-missing" in one]
    assert words[-4:] == ["-x", "-n", "0", f"{ROOT / running.SUITE}::test_rank"]


def test_the_time_lane_runs_by_itself() -> None:
    words = words_of("--section", "timing")
    assert "-n" not in words
    assert words[words.index("-m") + 1] == "benchmark"


@pytest.mark.parametrize(
    ("words", "reports"),
    [
        ([], ["strength", "agreement", "site", "summary"]),
        (["--clause", "errors"], []),
        (["--section", "errors"], ["summary"]),
        (["--section", "errors", "--site", "there"], ["strength", "agreement", "site", "summary"]),
    ],
)
def test_a_site_is_made_of_all_cells_or_where_it_is_asked_for(
    words: list[str], reports: list[str]
) -> None:
    chosen = next(one for one in COMMANDS if one.name == "run").parser().parse_args(words)
    assert [one[1] for one in running.reports_on(chosen)] == reports


@pytest.mark.parametrize(
    ("pytests", "others", "status"),
    [
        (pytest.ExitCode.OK, [DONE], DONE),
        (pytest.ExitCode.TESTS_FAILED, [DONE], FOUND),
        (pytest.ExitCode.OK, [FOUND], FOUND),
        (pytest.ExitCode.TESTS_FAILED, [FAILED], FAILED),
        (pytest.ExitCode.USAGE_ERROR, None, FAILED),
        (pytest.ExitCode.INTERNAL_ERROR, None, FAILED),
        (pytest.ExitCode.NO_TESTS_COLLECTED, None, FAILED),
        (pytest.ExitCode.INTERRUPTED, None, 130),
    ],
)
def test_the_exit_status_is_the_worst(
    pytests: pytest.ExitCode,
    others: list[int] | None,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    def run_pytest(words: list[str]) -> pytest.ExitCode:
        Path("r.jsonl").write_text("")
        return pytests

    called: list[list[str]] = []

    def call(words: list[str]) -> int:
        called.append(words)
        return (others or [])[0]

    monkeypatch.setattr(pytest, "main", run_pytest)
    monkeypatch.setattr(running, "_call", call)
    assert main(["run", "--section", "errors", "--results", "r.jsonl"]) == status
    assert bool(called) == (others is not None)


def test_a_run_that_wrote_nothing_reports_on_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --collect-only, for example, the results file is from an earlier run."""
    monkeypatch.chdir(tmp_path)
    Path("r.jsonl").write_text("")
    monkeypatch.setattr(pytest, "main", lambda words: pytest.ExitCode.OK)
    monkeypatch.setattr(running, "_call", None)
    assert main(["run", "--results", "r.jsonl"]) == DONE


# What pytest collects


def test_every_section_has_a_test_and_a_file() -> None:
    (folder,) = conformance.sections.__path__
    there = {one.parent.name for one in Path(folder).glob("*/__init__.py")}
    assert set(SECTIONS) == there
    for one in SECTIONS:
        assert callable(getattr(test_sections, f"test_{one}"))
        assert (ROOT / "suites" / f"test_{one}.py").is_file()


def test_of_an_unknown_section_close_ones_are_offered() -> None:
    with pytest.raises(UsageError, match="did you mean indexing"):
        words_of("--section", "index")
