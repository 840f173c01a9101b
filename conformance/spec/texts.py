"""Texts of the functions that an expectation is made of, by which reports name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_TEXT = "conformance_text"  # the attribute that holds a function's text


def described(text: str) -> Callable[[F], F]:
    """Give the decorated function its text, such as "this process's rows, doubled" for a model."""

    def with_text(function: F) -> F:
        setattr(function, _TEXT, text)
        return function

    return with_text


def text_of(function: Callable[..., Any]) -> str:
    """Return the text of a function; empty if it has none."""
    return str(getattr(function, _TEXT, ""))
