"""Find issues without evaluating a program: text in scripts, and pinned packages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import libcst as cst
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.catalogue.finds import REQUIREMENT
from conformance.scanning.events import Event
from conformance.scanning.files import PYTHON, SCRIPT
from conformance.scanning.findings import Finding
from conformance.scanning.rules import Rule, Rules
from conformance.scanning.sources import Place, Source

_OF_A_TABLE = re.compile(
    r"""([A-Za-z][\w.-]*)\s*=\s*(?:\{.*?version\s*=\s*)?["']([\^~<>=!]?=?\s*\d[^"']*)["'].*"""
)
_CARET = re.compile(r"\^\s*(\d+(?:\.\d+)*)")
MOST_LINE = 20_000  # characters of a line that are looked into
_FAR_OFF = "9999"
_COMMENT = re.compile(r"(^|\s)#.*$")
# What stands before a variable in a command: other variables, and what passes them on.
_SETS = re.compile(r"\s*(?:(?:export|env|-\S+|[\w./-]+=\S*)\s+)*[\"']?")
_SPEC = re.compile(
    r"(?<![\w.-])([A-Za-z][\w.-]*(?:\[[\w,. -]*\])?\s*(?:[=!~<>]=|[<>])\s*[\w.,<>=!~ ]+)"
)


def in_scripts(path: str, text: str, rules: Rules) -> Iterator[Finding]:
    """Yield the findings in a shell script, a workflow, a Dockerfile or a configuration file."""
    patterns = rules.texts()
    for number, line in enumerate(text.split("\n"), 1):
        code = _COMMENT.sub("", line[:MOST_LINE])
        for pattern, rule in patterns:
            if not _about(rule, SCRIPT):
                continue
            for match in pattern.finditer(code):
                yield _at(path, line, number, match.start(), match.end(), rule)
        yield from _pinned(path, line, number, rules)


def in_requirements(path: str, text: str, rules: Rules) -> Iterator[Finding]:
    """Yield the pins of a requirements file that cannot work."""
    for number, line in enumerate(text.split("\n"), 1):
        yield from _pinned(path, line, number, rules)


def in_strings(source: Source, rules: Rules) -> Iterator[tuple[Event, Rule]]:
    """Yield the string literals of a program, without docstrings, that match a rule."""
    patterns = [(p, rule) for p, rule in rules.texts() if _about(rule, PYTHON)]
    if not any(pattern.search(source.text) for pattern, _ in patterns):
        return
    strings = _Strings()
    source.tree.visit(strings)
    for node, value in strings.found:
        for pattern, rule in patterns:
            if any(_is_configuration(one) for one in pattern.finditer(value)):
                words = {"text": frozenset({pattern.pattern}), "files": frozenset({PYTHON})}
                yield Event("text", node, words), rule


class _Strings(cst.CSTVisitor):
    """Collects string literals but docstrings, and what is named by a keyword: `dict(NAME="0")`."""

    def __init__(self) -> None:
        self.found: list[tuple[cst.CSTNode, str]] = []

    def visit_Expr(self, node: cst.Expr) -> bool:  # noqa: N802
        return not isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802
        try:
            value = node.evaluated_value
        except (ValueError, SyntaxError):
            return
        if isinstance(value, str):
            self.found.append((node, value))

    def visit_FormattedString(self, node: cst.FormattedString) -> None:  # noqa: N802
        first = node.parts[0] if node.parts else None
        if isinstance(first, cst.FormattedStringText):
            self.found.append((node, first.value))

    def visit_Arg(self, node: cst.Arg) -> None:  # noqa: N802
        if node.keyword is not None:
            self.found.append((node, node.keyword.value))


def _is_configuration(match: re.Match[str]) -> bool:
    """Return whether a string has a name as configuration does: as a flag, by itself, or set
    before a command. In a sentence it is mentioned only.
    """
    before = re.split(r"[\n;&|]", match.string[: match.start()])[-1]
    after = match.string[match.end() :]
    if match[0].startswith("--"):
        return True
    ends = not after or after[0] in "=\n" or not match[0][-1].isalnum()
    return ends and _SETS.fullmatch(before) is not None


def _about(rule: Rule, kind: str) -> bool:
    wanted = rule.find.where.get("files")
    return wanted is None or kind in wanted


def _at(path: str, line: str, number: int, start: int, end: int, rule: Rule) -> Finding:
    return Finding(
        path=path,
        place=Place(number, start + 1, number, end + 1),
        line_text=line[:MOST_LINE],
        issue=rule.issue,
        says=rule.find.says,
        before=line[start:end],
    )


def _pinned(path: str, line: str, number: int, rules: Rules) -> Iterator[Finding]:
    some = rules.of_event(REQUIREMENT)
    if not some:
        return
    code = _as_requirements(_COMMENT.sub("", line[:MOST_LINE]))
    for match in _SPEC.finditer(code):
        name, specifier = _requirement(match[1])
        for rule in some:
            if name in rule.find.where["package"] and _only(
                specifier, rule.find.where.get("versions", frozenset())
            ):
                end = match.start() + len(match[1].rstrip())
                yield _at(path, line, number, match.start(), end, rule)


def required(text: str) -> Iterator[tuple[str, SpecifierSet]]:
    """Yield the packages, and which versions of each, that a text requires."""
    for line in text.split("\n"):
        for match in _SPEC.finditer(_as_requirements(_COMMENT.sub("", line[:MOST_LINE]))):
            name, specifier = _requirement(match[1])
            if name:
                yield name, specifier


def satisfied(needs: str, some: Collection[tuple[str, SpecifierSet]]) -> bool:
    """Return whether the requirements of a tree allow only what a rule needs, and name it."""
    package, wanted = _requirement(needs)
    about = [specifier for name, specifier in some if name == package]
    return bool(about) and all(_within(one, wanted) for one in about)


def _within(specifier: SpecifierSet, wanted: SpecifierSet) -> bool:
    """Return whether a requirement allows only wanted versions: it tries those around the ends."""
    ends = [one.version.removesuffix(".*") for one in (*specifier, *wanted)]
    tried = [*ends, *map(_previous, ends), _FAR_OFF]
    allowed = [text for text in tried if specifier.contains(text, prereleases=True)]
    return all(wanted.contains(text, prereleases=True) for text in allowed)


def _previous(version: str) -> str:
    """Return the release before one: 0.12.6 for 0.12.7."""
    numbers = list(Version(version).release)
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return ".".join(map(str, [*numbers[:-1], max(numbers[-1] - 1, 0)]))


def _as_requirements(line: str) -> str:
    """Return a line with what a table of requirements says, `flax = "^0.10"`, as one of them."""
    match = _OF_A_TABLE.fullmatch(line.strip())
    if match is None:
        return line
    name, versions = match.groups()
    some = [_CARET.sub(_of_caret, one.strip()) for one in versions.split(",")]
    return name + ",".join(one if one[:1] in "<>=!~" else f"=={one}" for one in some if one)


def _of_caret(match: re.Match[str]) -> str:
    """Return `>=0.10,<0.11` for `^0.10`, as Poetry reads it."""
    numbers = [int(one) for one in match[1].split(".")]
    at = next((at for at, one in enumerate(numbers) if one), len(numbers) - 1)
    end = ".".join(map(str, [*numbers[:at], numbers[at] + 1]))
    return f">={match[1]},<{end}"


def _requirement(text: str) -> tuple[str, SpecifierSet]:
    try:
        found = Requirement(text.strip().rstrip(","))
    except InvalidRequirement:
        return "", SpecifierSet()
    return found.name.lower().replace("_", "-"), found.specifier


def _only(specifier: SpecifierSet, versions: frozenset[str]) -> bool:
    """Return whether a pin allows only versions in the given ranges, which have an upper bound.

    It tries the versions that the pin names, the ends of the ranges, and a release far in the
    future.
    """
    if not any(one.operator in ("==", "<=", "~=", "<") for one in specifier):
        return False
    wanted = [SpecifierSet(text) for text in versions]
    named = [one.version for some in (specifier, *wanted) for one in some]
    tried = [*(text.removesuffix(".*") for text in named), _FAR_OFF]
    allowed = [text for text in tried if specifier.contains(text, prereleases=True)]
    return all(any(one.contains(text, prereleases=True) for one in wanted) for text in allowed)
