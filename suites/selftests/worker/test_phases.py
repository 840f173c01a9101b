"""`phases`: the innermost function that the table knows decides, and evidence is kept of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest

from conformance.spec.names import PHASES
from conformance.worker.phases import MARKS, frames_of, phase_of

THIS_FILE = "test_phases.py"


@pytest.mark.parametrize(
    ("case", "frames", "phase"),
    [
        ("nothing", [], "unknown"),
        ("the_users_own", ["probe.py:body"], "unknown"),
        ("the_construction", ["api.py:pmap", "pmap.py:_prepare_pmap"], "construct"),
        ("an_argument", ["api.py:cache_miss", "pmap.py:_mapped_axis_size"], "arguments"),
        ("a_shard", ["pxla.py:shard_args", "array.py:_shard_arg"], "arguments"),
        ("the_body", ["pjit.py:_create_pjit_jaxpr", "probe.py:body"], "trace"),
        (
            "the_lowering",
            ["pjit.py:_python_pjit_helper", "pxla.py:_get_and_check_device_assignment"],
            "lower",
        ),
        ("the_compilation", ["pxla.py:from_hlo", "compiler.py:backend_compile"], "compile"),
        ("a_wait", ["api.py:block_until_ready"], "execute"),
        ("a_read", ["array.py:__array__", "array.py:_value"], "fetch"),
        # Lowering traces inner functions; the innermost frame says where it was.
        (
            "a_trace_within_lowering",
            ["pxla.py:lower_sharding_computation", "pe.py:trace_to_jaxpr_dynamic"],
            "trace",
        ),
        (
            "an_argument_within_execution",
            ["pxla.py:execute_sharded", "pxla.py:shard_args", "x.py:helper"],
            "arguments",
        ),
        # The error of lowering is raised again from a function that runs in every phase.
        ("a_lowering_raised_again", ["pjit.py:_python_pjit_helper"], "lower"),
        (
            "a_lowering_raised_again_after_a_trace",
            ["pjit.py:_infer_params", "pjit.py:_run_python_pjit"],
            "lower",
        ),
        (
            "a_reraiser_that_is_not_innermost",
            ["pjit.py:_python_pjit_helper", "probe.py:body"],
            "unknown",
        ),
        (
            "the_first_new_pmaps_program",
            ["implementations.py:__call__", "shard_map.py:wrapped"],
            "execute",
        ),
        (
            "a_shard_map_called_straight",
            ["traceback_util.py:reraise", "shard_map.py:wrapped"],
            "unknown",
        ),
        ("a_file_of_a_marks_name", ["shard_args.py:helper"], "unknown"),
        ("a_function_whose_name_contains_a_mark", ["x.py:my_shard_args"], "unknown"),
        ("a_qualified_path", ["C:/jax/pxla.py:shard_args"], "arguments"),
    ],
)
def test_is_told_from(case: str, frames: list[str], phase: str) -> None:
    assert phase_of(frames) == phase


@pytest.mark.parametrize(
    ("function", "phase"),
    [(function, phase) for phase, functions in MARKS.items() for function in functions],
)
def test_each_mark_stands_for_its_phase(function: str, phase: str) -> None:
    assert phase_of([f"some.py:{function}"]) == phase


def test_a_function_marks_one_phase_only() -> None:
    counts = Counter(function for functions in MARKS.values() for function in functions)
    assert [function for function, count in counts.items() if count > 1] == []


def test_every_phase_but_unknown_has_marks() -> None:
    assert [*MARKS, "unknown"] == list(PHASES)
    assert all(MARKS.values())


# Frames


def frames(function: Callable[[], object], *, after: str) -> list[str]:
    with pytest.raises(Exception, match=r"\w") as caught:
        function()
    return frames_of(caught.value, after=after)


def test_frames_are_those_below_the_file_outermost_first() -> None:
    found = frames(lambda: json.loads("{"), after=THIS_FILE)
    assert found == ["__init__.py:loads", "decoder.py:decode", "decoder.py:raw_decode"]


def test_a_file_that_comes_twice_counts_from_its_last_frame() -> None:
    def through_json() -> object:
        return json.loads("1", parse_int=lambda text: json.loads("{"))

    found = frames(through_json, after=THIS_FILE)
    assert found == ["__init__.py:loads", "decoder.py:decode", "decoder.py:raw_decode"]


def test_all_frames_are_kept_where_the_file_is_not_among_them() -> None:
    found = frames(lambda: json.loads("{"), after="absent.py")
    assert found[0] == f"{THIS_FILE}:frames"
    assert found[-1] == "decoder.py:raw_decode"


def test_an_exception_of_the_file_itself_has_no_frames_below_it() -> None:
    def refuse() -> None:
        raise ValueError("no")

    assert frames(refuse, after=THIS_FILE) == []


def test_an_exception_that_was_never_raised_has_no_frames() -> None:
    assert frames_of(ValueError("no"), after=THIS_FILE) == []


def test_folders_are_left_out_on_every_system() -> None:
    code = compile("def shard_args(): raise ValueError('no')", r"C:\jax\_src\pxla.py", "exec")
    namespace: dict[str, Callable[[], None]] = {}
    exec(code, namespace)
    found = frames(namespace["shard_args"], after=THIS_FILE)
    assert found == ["pxla.py:shard_args"]
    assert phase_of(found) == "arguments"
