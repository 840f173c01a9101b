"""Numbers with their nouns."""

from __future__ import annotations


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun: "1 cell", "3 cells".

    `several` is for what adds no s: "3 processes", "2 clauses differ".
    """
    return f"{count} {one}" if count == 1 else f"{count} {several or f'{one}s'}"
