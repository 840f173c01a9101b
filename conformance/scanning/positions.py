"""Positions of the nodes of a syntax tree."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import libcst as cst
from libcst.metadata import PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

Position = tuple[int, int]  # line, from 1 on, and column, from 0 on
Range = tuple[Position, Position]  # the end is exclusive


def positions(module: cst.Module) -> Mapping[cst.CSTNode, Range]:
    """Return where each node of a module is, without the whitespace around it.

    As LibCST's PositionProvider, in a third of its time: `resolve` visits the tree once more for
    providers that share a visit, although there are none, and makes objects of all positions.
    """
    state = _State(
        default_indent=module.default_indent,
        default_newline=module.default_newline,
        provider=PositionProvider(),
    )
    module._codegen(state)  # the only way to a node's position
    return state.found


class _State(PositionProvidingCodegenState):
    """Writes the code of a module, and notes the position at which each node begins and ends."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.found: dict[cst.CSTNode, Range] = {}
        self._starts: list[Position] = []

    def _update_position(self, value: str) -> None:
        if "\n" in value or "\r" in value:
            super()._update_position(value)
        else:
            self.column += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        if node not in self.found:
            self.found[node] = start, (self.line, self.column)

    def record_syntactic_position(  # type: ignore[override]
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> AbstractContextManager[None]:
        return _Noted(self, node, start_node, end_node)


class _Noted(AbstractContextManager[None]):
    """Notes the position of a node whose code is written within."""

    __slots__ = ("_first", "_last", "_node", "_start", "_state")

    def __init__(
        self,
        state: _State,
        node: cst.CSTNode,
        first: cst.CSTNode | None,
        last: cst.CSTNode | None,
    ) -> None:
        self._state, self._node, self._first, self._last = state, node, first, last

    def __enter__(self) -> None:
        self._start = self._state.line, self._state.column

    def __exit__(self, *error: object) -> None:
        found = self._state.found
        start = self._start if self._first is None else found[self._first][0]
        here = self._state.line, self._state.column
        found[self._node] = start, here if self._last is None else found[self._last][1]
