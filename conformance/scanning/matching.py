"""Turn events that match a rule into findings, with the code before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from conformance.catalogue.finds import Find
from conformance.scanning.events import Event, matches
from conformance.scanning.findings import Finding, Replacement
from conformance.scanning.imports import dotted, last_name
from conformance.scanning.rules import Rule, Rules
from conformance.scanning.scopes import Scope
from conformance.scanning.sources import Source
from conformance.scanning.values import Reference

NOTHING = "nothing"  # the placeholder of what is removed
AXIS = "axis"  # the placeholder of the axis name that the file's maps have
USUAL = {"numpy": "np", "jax.numpy": "jnp"}  # how a module is imported that is not yet
MOST_SHOWN = 200  # characters of code in a finding


def findings(source: Source, scope: Scope | None, event: Event, rules: Rules) -> Iterator[Finding]:
    """Yield a finding for each rule that matches an event."""
    for rule in rules.about(event):
        if matches(rule.find, event.kind, event.attributes):
            yield _finding(source, scope, event, rule)


def _finding(source: Source, scope: Scope | None, event: Event, rule: Rule) -> Finding:
    place = source.place(event.node)
    imports: tuple[str, ...] = ()
    if isinstance(event.node, cst.ImportAlias) and not rule.find.proved:
        after = _import_of(event.node, rule.find)
    else:
        after, imports = rewritten(source, scope, event.captures, rule.find.after)
    replacement = None
    if after is not None and rule.find.proved:
        removed = rule.find.placeholders == (NOTHING,)
        replacement = Replacement(place, after, imports, whole_line=removed)
    return Finding(
        path=source.path,
        place=place,
        line_text=source.lines[place.line - 1] if place.line <= len(source.lines) else "",
        issue=rule.issue,
        says=rule.find.says,
        before=source.code(event.node)[:MOST_SHOWN],
        after=after or "",
        proved=rule.find.proved if replacement is not None else "",
        replacement=replacement,
        once=rule.find.once,
    )


def _import_of(node: cst.ImportAlias, find: Find) -> str | None:
    """Return the import of a name that replaces an imported one, bound to the same variable."""
    module, _, name = (find.placeholders or ("",))[0].rpartition(".")
    if not module or find.after != f"{{{module}.{name}}}":
        return None
    bound = last_name(node.name) if node.asname is None else dotted(node.asname.name)
    return f"from {module} import {name}" + (f" as {bound}" if bound != name else "")


def rewritten(
    source: Source, scope: Scope | None, captures: Mapping[str, cst.CSTNode], template: str
) -> tuple[str | None, tuple[str, ...]]:
    """Return a rewrite with its placeholders filled in, and its imports; None without one.

    Text in braces is code that the event captured, or else a qualified name.
    """
    if not template:
        return None, ()
    text, imports = template, list[str]()
    for name in _placeholders(template):
        if name == NOTHING:
            text = text.replace("{nothing}", "")
        elif name == AXIS:
            text = text.replace("{axis}", source.axis_name)
        elif name in captures:
            text = text.replace("{" + name + "}", source.tree.code_for_node(captures[name]))
        elif name.startswith("arg.") or name in ("value", "index", "function"):
            return None, ()
        else:
            bound = _bound(scope, name)
            if bound is None:
                module = name if name in USUAL else name.split(".")[0]
                imports.append(module)
                bound = USUAL.get(name, name)
            text = text.replace("{" + name + "}", bound)
    return text, tuple(dict.fromkeys(imports))


def _placeholders(template: str) -> tuple[str, ...]:
    return Find("", after=template).placeholders


def _bound(scope: Scope | None, name: str) -> str | None:
    """Return how a module writes a qualified name that it imports; None if it does not."""
    if scope is None:
        return None
    for variable, value in scope.variables.items():
        if isinstance(value, Reference) and value.name == name:
            return variable
    parts = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        prefix = ".".join(parts[:at])
        for variable, value in scope.variables.items():
            if isinstance(value, Reference) and value.name == prefix:
                return ".".join([variable, *parts[at:]])
    return None
