"""Collectives and their bytes, read from HLO as several versions print it."""

from __future__ import annotations

import pytest

from conformance.spec.hlo import Collective, aliased, collectives

REDUCE = (
    "  ROOT %all-reduce = f32[3,4]{1,0} all-reduce(%select_bitcast_fusion), channel_id=2, "
    "replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%add"
)
NO_PERCENT = "  all-gather.1 = bf16[8,128]{1,0} all-gather(param), dimensions={0}"
TUPLE = "  %all-reduce = (f32[2]{0}, s32[]) all-reduce(%a, %b), to_apply=%add"
STARTED = (
    "  %ag = (f32[1,4]{1,0}, f32[8,4]{1,0}) all-gather-start(f32[1,4]{1,0} %p), dimensions={0}"
)
# As libtpu prints it: operand, result, and two semaphores.
ON_TPU = (
    "  %cp = (f32[1,3]{1,0:T(1,128)}, f32[1,3]{1,0:T(1,128)S(1)}, u32[]{:S(2)}, u32[]{:S(2)}) "
    "collective-permute-start(%param), channel_id=14, source_target_pairs={{7,0}}"
)
SEVEN = (
    "  %ar = (f32[1]{0}, f32[1]{0}, f32[1]{0}, f32[1]{0}, f32[1]{0}, /*index=5*/f32[1]{0}, "
    "f32[1]{0}) all-reduce(%a, %b, %c, %d, %e, /*index=5*/%f, %g), to_apply=%add"
)
DONE = "  %done = f32[8,4]{1,0} all-gather-done(%ag)"


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("a reduction", REDUCE, Collective("all-reduce", "f32[3,4]", 48)),
        ("without percent signs", NO_PERCENT, Collective("all-gather", "bf16[8,128]", 2048)),
        ("a tuple of two", TUPLE, Collective("all-reduce", "f32[2], s32[]", 12)),
        (
            "more arrays than are printed without their position",
            SEVEN,
            Collective("all-reduce", ", ".join(["f32[1]"] * 7), 28),
        ),
        (
            "semaphores are no result",
            ON_TPU,
            Collective("collective-permute", "f32[1,3]", 12),
        ),
        ("asynchronous, its result", STARTED, Collective("all-gather", "f32[8,4]", 128)),
    ],
)
def test_a_line_gives_one_collective(name: str, line: str, expected: Collective) -> None:
    assert collectives(f"HloModule m\n{line}\n") == [expected], name


@pytest.mark.parametrize(
    "line",
    [
        DONE,
        "  %fusion = f32[3,4]{1,0} fusion(%p), kind=kLoop, calls=%all-reduce-like",
        "%all-reduce-scatter-region (a: f32[], b: f32[]) -> f32[] {",
        "",
    ],
)
def test_other_lines_give_none(line: str) -> None:
    assert collectives(line) == []


def test_the_size_of_an_unknown_dtype_is_never_guessed() -> None:
    with pytest.raises(ValueError, match="f3e2"):
        collectives("  %x = f3e2[4]{0} all-reduce(%p)")


DONATED = (
    "HloModule jit_f, is_scheduled=true, input_output_alias={{ {ALIASES} }}, "
    "entry_computation_layout={{(f32[1,4]{{1,0:T(1,128)}}, s32[1,7]{{1,0:T(1,128)}}, "
    "/*index=5*/bf16[2]{{0}})->(f32[1,4]{{1,0:T(1,128)}})}}, num_partitions=8"
)


@pytest.mark.parametrize(
    ("name", "aliases", "expected"),
    [
        ("the first", "{}: (0, {}, may-alias)", 16),
        ("two of three", "{0}: (0, {}, may-alias), {1}: (2, {}, must-alias)", 20),
        ("of a tuple", "{0}: (1, {}, may-alias)", 28),
    ],
)
def test_it_is_counted_in_the_arguments_own_bytes(name: str, aliases: str, expected: int) -> None:
    text = DONATED.replace("{ALIASES}", aliases).replace("{{", "{").replace("}}", "}")
    assert aliased(text) == expected, name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing", "HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}"),
        ("no module", ""),
    ],
)
def test_nothing_is_aliased_where_nothing_is_said(name: str, text: str) -> None:
    assert aliased(text) == 0, name
