"""`compare` and `bisect`: a user's function between implementations and JAX versions."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import records
from packaging.requirements import Requirement
from records import Record
from site_pages import text_in, tree

from conformance.commandline.ending import PROGRAM
from conformance.spec import names
from conformance.spec.observation import OUTSIDE
from harness.commandline import bisect as bisecting_command
from harness.commandline import compare as comparing
from harness.commandline.command import DONE, FAILED, FOUND
from harness.commandline.compare import load_issues
from harness.commandline.main import main
from harness.targets import environments
from harness.usercode import steps
from harness.usercode.arguments import (
    ArgumentsError,
    check_mapped,
    parse_arguments,
    parse_axes,
)
from harness.usercode.bisecting import BisectError, Unobservable, bisect
from harness.usercode.function import FunctionError, import_function, parse_function
from reports.analysis.comparing.entries import load_entries
from reports.analysis.usercode import explained, runs
from reports.analysis.usercode.compared import Compared, compare
from reports.analysis.usercode.costs import MEMORY, TIME
from reports.analysis.usercode.explained import explain
from reports.analysis.usercode.runs import failure_of
from reports.analysis.usercode.values import describe_values
from reports.render import compared_page
from reports.render.text import compared as compared_text
from reports.render.text import difference_words

Capture = pytest.CaptureFixture[str]

MODEL = """
import jax
import jax.numpy as jnp
import numpy as np

def double(x):
    return x * 2

def total(x, w):
    return jax.lax.psum(x @ w, "batch")

def wrong_reshape(x):
    return x.reshape(3)

def make(n):
    return (np.arange(n * 4.0, dtype=np.float32).reshape(n, 4),)

step = jax.pmap(lambda x: x + 1)

def old():
    return np.asarray(step(np.arange(jax.local_device_count() * 1.0)))

def new():
    return old() + np.array([0.0, 0.5], np.float32)

def stalls():
    import time
    time.sleep(3600)

def dies():
    import os
    os.abort()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a user's module, which is the current one."""
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Wrong inputs


def wrong(*words: str, says: str) -> object:
    return pytest.param(list(words), says, id=" ".join(words) or "nothing")


ARGS = ("--args", "f32[n,2]")
WRONG_OF_BOTH = [
    wrong("model.py", *ARGS, says="write module:function or file.py:function"),
    wrong("none.py:f", *ARGS, says="none.py: no such file"),
    wrong("a-b:f", *ARGS, says="a-b is not the name of a module"),
    wrong("model.py:double", says="no arguments: give --args"),
    wrong("model.py:double", "--args", "", says="--args is empty"),
    wrong("model.py:double", "--args", "f33[2]", says="f33 is not a dtype"),
    wrong("model.py:double", "--args", "f32(2)", says="write dtype and shape"),
    wrong("model.py:double", "--args", "f32[n,-1]", says="sizes are whole numbers"),
    wrong("model.py:double", "--args", "f32[6,2]", says="over axis 0, where it has 6 rows"),
    wrong("model.py:double", *ARGS, "--in-axes", "x", says="--in-axes x: write axes"),
    wrong("model.py:double", *ARGS, "--in-axes", "0,0", says="--in-axes has 2 axes for 1 arg"),
    wrong("model.py:double", *ARGS, "--in-axes", "2", says="axis 2, where it has no such axis"),
    wrong("model.py:double", *ARGS, "--out-axes", "0,1", says="--out-axes 0,1: give one axis"),
    wrong("model.py:double", *ARGS, "--donate", "x", says="--donate x: write positions"),
    wrong("model.py:double", *ARGS, "--donate", "1", says="--donate 1: there are 1 arguments"),
    wrong("model.py:double", *ARGS, "--inputs", "model:make", says="--args and --inputs"),
    wrong("model.py:old", "--mapped", "--in-axes", "0", says="--in-axes: --mapped runs a function"),
    wrong("model.py:double", *ARGS, "--topology", "4", says="topology '4'"),
    wrong("model.py:double", *ARGS, "--implementation", "pmap", says="--implementation pmap"),
    wrong("model.py:double", *ARGS, "--seed", "-1", says="argument --seed"),
    wrong("model.py:double", *ARGS, "--format", "yaml", says="argument --format"),
]


def _refused(words: list[str], says: str, capsys: Capture) -> None:
    assert main(words) == FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"{PROGRAM}: .+\n", said.err)
    assert says in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *WRONG_OF_BOTH,
        wrong(says="the following arguments are required: FUNCTION"),
        wrong("model.py:double", *ARGS, "--target", "foo", says="'foo' is not a target"),
        wrong("model.py:double", *ARGS, "--baseline", "x", says="--baseline x: write IMPL"),
        wrong("model.py:double", *ARGS, "--baseline", "new@0.9.0", says="this side is not run"),
        wrong(
            "model.py:double",
            *(*ARGS, "--target", "jax==0.9.0", "--baseline", "new_pmap@0.8.0"),
            says="name one of legacy_pmap@0.9.0, new_pmap@0.9.0, shard_map@0.9.0",
        ),
        wrong("model.py:double", *ARGS, "--against", "model.py:new", says="add --mapped"),
        wrong(
            "model.py:old", "--mapped", "--against-inputs", "a:b", says="name that with --against"
        ),
        wrong("model.py:old", "--mapped", "--implementation", "shard_map", says="write own"),
        wrong("model.py:double", *ARGS, "--fail-on", "some", says="argument --fail-on"),
    ],
)
def test_compare_refuses_a_wrong_input_in_a_line(
    words: list[str], says: str, here: Path, capsys: Capture
) -> None:
    _refused(["compare", *words], says, capsys)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *WRONG_OF_BOTH,
        wrong(says="name a function"),
        wrong("model.py:double", "--clause", "rank.argmax.no-axis.1d", says="name a function"),
        wrong("--clause", "rank.argmx.no-axis.1d", says="did you mean rank.argm"),
        wrong("--clause", "rank.argmax.no-axis.1d", *ARGS, says="--args: a clause has its own"),
        wrong("model.py:double", *ARGS, "--field", "value", says="did you mean values"),
    ],
)
def test_bisect_refuses_a_wrong_input_in_a_line(
    words: list[str], says: str, here: Path, capsys: Capture
) -> None:
    _refused(["bisect", *words], says, capsys)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        wrong(
            "model.py:double", *ARGS, "--from", "newest", "--to", "0.9.0", says="is not a release"
        ),
        wrong(
            "model.py:double", *ARGS, "--from", "0.1", says="jax==0.1.0 is older than jax==0.7.0"
        ),
        wrong("model.py:double", *ARGS, "--from", "0.9.1", "--to", "0.9.0", says="is not older"),
        wrong("model.py:double", *ARGS, "--from", "x", "--to", "0.9.0", says="not a target"),
    ],
)
def test_bisect_refuses_versions_that_are_no_range(
    words: list[str], says: str, here: Path, capsys: Capture
) -> None:
    assert main(["bisect", *words]) == FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err.splitlines()[-1]


@pytest.mark.parametrize("command", ["compare", "bisect"])
def test_help_has_an_example_and_says_whose_rights_the_code_has(
    command: str, capsys: Capture
) -> None:
    assert main([command, "--help"]) == DONE
    said = capsys.readouterr().out
    assert f"  {PROGRAM} {command} model.py:body --args" in said
    assert "your rights" in said


# Real runs


def compared(capsys: Capture, *words: str) -> tuple[int, Record, str]:
    """Exit status, the report of the only topology, and the progress of a comparison."""
    status = main(["compare", *words, "--timed-calls", "0", "--format", "json"])
    said = capsys.readouterr()
    return status, json.loads(said.out)[0] if said.out else {}, said.err


BOTH = ("--implementation", "new_pmap", "--implementation", "shard_map")


def test_implementations_that_agree(here: Path, capsys: Capture) -> None:
    words = ("model:double", *ARGS, "--target", "current", "--topology", "1x2", *BOTH)
    status, report, _ = compared(capsys, *words)
    assert status == DONE
    [one] = report["compared"]
    assert one["differences"] == []
    assert one["same_fields"] > 50
    seen = [step["name"] for step in report["runs"][0]["observations"][0]["steps"]]
    assert seen == [steps.PREPARE, *steps.CALLS, *steps.LATER]
    assert [run["observations"][0]["steps"][1]["outcome"] for run in report["runs"]] == ["returned"]


@pytest.mark.long
def test_a_documented_difference_is_explained_and_in_several_processes(
    here: Path, capsys: Capture
) -> None:
    words = ("model.py:total", "--args", "f32[n,2,3] f32[3,4]", "--in-axes", "0,None")
    where = ("--axis-name", "batch", "--target", "current", "--topology", "2x1", *BOTH)
    status, report, _ = compared(capsys, *words, *where)
    assert status == FOUND
    [one] = report["compared"]
    shapes = [d for d in one["differences"] if d["field"] == "shape"]
    assert {d["claim"] for d in shapes} == {"migrate-pmap.shard-map-global-view"}
    assert {d["new"] for d in shapes} == {"all processes' rows"}
    assert main(["compare", *words, *where, "--timed-calls", "0", "--fail-on", "none"]) == DONE


@pytest.mark.long
def test_legacy_and_new_pmap_differ_by_known_issues(here: Path, capsys: Capture) -> None:
    words = ("model.py:wrong_reshape", *ARGS, "--target", "jax==0.9.0", "--topology", "1x2")
    status, report, _ = compared(capsys, *words)
    assert status == FOUND
    new, shard_map = report["compared"]
    [error] = [d for d in new["differences"] if d["field"] == "error type"][:1]
    assert (error["old"], error["new"]) == ("TypeError", "StoreException")
    assert report["known_issues"][error["cause"]]["links"]
    assert shard_map["differences"] == []


@pytest.mark.long
def test_two_functions_that_map_by_themselves(here: Path, capsys: Capture) -> None:
    words = ("model.py:old", "--mapped", "--against", "model.py:new", "--target", "current")
    status, report, _ = compared(capsys, *words, "--topology", "1x2")
    assert status == FOUND
    assert report["baseline"]["implementation"] == "new_pmap"
    [one] = [one for one in report["compared"] if one["run"]["label"] == "model.py:new"]
    values = [d for d in one["differences"] if d["field"] == "values"]
    for part in ("1 value", "by 0.5", "2 → 2.5", "result[1]"):
        assert part in values[0]["seen"]
    first_call = report["baseline"]["observations"][0]["steps"][1]
    assert first_call["extra"]["maps"] == ["new pmap"]


@pytest.mark.long
def test_an_implementation_that_did_not_run_is_not_compared(here: Path, capsys: Capture) -> None:
    selects = 'import jax\njax.config.update("jax_pmap_shmap_merge", False)\n'
    (here / "selecting.py").write_text(selects + MODEL)
    words = ("selecting.py:old", "--mapped", "--target", "jax==0.9.0", "--topology", "1x2")
    status, report, _ = compared(capsys, *words)
    assert status == FAILED
    [one] = report["compared"]
    for part in ("legacy pmap", "new_pmap"):
        assert part in one["missing"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "kind", "where"),
    [("stalls", "hung", "in stalls"), ("dies", "crashed", "SIGABRT")],
)
def test_a_run_that_does_not_come_back_is_a_finding(
    function: str, kind: str, where: str, here: Path, capsys: Capture
) -> None:
    words = ("model.py:old", "--mapped", "--against", f"model.py:{function}", "--deadline", "10")
    status, report, _ = compared(capsys, *words, "--target", "current", "--topology", "1x2")
    assert status == FOUND
    [one] = [one for one in report["compared"] if one["run"]["label"].endswith(function)]
    [fault] = one["differences"]
    assert fault["field"] == "fault"
    assert fault["new"].startswith(kind)
    assert where in fault["seen"]


def test_a_function_that_is_not_there_is_no_difference(here: Path, capsys: Capture) -> None:
    words = ("model.py:no_such", *ARGS, "--target", "current", "--topology", "1x2", *BOTH)
    status, _, progress = compared(capsys, *words)
    assert status == FAILED
    assert "could not be called" in progress.splitlines()[-1]


@pytest.mark.long
def test_a_bisection_whose_answer_is_known(here: Path, capsys: Capture) -> None:
    """`failed-call-breaks-the-wrapper` ends in JAX 0.9.1."""
    words = ("model.py:wrong_reshape", *ARGS, "--topology", "1x2", "--field", "error type")
    status = main(["bisect", *words, "--from", "0.8.3", "--to", "0.9.2", "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert status == FOUND
    assert report["changed_in"] == "0.9.1"
    assert len(report["run"]) <= 2 + math.ceil(math.log2(report["releases"] - 1))
    [difference] = report["compared"]["differences"][:1]
    assert (difference["old"], difference["new"]) == ("StoreException", "TypeError")


@pytest.mark.long
def test_a_clause_is_bisected(here: Path, capsys: Capture) -> None:
    words = ("--clause", "rank.argmax.no-axis.1d", "--implementation", "legacy_pmap")
    assert main(["bisect", *words, "--from", "0.9.2", "--to", "0.10.0"]) == FOUND
    said = capsys.readouterr().out
    assert re.search(r"changed in jax 0\.10\.0: .*0\.9\.2 ", said)
    assert "not compared: " in said


# Halving


RELEASES = [f"0.{n}.0" for n in range(17)]


def halved(change: int, broken: tuple[int, ...] = ()) -> Any:
    def observe(name: str) -> bool:
        at = RELEASES.index(name)
        if at in broken:
            raise Unobservable("no wheel")
        return at >= change

    return bisect(RELEASES, observe, lambda a, b: a == b)


@pytest.mark.parametrize("change", range(1, 17))
def test_halving_finds_the_release_and_runs_few(change: int) -> None:
    found = halved(change)
    assert (found.last_same, found.changed) == (RELEASES[change - 1], RELEASES[change])
    assert len(found.observed) <= 2 + 4


def test_what_cannot_be_run_is_left_out() -> None:
    found = halved(8, (7, 8))
    assert (found.last_same, found.changed) == ("0.6.0", "0.9.0")
    assert [*found.skipped] == ["0.8.0", "0.7.0"] or {*found.skipped} == {"0.7.0", "0.8.0"}


def test_no_change_runs_the_ends_alone() -> None:
    found = halved(99)
    assert found.changed is None
    assert [*found.observed] == ["0.0.0", "0.16.0"]


def test_an_end_that_cannot_be_run_is_refused() -> None:
    with pytest.raises(BisectError, match=r"0\.16\.0 .*: no wheel"):
        halved(3, (16,))
    with pytest.raises(BisectError, match="fewer than two"):
        bisect(["0.9.0"], lambda _: 0, lambda a, b: a == b)


# Names, arguments


def test_arguments_are_read() -> None:
    first, second = parse_arguments("f32[n,128] bf16[]")
    assert (first.dtype, first.sizes(4)) == ("float32", (4, 128))
    assert (second.dtype, second.sizes(4)) == ("bfloat16", ())
    assert parse_axes("0, None", "--in-axes") == (0, None)
    check_mapped([first, second], (0, None), 4, "2x2")
    with pytest.raises(ArgumentsError, match="argument 1 "):
        check_mapped([first, second], (0,), 4, "2x2")


def test_a_function_is_found_in_a_file_and_in_a_module(here: Path) -> None:
    (here / "inner.py").write_text("class K:\n    @staticmethod\n    def f():\n        return 3\n")
    (here / "outer_module.py").write_text("from inner import K\nnumber = 4\n")
    assert import_function(parse_function("inner.py:K.f", here).record())() == 3
    assert import_function(parse_function("outer_module:K.f", here).record())() == 3
    with pytest.raises(TypeError, match=r"number .* int"):
        import_function(parse_function("outer_module:number", here).record())
    with pytest.raises(FunctionError, match="write module:function"):
        parse_function("outer_module", here)


# Comparing


def test_a_worker_and_a_report_call_the_steps_alike() -> None:
    assert steps.CALLS[0] == runs.FIRST_CALL
    assert steps.CALLS[2] == runs.THIRD_CALL
    assert (runs.TIMED, runs.PREPARE, runs.SECONDS) == (steps.TIMED, steps.PREPARE, names.SECONDS)
    assert set(explained.KNOWN_AS) <= set(steps.LATER)
    assert explained.INDEXING in load_issues()


@pytest.mark.parametrize(("fail_on", "status"), [("any", 1), ("unexplained", 0), ("none", 0)])
def test_what_is_explained_may_pass(fail_on: str, status: int) -> None:
    old = run(step("first call", leaf(1.0)))
    found = Compared(old, old, (runs.Found("first call", "dtype", "a", "b", "", cause="slug"),))
    assert comparing._status(old, [found], fail_on) == status
    unknown = Compared(old, old, (runs.Found("first call", "dtype", "a", "b", ""),))
    assert comparing._status(old, [unknown], fail_on) == (0 if fail_on == "none" else 1)


def leaf(*values: float, **more: Any) -> Record:
    return records.leaf([*values], **more)


def step(name: str, *leaves: Record, **more: Any) -> Record:
    return records.returned(*leaves, name=name, **more)


def run(*steps: Record, implementation: str = "new_pmap", **more: Any) -> Record:
    return {
        "label": "",
        "implementation": implementation,
        "target": "current",
        "topology": "1x8",
        "jax": "0.9.0",
        "missing": "",
        "observations": [records.observation(*steps, implementation=implementation)],
        "fault": None,
    } | more


def raising(type: str, message: str, name: str = records.FIRST) -> Record:
    return records.raised(type, message, name=name, phase="execute", bases=[])


def fields(old: Record, new: Record, *, all: bool = False) -> list[str]:
    return [one.field for one in compare(old, new).found if all or one.matters]


def test_values_within_rounding_do_not_matter() -> None:
    one = run(step("first call", leaf(1.0, 2.0)))
    rounded = run(step("first call", leaf(1.0, 2.000001)))
    other = run(step("first call", leaf(1.0, 2.5)))
    assert fields(one, rounded) == []
    assert fields(one, rounded, all=True) == ["values"]
    assert fields(one, other) == ["values"]


def test_where_values_differ_most_is_said() -> None:
    old = [{"value": {"leaves": [leaf(1.0, 2.0, 3.0, 4.0, local_shape=[2, 2])]}}]
    new = [{"value": {"leaves": [leaf(1.0, 2.5, 3.0, 9.0, local_shape=[2, 2])]}}]
    for part in ("2 values", "by 5", "4 → 9", "result[1, 1]"):
        assert part in describe_values(old, new)
    assert describe_values(old, old) == ""
    infinite = [{"value": {"leaves": [leaf(1.0, 2.0, 3.0, "nan", local_shape=[2, 2])]}}]
    assert "by inf: 4 → nan" in describe_values(old, infinite)


def program(temp: int) -> Record:
    memory = {"argument": 100, "output": 100, "alias": 0, "temp": temp}
    return {"programs": [{"name": "jit_f", "collectives": [], "memory": memory}]}


def test_memory_matters_from_a_kilobyte_on() -> None:
    one = run(step("first call", extra=program(0)))
    assert fields(one, run(step("first call", extra=program(100)))) == []
    assert fields(one, run(step("first call", extra=program(5000)))) == [MEMORY]


def test_a_time_is_shown_and_never_a_difference() -> None:
    one = run(step("timed calls", extra={"seconds": [0.01] * 8}))
    slow = run(step("timed calls", extra={"seconds": [0.03] * 8}))
    assert fields(one, slow) == []
    assert fields(one, slow, all=True) == [TIME]
    wide = run(step("timed calls", extra={"seconds": [0.01, 0.03, 0.01, 0.03] * 2}))
    assert fields(one, wide, all=True) == []


def test_sampled_values_are_compared() -> None:
    big = leaf(values=None, local_shape=None, text="9999 elements, too many to carry")
    one, other = (
        run(step("first call", big, extra={"samples": [{"values": v, "local_shape": [9999]}]}))
        for v in ([1.0, 2.0], [1.0, 3.0])
    )
    assert fields(one, one) == []
    assert fields(one, other) == ["values"]


@pytest.mark.parametrize(
    ("message", "topology", "cause"),
    [
        (
            "Fetching value for `jax.Array` that spans non-addressable (non process local) devices "
            "is not possible. You can use `jax.experimental.multihost_utils.process_allgather`",
            "2x2",
            "global-array-cannot-be-fetched",
        ),
        ("something of the user's own", "2x2", ""),
    ],
)
def test_an_error_is_explained_by_the_issue_that_shows_it_there(
    message: str, topology: str, cause: str
) -> None:
    place = {"topology": topology, "implementation": "shard_map"}
    old = run(step("first call", leaf(1.0)), **(place | {"implementation": "legacy_pmap"}))
    new = run(raising("RuntimeError", message), **place)
    found = explain(compare(old, new), load_entries(), load_issues()).found
    assert {one.cause for one in found} == {cause}


def placed(*devices: int, type: str = "SingleDeviceSharding") -> Record:
    return leaf(1.0, sharding={"type": type, "devices": [*devices]})


def causes(old: Record, new: Record) -> set[str]:
    return {one.cause for one in explain(compare(old, new), load_entries(), load_issues()).found}


def between_maps(old: Record, new: Record) -> set[str]:
    """Return what explains the differences of a step from legacy to new pmap."""
    return causes(run(old, implementation="legacy_pmap"), run(new))


def test_rows_of_a_loop_are_known_by_their_devices() -> None:
    old = step("first call", placed(0), placed(1), placed(2))
    assert between_maps(old, step("first call", placed(0), placed(0), placed(0))) == {
        "iteration-goes-through-the-host"
    }
    one_moved = step("first call", placed(0), placed(1), placed(0))
    assert between_maps(old, one_moved) == {""}


def test_a_sharding_is_explained_by_more_devices_alone() -> None:
    old = step("first call", placed(0))
    more = step("first call", placed(0, 1, type="NamedSharding"))
    assert between_maps(old, more) == {"results-stay-on-all-devices"}
    assert between_maps(old, step("first call", placed(0, type="NamedSharding"))) == {""}


def test_two_defaults_of_jax_are_the_implementations_that_ran() -> None:
    old = step("first call", placed(0), extra={"maps": ["legacy pmap"]})
    new = step("first call", placed(0, 1, type="NamedSharding"), extra={"maps": ["new pmap"]})
    both = (run(one, implementation="own") for one in (old, new))
    assert causes(*both) == {"results-stay-on-all-devices"}


def test_a_negative_axis_is_known_by_the_map_that_was_made() -> None:
    old, new = raising("AssertionError", "(-1, 2)"), step("first call", leaf(1.0))
    noted = new | {"extra": {"axes": [steps.NEGATIVE]}}
    assert between_maps(old, noted) == {"negative-axis-taken-literally"}
    assert between_maps(old, new) == {""}


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            "The context mesh AbstractMesh('<axis 0x7f>': 1, axis_types=(Manual,), kind=cpu) "
            "should match the mesh passed to shard_map Mesh('<axis 0x8f>': 8, axis_types=(Auto,))",
            "nested-pmap-refused",
        ),
        # Two issues have it, and neither says the rest.
        ("The context mesh AbstractMesh should match the mesh passed to shard_map", ""),
        ("something else", ""),
    ],
)
def test_an_error_that_fits_several_issues_is_explained_by_none(message: str, cause: str) -> None:
    old, new = step("first call", leaf(1.0)), raising("ValueError", message)
    assert between_maps(old, new) == {cause}


@pytest.mark.parametrize(
    ("phase", "cause"),
    [
        ("trace", "failed-trace-breaks-the-wrapper"),
        ("arguments", "failed-call-breaks-the-wrapper"),
    ],
)
def test_a_broken_wrapper_is_known_by_how_the_first_call_failed(phase: str, cause: str) -> None:
    first = raising("TypeError", "no such shape")
    first["exception"]["phase"] = phase
    again = first | {"name": "second call"}
    broken = raising("StoreException", "Store empty", "second call")
    old = run(first, again, implementation="legacy_pmap")
    assert causes(old, run(first, broken)) - {""} == {cause}
    assert causes(old, run(first, broken, implementation="shard_map")) == {""}


def test_what_a_failed_call_leaves_out_is_no_difference() -> None:
    old = run(step("first call", leaf(1.0)), step("result + 1", leaf(2.0)))
    assert fields(old, run(raising("ValueError", "no"))) == ["outcome"]


def test_fields_and_axes_are_shown_in_words() -> None:
    found = runs.Found("first call", "sharding spec", "not split", "split along axis 0", "")
    words = difference_words.words_of(found)
    assert (words.field, words.old, words.new) == (
        "sharding",
        "not sharded",
        "sharded along axis 0",
    )
    assert difference_words.internal(words.field) == found.field
    assert difference_words.named("Mesh('<axis 0x7f49e4b2eca0>': 8)") == "Mesh('<unnamed axis>': 8)"


def test_a_time_is_not_shown_as_unexplained() -> None:
    old = run(step("first call", leaf(1.0)))
    slower = runs.Found("timed calls", TIME, "1 ms", "9 ms", "", matters=False)
    lines = list(compared_text.lines(old, [Compared(old, old, (slower,))], {}))
    assert f"  {compared_text.NOT_COUNTED}:" in lines


def test_own_rows_of_a_large_array_are_known_as_such() -> None:
    """In several processes shard_map returns the whole array, pmap this process's rows."""
    some = [{"values": [1.0], "local_shape": [2, 9999]}]
    big = leaf(values=None, local_shape=None, shape=[2, 9999], text="19998 elements")
    own = run(step("first call", big, extra={"samples": some}))
    whole = run(step("first call", big | {"shape": [4, 9999]}, extra={"samples": some}))
    [shape] = compare(own, whole).found
    assert (shape.old, shape.new) == ("this process's rows", "all processes' rows")


def test_runs_that_differ_alike_are_shown_once() -> None:
    old, new = run(step("first call", leaf(1.0))), run(step("first call", leaf(2.0)))
    lines = list(compared_text.lines(old, [compare(old, new), compare(old, new)], {}))
    assert len([one for one in lines if one.strip().startswith("values: ")]) == 1
    for part in ("the same", "new_pmap", "0.9.0", "1x8"):
        assert part in lines[-1]


def test_what_was_not_run_is_not_compared() -> None:
    gone = run(missing="it is gone")
    found = compare(run(step("first call", leaf(1.0))), gone)
    assert found.missing == "it is gone"
    assert not found.differs


def test_a_failed_import_is_no_observation() -> None:
    failed = raising("ModuleNotFoundError", "no x", steps.PREPARE)
    assert failure_of(run(failed)) == "ModuleNotFoundError: no x"
    assert failure_of(run(step("first call", leaf(1.0)))) == ""


def test_inputs_that_no_call_can_be_given_are_a_failure() -> None:
    prepared = step(steps.PREPARE, leaf(1.0))
    outside = raising("ValueError", "no row for each device", OUTSIDE)
    assert failure_of(run(prepared, outside)) == "ValueError: no row for each device"
    called = step("first call", leaf(1.0))
    assert failure_of(run(prepared, called, outside)) == ""


def test_texts_show_differences_of_several_steps_once() -> None:
    old = run(*(step(name, leaf(1.0)) for name in steps.CALLS))
    new = run(*(step(name, leaf(2.0)) for name in steps.CALLS))
    found = compare(old, new)
    issues: Mapping[str, Any] = {}
    lines = list(compared_text.lines(old, [found], issues))
    (values,) = (one for one in lines if one.strip().startswith("values: "))
    assert values.endswith(f"({', '.join(steps.CALLS)})")
    page = compared_text.markdown(old, [found], issues)
    assert page.count("| values |") == 1


INDEX = ["0.7.2", "0.8.0.dev20250901", "0.8.0.dev20250902", "0.8.0rc1", "0.8.0", "0.8.1"]


@pytest.fixture
def an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installer that takes the lowest version of INDEX that it may."""

    def resolved(wanted: list[str], options: list[str], *_: Any) -> tuple[None, str | None, str]:
        [requirement] = map(Requirement, wanted)
        early = options[options.index("--prerelease") + 1] == "allow"
        allowed = requirement.specifier.filter(INDEX, prereleases=early)
        return None, next(iter(allowed), None), "no solution found"

    monkeypatch.setattr(environments, "_resolved", resolved)


@pytest.mark.usefixtures("an_index")
def test_releases_and_the_nights_between_two_of_them_are_listed(tmp_path: Path) -> None:
    assert environments.releases("0.7.2", "0.8.1", tmp_path) == ["0.7.2", "0.8.0", "0.8.1"]
    assert environments.nights("0.7.2", "0.8.0", tmp_path) == INDEX[1:3]
    assert environments.nights("0.8.0", "0.8.1", tmp_path) == []


@pytest.mark.usefixtures("an_index")
@pytest.mark.parametrize(
    ("change", "between"),
    [(1, ("0.7.2", INDEX[1])), (2, (INDEX[1], INDEX[2])), (4, (INDEX[2], "0.8.0"))],
)
def test_a_release_that_changed_is_halved_by_its_nights(
    change: int, between: tuple[str, str]
) -> None:
    releases = [INDEX[0], INDEX[4], INDEX[5]]

    def observe(name: str) -> Any:
        return INDEX.index(name) >= change

    def same(one: Any, other: Any) -> bool:
        return bool(one == other)

    found = bisect(releases, observe, same)
    nearer, looked_at = bisecting_command._by_night(found, releases, observe, same)
    assert (nearer.last_same, nearer.changed) == between
    assert looked_at == [INDEX[0], INDEX[1], INDEX[2], INDEX[4], INDEX[5]]


@pytest.mark.usefixtures("an_index")
def test_without_nights_the_release_stays() -> None:
    releases = ["0.7.2", "0.8.0", "0.8.1"]
    found = bisect(releases, lambda name: name == "0.8.1", lambda a, b: a == b)
    assert bisecting_command._by_night(found, releases, lambda _: None, lambda a, b: True) == (
        found,
        releases,
    )


def test_a_page_needs_no_other_file_and_escapes_what_a_function_says() -> None:
    hostile = "<script>alert(1)</script>\x1b[2J"
    old, new = run(step("first call", leaf(1.0))), run(raising("ValueError", hostile))
    text = compared_page.as_html(
        hostile, [compared_page.part_of(old, [compare(old, new)], load_issues())]
    )
    assert not list(tree(text).iter("script"))
    assert "\x1b" not in text
    assert "outcome" in text
    assert not re.search(r'(?:src|href)="(?!https://github)', text)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in html.unescape(text)


def test_a_page_names_the_issue_and_its_edit() -> None:
    old = run(step("first call", leaf(1.0)))
    found = Compared(
        old, old, (runs.Found("first call", "dtype", "a", "b", "", cause=explained.INDEXING),)
    )
    text = compared_page.as_html(
        "train.py:train", [compared_page.part_of(old, [found], load_issues())]
    )
    assert f"Known issue {explained.INDEXING}: " in text
    assert "x.addressable_shards[i].data.squeeze(0)" in {
        text_in(one) for one in tree(text).iter("code")
    }
