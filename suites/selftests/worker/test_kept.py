"""Maps that are kept from one run of a program to the next."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.sections.rewriting import program
from conformance.worker.kept import keep_maps


class Counting:
    """Makes a map of each body, and counts how many."""

    name = "counting"

    def __init__(self) -> None:
        self.made = 0

    def map(self, body: Any, **options: Any) -> Any:
        self.made += 1
        return lambda x: body(x)

    def adopt(self, function: Any, kind: str | None = None) -> Any:
        self.made += 1
        return function


def test_a_second_run_calls_the_maps_of_the_first_in_their_order() -> None:
    """Each place in the program has its own map; nothing is made by the second run."""
    impl = Counting()

    def program(kept: Any) -> tuple[int, int, int, str]:
        doubled, more = kept.map(lambda x: 2 * x), kept.map(lambda x: x + 1, axis_name="j")
        return doubled(5), more(5), kept.adopt(len)("abc"), kept.name

    run = keep_maps(impl, program)
    assert [run(), run()] == [(10, 6, 3, "counting")] * 2
    assert impl.made == 3


def test_after_a_run_that_raised_the_next_keeps_what_was_made() -> None:
    """What the first run did not reach is made by the second, behind what it had made."""
    impl = Counting()
    failing = iter([True, False])

    def program(kept: Any) -> int:
        first = kept.map(lambda x: x)
        if next(failing):
            raise ValueError
        return int(kept.map(lambda x: x + first(x))(1))

    run = keep_maps(impl, program)
    try:
        run()
    except ValueError:
        assert impl.made == 1
    assert run() == 2
    assert impl.made == 2


def test_a_rewritten_map_is_built_once() -> None:
    """As a user keeps it: the second call is one of the wrapper that the first one built."""
    impl: Any = Counting()
    built: list[str] = []

    def build() -> Any:
        built.append("built")
        return lambda x: 2 * x

    run = program(impl, build)
    assert [run(1), run(2)] == [2, 4]
    assert (built, impl.made) == (["built"], 1)


def test_of_what_cannot_be_built_nothing_is_kept() -> None:
    """There is no wrapper that a second call could take another way through."""
    impl: Any = Counting()
    failing = iter([True, True, False])

    def build() -> Any:
        if next(failing):
            raise TypeError("no such argument")
        return lambda x: 2 * x

    run = program(impl, build)
    with pytest.raises(TypeError, match="no such argument"):
        run(1)
    assert run(2) == 4
