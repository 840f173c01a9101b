"""Helpers of a scanned program that take outputs, by their form: nothing in the file calls them."""

from __future__ import annotations

import libcst as cst

from conformance.scanning.values import PMAP, Argument, Array, Function

OF_A_PARAMETER = "of a parameter"
_FACTS = frozenset({OF_A_PARAMETER, "tree unknown"})


def assumed(function: Function) -> tuple[Argument, ...]:
    """Return the argument that callers pass to a helper that unreplicates; nothing for others.

    Its body is `return jax.tree.map(lambda x: x[0], parameter)`, in a file that uses pmap.
    """
    node = function.node
    if not isinstance(node, cst.FunctionDef) or "pmap" not in function.scope.source.text:
        return ()
    name = _first_rows_of(node)
    if name not in {one.name.value for one in (*node.params.posonly_params, *node.params.params)}:
        return ()
    return (Argument(Array(of=PMAP, facts=_FACTS), cst.Name(name), name),)


def _first_rows_of(node: cst.FunctionDef) -> str:
    """Return the name of the tree of whose leaves a function returns an item; empty if none."""
    match _statements(node):
        case [
            cst.SimpleStatementLine(
                body=[
                    cst.Return(
                        value=cst.Call(
                            args=[
                                cst.Arg(cst.Lambda(body=cst.Subscript(value=cst.Name()))),
                                cst.Arg(cst.Name(name), keyword=None),
                            ]
                        )
                    )
                ]
            )
        ]:
            return name
    return ""


def _statements(node: cst.FunctionDef) -> list[cst.CSTNode]:
    """Return the statements of a function without its docstring."""
    some = list(node.body.body)
    documented = some and node.get_docstring() is not None
    return some[1:] if documented else some
