"""Which Python files a scan evaluates, and which it follows imports into: by their text alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from conformance.catalogue.finds import CALL, NAME, Find
from conformance.scanning.events import AND
from conformance.scanning.names import SIGNATURES, is_alias, spellings
from conformance.scanning.rules import Rules

EVALUATED = "evaluated"  # a rule may match in it
FOLLOWED = "followed"  # it uses what rules are about: others may import what makes one match
UNRELATED = ""
# Words of which a file has one, if it has anything that the evaluation of maps can recognise.
_SEEDS = ("pmap", "shard_map")
_PARTIAL = "artial"  # of functools or of JAX
_SHORT = 3  # letters: such a name is a common word
_WORD = re.compile(r"\w+")
# Where the last part of a qualified name is written: `module.name`, an import, or `getattr`.
_ATTRIBUTE = re.compile(r"\.[\s\\]*(\w+)")
_TEXT = re.compile(r"""["'](\w+)["']""")
_IMPORT = re.compile(r"\bimport\b\s*(\((?:[^)#]|#[^\n]*)*\)|(?:[^\n\\]|\\\n)*)")
_ALL_NAMES = re.compile(r"\bimport\s*\*")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)")
_KEYWORDS = re.compile(r"[(,]\s*\*\*")  # `**options`, also of a definition


@dataclass(frozen=True, slots=True)
class _Need:
    """What a text has if a rule may match in it."""

    words: tuple[str, ...]
    is_name: bool = False  # the last word is where a name is used, in no comment
    passed: frozenset[str] = frozenset()  # the call passes one of these, by keyword


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a file is for a scan, as far as it is known without the others."""

    use: str  # EVALUATED, FOLLOWED or UNRELATED
    # Calls to which a keyword is missing that another file may hold, in a partial or dictionary.
    incomplete: tuple[_Need, ...] = ()
    passes_options: bool = False


class _Text:
    """A file's text, with what is written in it; found out when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text, self.words = text, frozenset(_WORD.findall(text))

    @cached_property
    def _names(self) -> frozenset[str]:
        found = {*_ATTRIBUTE.findall(self.text), *_TEXT.findall(self.text)}
        for imported in _IMPORT.findall(self.text):
            found.update(_WORD.findall(imported))
        return frozenset(found)

    @cached_property
    def _keywords(self) -> frozenset[str]:
        return frozenset(_KEYWORD.findall(self.text))

    @cached_property
    def imports_all(self) -> bool:
        """Return whether a module's names are imported without being written."""
        return _ALL_NAMES.search(self.text) is not None

    @cached_property
    def passes_options(self) -> bool:
        """Return whether a call may pass keywords that are not written in it."""
        return _KEYWORDS.search(self.text) is not None

    def uses(self, need: _Need) -> bool:
        """Return whether it may use a name: as an attribute, by an import, or by `getattr`."""
        if not self.words.issuperset(need.words):
            return False
        return not need.is_name or need.words[-1] in self._names or self.imports_all

    def passes(self, need: _Need) -> bool:
        """Return whether a call has a keyword that a rule is about, if it is about any."""
        return not need.passed or not need.passed.isdisjoint(self._keywords)


class Relevance:
    """Says what each Python file of a tree is for a scan."""

    def __init__(self, rules: Rules) -> None:
        finds = [rule.find for event in (NAME, CALL) for rule in rules.of_event(event)]
        self._needs = _by_word(need for find in finds for need in _needs(find))
        self._followed = _by_word(need for find in finds for need in _loosely(find))
        # Without a leading \b the search begins with a literal, which is far faster.
        self._patterns = [
            re.compile(pattern.pattern.removeprefix(r"\b")) for pattern, _ in rules.texts()
        ]
        some = (need.passed for each in self._needs.values() for need in each)
        self._passed = frozenset[str]().union(*some)
        all_needs = (*self._needs.values(), *self._followed.values())
        # Most files have none of these few: the first words of names, packages.
        self._first = tuple({need.words[0] for each in all_needs for need in each})
        self._seen: set[str] = set()  # keywords of rules that some file contains
        self._in_partials: set[tuple[str, ...]] = set()  # names that one may call with a keyword

    def verdict(self, text: str) -> Verdict:
        """Return what a file is by its text."""
        self._seen.update(one for one in self._passed - self._seen if one in text)
        seed = any(one in text for one in _SEEDS)
        makes_partials = _PARTIAL in text
        if (seed and not makes_partials) or any(one.search(text) for one in self._patterns):
            return Verdict(EVALUATED)
        if not any(first in text for first in self._first):
            return Verdict(EVALUATED if seed else UNRELATED)
        read = _Text(text)
        needs = [one for one in _about(self._needs, read) if read.uses(one)]
        met = [one for one in needs if read.passes(one)]
        if makes_partials:
            self._in_partials.update(one.words for one in met if one.passed)
        if met or seed:
            return Verdict(EVALUATED)
        followed = any(map(read.uses, _about(self._followed, read)))
        return Verdict(FOLLOWED if followed else UNRELATED, tuple(needs), read.passes_options)

    def is_evaluated(self, verdict: Verdict) -> bool:
        """Return whether to evaluate a file, now that all files of the tree have been read."""
        return verdict.use == EVALUATED or any(
            one.words in self._in_partials
            or (verdict.passes_options and not one.passed.isdisjoint(self._seen))
            for one in verdict.incomplete
        )


def _by_word(needs: Iterable[_Need]) -> dict[str, list[_Need]]:
    """Return needs by the word of each that fewest files have: the last one."""
    found: dict[str, list[_Need]] = {}
    for one in dict.fromkeys(needs):
        found.setdefault(one.words[-1], []).append(one)
    return found


def _about(needs: Mapping[str, list[_Need]], text: _Text) -> Iterator[_Need]:
    return (need for word in text.words & needs.keys() for need in needs[word])


def _needs(find: Find) -> Iterator[_Need]:
    """Yield what a text has if a rule matches in it, one of them."""
    if literals := _literals(find):
        yield from (_Need((one,)) for one in literals)
        return
    for name in find.where.get("name", frozenset()):
        passed = _only_by_keyword(find, name)
        for words in spellings(name):
            yield _Need(words, is_name=True, passed=passed)


def _loosely(find: Find) -> Iterator[_Need]:
    """Yield what a text has if it is about what a rule is about."""
    literals = _literals(find)
    for words in {(one,) for one in literals} or map(_parts, find.where.get("name", ())):
        yield _Need(words, is_name=len(words[-1]) <= _SHORT)


def _literals(find: Find) -> set[str]:
    """Return the values of the parameter `name`, which a rule about `config.update` names."""
    parts = (part for word in find.where.get("value", ()) for part in word.split(AND))
    return {part.partition("=")[2] for part in parts if part.startswith("name=")}


def _only_by_keyword(find: Find, name: str) -> frozenset[str]:
    """Return the parameters of which a call passes one, if none can be passed by position."""
    passed = find.where.get("passes", frozenset()) if find.event == CALL else frozenset[str]()
    found = {one.removesuffix("=") for one in passed}
    by_position = {*SIGNATURES.get(name, ())} - {one[:-1] for one in passed if one.endswith("=")}
    written = all(map(str.isidentifier, found))
    return frozenset(found) if written and found.isdisjoint(by_position) else frozenset()


def _parts(name: str) -> tuple[str, ...]:
    """Return the words that a file contains if it has a qualified name: all of it, unless JAX has
    the object elsewhere as well.
    """
    parts = tuple(name.split("."))
    return (parts[0], parts[-1]) if is_alias(name) else parts
