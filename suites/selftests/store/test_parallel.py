"""Work on all cores is done once, in order, and fails as it would in one process."""

from __future__ import annotations

import os
import sys
from io import BytesIO

import pytest

from conformance.model.codec import decode_json
from conformance.store.reading import lines_ahead
from reports.render.site.parallel import WORTH, in_parallel


@pytest.mark.parametrize(("case", "count"), [("few", 3), ("none", 0), ("many", WORTH + 37)])
def test_everything_is_done_once_and_in_order(case: str, count: int) -> None:
    assert list(in_parallel(lambda number: number * 2, count, 2)) == [2 * n for n in range(count)]


def test_many_are_done_in_other_processes_that_know_what_this_one_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    known = object()
    here = (os.getpid(), id(known))
    there = list(in_parallel(lambda _: (os.getpid(), id(known)), WORTH, 2))
    assert here[0] not in {process for process, _ in there}
    assert {address for _, address in there} == {here[1]}


def test_few_are_done_here() -> None:
    assert set(in_parallel(lambda _: os.getpid(), WORTH - 1, 2)) == {os.getpid()}


def test_what_fails_there_fails_here() -> None:
    def fails(number: int) -> int:
        if number == WORTH - 1:
            raise ValueError("no such luck")
        return number

    with pytest.raises(ValueError, match="no such luck"):
        list(in_parallel(fails, WORTH, 2))


@pytest.mark.parametrize(
    ("case", "text", "value"),
    [
        ("an object", b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("half of a character", b'"\\ud800"', "\ud800"),
        ("the largest that an array holds", b"18446744073709551615", 2**64 - 1),
    ],
)
def test_a_text_of_json_has_its_value(case: str, text: bytes, value: object) -> None:
    assert decode_json(text) == value


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("nothing", b""),
        ("a torn end", b"a\nb"),
        ("empty lines", b"\n\na\n\n"),
        ("lines longer than a block", b"a" * 20 + b"\n" + b"b" * 9 + b"\nc"),
        ("a line that ends with its block", b"1234567\n1234567\n"),
    ],
)
def test_lines_are_read_ahead_as_they_stand(case: str, text: bytes) -> None:
    for block in (1, 8, 1 << 10):
        assert list(lines_ahead(BytesIO(text), block)) == text.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("case", "text"), [("torn", b'{"a": '), ("deep", b"[" * 200_000), ("no UTF-8", b'"\xff"')]
)
def test_what_is_none_is_refused(case: str, text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_json(text)
