"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from conformance.commandline.counting import counted


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [
        (0, ("cell",), "0 cells"),
        (1, ("cell",), "1 cell"),
        (2, ("cell",), "2 cells"),
        (1, ("process", "processes"), "1 process"),
        (3, ("process", "processes"), "3 processes"),
    ],
)
def test_a_number_is_written_with_its_noun(count: int, words: tuple[str, ...], text: str) -> None:
    assert counted(count, *words) == text
