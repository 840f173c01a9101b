"""Scan a tree: list its files, evaluate those that may matter, and order the findings."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path

from packaging.specifiers import SpecifierSet

from conformance.commandline.parallel import LostProcessError, answers
from conformance.scanning import texts
from conformance.scanning.files import PYTHON, SCRIPT, Listed, PathError
from conformance.scanning.findings import (
    Finding,
    Report,
    Unread,
    in_cell,
    in_order,
    once_in_each_file,
)
from conformance.scanning.ignoring import ALL, ignored_in_file, is_ignored
from conformance.scanning.interpreter import Interpreter
from conformance.scanning.matching import findings
from conformance.scanning.notebooks import Cell
from conformance.scanning.project import Project
from conformance.scanning.relevance import FOLLOWED, Relevance, Verdict
from conformance.scanning.rules import Rules
from conformance.scanning.scopes import Scope
from conformance.scanning.sources import (
    Source,
    UnreadableError,
    dotted_name,
    read_python,
    read_text,
)
from conformance.scanning.values import (
    UNKNOWN,
    Array,
    Class,
    Function,
    Instance,
    Items,
    Mapped,
    Partial,
    Value,
)
from conformance.scanning.versions import Release, release

_SETUP = "setup.py"  # a program that is read for its requirements as well
MOST_ROUNDS = 4  # modules that export what modules export
CHUNK = 50  # files that a process is given at once
_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b.*$", re.MULTILINE)
_WORD = re.compile(r"\w+")
MOST_KEPT = 200  # files that a process keeps parsed, for the next ones that import them
FEW = 30  # files for which starting processes is not worth it


@dataclass(frozen=True, slots=True)
class Task:
    """What all processes of a scan share: the rules, and where each module is."""

    rules: Rules
    modules: dict[str, tuple[str, str]]  # dotted name -> file, path as reported
    relevant: frozenset[str] = frozenset()  # those that are evaluated wherever they are imported
    jax: Release = ()  # of the new side


@dataclass(slots=True)
class Part:
    """The findings of some files."""

    findings: list[Finding] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    exports: set[tuple[str, str]] = field(default_factory=set)  # last part of a module, name
    parsed: int = 0
    ignored: int = 0


def scan(
    files: Sequence[Listed],
    rules: Rules,
    *,
    old: str,
    new: str,
    left: Sequence[Unread] = (),
    processes: int = 1,
    progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Scan files; return a report with all findings."""
    python = [one for one in files if one.kind == PYTHON]
    modules = {dotted_name(one.inside): (str(one.file), one.path) for one in python}
    whole = Part(unread=list(left))
    relevant, followed, others = _relevant(python, Relevance(rules), whole)
    required: list[tuple[str, SpecifierSet]] = []
    for one in files:
        if one.kind != PYTHON or one.inside.name == _SETUP:
            required += _text_file(one, rules, whole)
    rules = rules.without([needs for needs in rules.needed() if texts.satisfied(needs, required)])
    progress(f"files: {len(files)}; to be evaluated: {len(relevant)}")
    jax = release(new.rpartition("@")[2])
    task = Task(rules, modules, _worth_reading([*relevant, *followed], python), jax)
    _evaluate(task, relevant, processes, whole, progress)
    imported: dict[Listed, frozenset[str]] = {}
    for _ in range(MOST_ROUNDS):
        more = _importing(others, whole.exports, imported)
        if not more:
            break
        others = [one for one in others if one not in more]
        task = replace(task, relevant=task.relevant | _worth_reading(more, ()))
        progress(f"{len(more)} more files import what these export")
        _evaluate(task, more, processes, whole, progress)
    return Report(
        old=old,
        new=new,
        findings=in_order(once_in_each_file(whole.findings)),
        unread=tuple(sorted(whole.unread, key=lambda one: one.path)),
        files=len(files),
        parsed=whole.parsed,
        ignored=whole.ignored,
    )


def _worth_reading(relevant: Sequence[Listed], files: Sequence[Listed]) -> frozenset[str]:
    """Return the modules whose exports to follow, including packages that re-export."""
    found = {dotted_name(one.inside) for one in relevant}
    packages = {dotted_name(one.inside): one for one in files if one.inside.name == "__init__.py"}
    imported = {name: _imported_words(one) for name, one in packages.items() if name not in found}
    for _ in range(MOST_ROUNDS):
        last = {name.rpartition(".")[2] for name in found}
        found |= {name for name, words in imported.items() if not words.isdisjoint(last)}
    return frozenset(found)


def _imported_words(listed: Listed) -> frozenset[str]:
    """The words of a file's imports; those in parentheses name no module."""
    try:
        return _words_of_imports(read_text(listed.file))
    except UnreadableError:
        return frozenset()


def _words_of_imports(text: str) -> frozenset[str]:
    return frozenset(word for line in _IMPORT.findall(text) for word in _WORD.findall(line))


def _evaluate(
    task: Task,
    files: Sequence[Listed],
    processes: int,
    whole: Part,
    progress: Callable[[str], None],
) -> None:
    """Evaluate files, in several processes if there are many."""
    names = [dotted_name(one.inside) for one in files]
    several = processes if len(names) > FEW else 1
    size = max(1, min(CHUNK, -(-len(names) // several)))
    chunks = [names[at : at + size] for at in range(0, len(names), size)]
    done = 0
    for chunk, part in zip(chunks, _parts(task, chunks, several), strict=True):
        whole.findings += part.findings
        whole.unread += part.unread
        whole.exports |= part.exports
        whole.parsed += part.parsed
        whole.ignored += part.ignored
        done += len(chunk)
        if len(chunks) > 1:
            progress(f"{done} of {len(names)} evaluated, {len(whole.findings)} findings")


def _parts(task: Task, chunks: Sequence[Sequence[str]], processes: int) -> Iterator[Part]:
    evaluation = Evaluation(task)
    if processes == 1:
        yield from map(evaluation, chunks)
        return
    try:
        yield from answers(evaluation, chunks, processes)
    except LostProcessError as error:
        message = "a process that evaluates files was killed; scan a part of the tree"
        raise PathError(message) from error


def _relevant(
    files: Sequence[Listed], relevance: Relevance, whole: Part
) -> tuple[list[Listed], list[Listed], list[Listed]]:
    """Return the files in which a rule may match, of the others those that are followed where they
    are imported, and all others.
    """
    verdicts: dict[Listed, Verdict] = {}
    for one in files:
        try:
            verdicts[one] = relevance.verdict(read_python(one.file).text)
        except UnreadableError as error:
            whole.unread.append(Unread(one.path, str(error)))
    relevant = [one for one, verdict in verdicts.items() if relevance.is_evaluated(verdict)]
    known = frozenset(relevant)
    others = [one for one in verdicts if one not in known]
    followed = [one for one in others if verdicts[one].use == FOLLOWED]
    return relevant, followed, others


def _importing(
    files: Sequence[Listed],
    exports: set[tuple[str, str]],
    imported: dict[Listed, frozenset[str]],
) -> list[Listed]:
    """Return the files that import a module and use one of the names that it exports.

    `imported` keeps the words of each file's imports for the next round.
    """
    by_module: dict[str, set[str]] = {}
    for module, name in exports:
        by_module.setdefault(module, set()).add(name)
    return [one for one in files if _uses_export(one, by_module, imported)]


def _uses_export(
    listed: Listed, by_module: Mapping[str, set[str]], imported: dict[Listed, frozenset[str]]
) -> bool:
    words = imported.get(listed)
    if words is not None and words.isdisjoint(by_module):
        return False
    try:
        text = read_python(listed.file).text
    except UnreadableError:
        return False
    words = imported[listed] = _words_of_imports(text)
    names = {name for module in words & by_module.keys() for name in by_module[module]}
    written = [name for name in names if name in text]
    return bool(written) and not frozenset(_WORD.findall(text)).isdisjoint(written)


def _text_file(listed: Listed, rules: Rules, whole: Part) -> list[tuple[str, SpecifierSet]]:
    """Add the findings of a file by its lines; return the packages that it requires."""
    try:
        text = read_text(listed.file)
    except UnreadableError as error:
        if listed.kind != PYTHON:  # which is read again, and named then
            whole.unread.append(Unread(listed.path, str(error)))
        return []
    lines = text.split("\n")
    if listed.kind == SCRIPT:
        found = list(texts.in_scripts(listed.path, text, rules))
    else:
        found = list(texts.in_requirements(listed.path, text, rules))
    _keep(found, lines, whole)
    return list(texts.required(text))


def _keep(
    found: Sequence[Finding], lines: Sequence[str], part: Part, cells: Sequence[Cell] = ()
) -> None:
    """Add the findings that no comment suppresses."""
    left_out = ignored_in_file(lines)
    ignored = {
        (one.place.line, one.place.column)
        for one in in_order(found)
        if not left_out.isdisjoint((one.issue.slug, ALL)) or is_ignored(one, lines)
    }
    part.ignored += len(ignored)
    for one in found:
        if (one.place.line, one.place.column) not in ignored:
            part.findings.append(in_cell(one, cells) if cells else one)


# In each process


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluates modules of the tree in this process, which keeps what it has parsed."""

    task: Task

    @cached_property
    def read(self) -> Callable[[str], Source | None]:
        """Return the function that reads a module: other chunks import the same ones."""
        return lru_cache(MOST_KEPT)(partial(_source, self.task))

    def __call__(self, modules: Sequence[str]) -> Part:
        """Return the findings of some modules."""
        paths = {name: path for name, (_, path) in self.task.modules.items()}
        project = Project(paths, self.read, self.task.relevant)
        run = Interpreter(project, self.task.rules.names(), self.task.jax)
        with _without_collector():
            return _evaluated(run, self.task, modules)


def _source(task: Task, module: str) -> Source | None:
    file, path = task.modules[module]
    try:
        code = read_python(Path(file))
    except UnreadableError:
        return None
    return Source(path, module, code.text, code.cells)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Look for no cycles of garbage meanwhile: there are few, among millions of nodes."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _evaluated(run: Interpreter, task: Task, modules: Sequence[str]) -> Part:
    part = Part()
    for name in modules:
        source = run.project.source(name)
        if source is None:
            part.unread.append(Unread(task.modules[name][1], "it cannot be read"))
            continue
        run.events.clear()
        try:
            scope = run.scan(source)
        except UnreadableError as error:
            part.unread.append(Unread(source.path, str(error)))
            continue
        except RecursionError:
            part.unread.append(Unread(source.path, "it is nested too deeply"))
            continue
        part.parsed += 1
        module = name.rpartition(".")[2]
        part.exports |= {(module, one) for one in exported(run, scope)}
        _found(run, source, scope, task.rules, part)
    return part


def _found(run: Interpreter, source: Source, scope: Scope, rules: Rules, part: Part) -> None:
    found: dict[int, tuple[Source, list[Finding]]] = {}
    for where, event in run.events.values():
        top = run.project.scopes.get(where.module)
        some = found.setdefault(id(where), (where, []))[1]
        some += findings(where, top, event, rules)
    some = found.setdefault(id(source), (source, []))[1]
    for event, rule in texts.in_strings(source, rules):
        some += findings(source, scope, event, Rules({event.kind: (rule,)}))
    for where, each in found.values():
        _keep(each, where.lines, part, where.cells)


def exported(run: Interpreter, scope: Scope) -> set[str]:
    """Return the names of a module through which another gets a map, an output, or a maker
    of one.
    """
    results = {place[0]: value for place, value in run.known.items()}
    for node, one in run.instances.items():
        if isinstance(one, Instance):
            results[node] = Items(items=tuple(one.attributes.values()))
    return {name for name, value in scope.variables.items() if _matters(value, results)}


def _matters(value: Value, results: dict[object, Value], depth: int = 0) -> bool:
    match value:
        case Mapped() | Array():
            return True
        case Partial():
            return _matters(value.function, results, depth)
        case Items():
            return any(_matters(one, results, depth) for one in value.items)
        case Function():
            result = results.get(id(value.node))
            return isinstance(result, Mapped | Array | Items) and _matters(result, results, depth)
        case Class():
            attributes = results.get(id(value.node), UNKNOWN)
            some = (attributes, *value.scope.variables.values())
            return depth == 0 and any(_matters(one, results, 1) for one in some)
    return False
