"""Positions of nodes: those of LibCST's own provider."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from scanned_programs import programs

from conformance.scanning.positions import positions

ODD = """x = (
    1, 'a\\
b'
)\r
class A(B): # note
\tdef f(self): return [i for i in c]

if x: pass"""


def _texts() -> list[str]:
    return [one.file.read_text() for one in programs() if one.file.suffix == ".py"]


def test_each_node_is_where_libcst_says() -> None:
    nodes = 0
    for text in (ODD, *_texts()):
        module = cst.parse_module(text)
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        found = positions(module)
        for node, at in wrapper.resolve(PositionProvider).items():
            assert found[node] == (
                (at.start.line, at.start.column),
                (at.end.line, at.end.column),
            )
            nodes += 1
    assert nodes > 10_000
