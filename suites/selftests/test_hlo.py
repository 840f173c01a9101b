"""Collectives and their bytes, read from HLO as several versions print it."""

from __future__ import annotations

from unittest import TestCase

import pytest
from parameterized import parameterized

from conformance.judging.hlo import Collective, collectives

REDUCE = (
    "  ROOT %all-reduce = f32[3,4]{1,0} all-reduce(%select_bitcast_fusion), channel_id=2, "
    "replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=%add"
)
NO_PERCENT = "  all-gather.1 = bf16[8,128]{1,0} all-gather(param), dimensions={0}"
TUPLE = "  %all-reduce = (f32[2]{0}, s32[]) all-reduce(%a, %b), to_apply=%add"
STARTED = (
    "  %ag = (f32[1,4]{1,0}, f32[8,4]{1,0}) all-gather-start(f32[1,4]{1,0} %p), dimensions={0}"
)
DONE = "  %done = f32[8,4]{1,0} all-gather-done(%ag)"


class CollectivesTest(TestCase):
    @parameterized.expand(
        [
            ("a reduction", REDUCE, Collective("all-reduce", "f32[3,4]", 48)),
            ("without percent signs", NO_PERCENT, Collective("all-gather", "bf16[8,128]", 2048)),
            ("a tuple of two", TUPLE, Collective("all-reduce", "f32[2], s32[]", 12)),
            ("asynchronous, its result", STARTED, Collective("all-gather", "f32[8,4]", 128)),
        ]
    )
    def test_a_line_gives_one_collective(self, name: str, line: str, expected: Collective) -> None:
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
