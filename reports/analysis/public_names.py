"""Public names of JAX that went away or warn, release by release: `reports/published/names.json`.

A name is a module, what a module defines, an argument of a function, or an option of `jax.config`.
What each release does with it was looked up in its own Python (`dev names`).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from reports.store.input_error import InputError
from reports.store.order import version_order

FILE = Path(__file__).parents[1] / "published" / "names.json"
SCHEMA = 1
THERE, GONE = "there", "gone"
MODULE, NAME, ARGUMENT, OPTION = "module", "name", "argument", "option"

# The words by which a name is of pmap, shard_map, sharding or several processes.
_SUBJECT = re.compile(
    r"pmap|shard(?!_alike)|mesh|pvary|pcast|vma\b|check_rep|psum|axis_(?:index|size|frame)|spmd"
    r"|multihost|process_|distributed|device_put|pxla|mapprimitive|replicat|partitionspec",
    re.IGNORECASE,
)
_KERNELS = re.compile(r"^jax\.(?:experimental\.(?:mosaic|pallas)|extend\.mlir)\b")


class NamesError(InputError):
    """The file of names cannot be read; the message says why."""


class Release(Protocol):
    """What was looked up in a release: a state, a warning and an error for each name."""

    @property
    def jax(self) -> str:
        """The version of JAX."""

    @property
    def same(self) -> Sequence[Sequence[str]]:
        """The groups of names that are the same object there."""

    @property
    def looked(self) -> Mapping[tuple[str, str, str], tuple[str, str, str]]:
        """State, warning and error, by name: its module or function, its kind, its last part."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that is gone in the newest release, or warns there.

    `first` is the first release that has it, empty where that is the oldest one looked at; `gone`
    the first without it, empty where it is still there. `warned` is the first release in which its
    use warns. `warning` and `error` are what JAX says. `same` are names of the same object which
    the newest release has.
    """

    name: str
    kind: str
    owner: str = ""
    first: str = ""
    gone: str = ""
    warned: str = ""
    warning: str = ""
    error: str = ""
    same: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The name as one writes it: an argument with its function."""
        return f"{self.owner}({self.name}=)" if self.owner else self.name

    @property
    def module(self) -> str:
        """The module that has it, or has its function; empty for an option."""
        return (self.owner or self.name).rpartition(".")[0]

    @property
    def attribute(self) -> str:
        """The last part."""
        return self.name.rpartition(".")[2]

    @property
    def instead(self) -> str:
        """The shortest other name of the object that the newest release has, or empty."""
        return min(self.same, key=lambda one: (one.count("."), one), default="")

    @property
    def explains(self) -> bool:
        """Return whether its error is JAX's own, and not Python's."""
        return _explains(self.error, self.name)

    @property
    def is_of_subject(self) -> bool:
        """Return whether it is of pmap, shard_map, sharding or several processes."""
        return _is_of_subject(self.text) and not self.is_of_kernels

    @property
    def is_of_kernels(self) -> bool:
        """Return whether it is of the languages for kernels, which few programs import."""
        return bool(_KERNELS.match(self.text))


@functools.cache  # asked of each name for every pair of releases
def _is_of_subject(text: str) -> bool:
    return _SUBJECT.search(text) is not None


@dataclass(frozen=True, slots=True)
class Names:
    """All names that are gone or warn, sorted, and the releases that were examined, oldest
    first.
    """

    releases: tuple[str, ...]
    names: tuple[Name, ...]

    @property
    def gone(self) -> tuple[Name, ...]:
        """Return those that the newest release has no longer."""
        return tuple(one for one in self.names if one.gone)

    def before(self, release: str) -> str:
        """The release before one of these; empty where it is the oldest."""
        at = self.releases.index(release)
        return self.releases[at - 1] if at else ""

    def gone_since(self, name: Name) -> str:
        """Return the first release without a name; whether earlier ones had it may be unknown."""
        return f"{name.gone} or earlier" if name.gone == self.releases[0] else name.gone

    def gone_in(self, old: str, new: str) -> tuple[Name, ...]:
        """Return those that went away in `old`, in `new` or between them."""
        before, after = _numbers(old), _numbers(new)
        return tuple(one for one in self.gone if before <= _numbers(one.gone) <= after)

    def gone_between(self, old: str, new: str) -> tuple[Name, ...]:
        """Return those that `old` has and `new` has not; what is not a version comes after all."""
        before, after = _numbers(old), _numbers(new)
        return tuple(
            one
            for one in self.gone
            if before < _numbers(one.gone) <= after
            and (not one.first or _numbers(one.first) <= before)
        )


def _numbers(version: str) -> tuple[object, ...]:
    """Return what orders versions, without their text: 0.10 is 0.10.0."""
    return version_order(version)[:-1]


def history(releases: Sequence[Release]) -> Names:
    """Return what became of each name, from what each release does with it, the oldest release
    first.
    """
    versions = tuple(one.jax for one in releases)
    same = [{name: some for some in one.same for name in some} for one in releases]
    newest = releases[-1].looked
    has = {name for (_, owner, name), found in newest.items() if found[0] == THERE and not owner}
    names = []
    for kind, owner, name in newest:
        if kind == MODULE and (NAME, owner, name) in newest:
            continue
        looked = [one.looked[kind, owner, name] for one in releases]
        life = _life(looked)
        if life is None:
            continue
        first, last, gone = life
        warns = [at for at in range(last + 1) if looked[at][1]]
        error = looked[gone][2] if gone is not None else ""
        if last < 0 and not _explains(error, name):
            continue  # no release has it, and JAX does not say what became of it
        others = same[last].get(name, ()) if gone is not None and last >= 0 and not owner else ()
        names.append(
            Name(
                name=name,
                kind=kind,
                owner=owner,
                first=versions[first] if first else "",
                gone=versions[gone] if gone is not None else "",
                warned=versions[warns[0]] if warns else "",
                warning=looked[warns[-1]][1] if warns else "",
                error=error,
                same=tuple(one for one in others if one in has and one != name),
            )
        )
    return Names(versions, tuple(sorted(names, key=lambda one: (one.text, one.kind))))


def _life(looked: Sequence[tuple[str, str, str]]) -> tuple[int, int, int | None] | None:
    """The first and the last release that have a name, and the first without it, by their places.

    None where the newest release has it and does not warn. The last is -1 where none has it.
    """
    has = [at for at, (state, _, _) in enumerate(looked) if state == THERE]
    last = max(has, default=-1)
    gone = next((at for at in range(last + 1, len(looked)) if looked[at][0] == GONE), None)
    if gone is None and (last < 0 or not looked[last][1]):
        return None
    return min(has, default=0), last, gone


def _explains(error: str, name: str) -> bool:
    """Return whether an error is JAX's own, and not Python's."""
    attribute = name.rpartition(".")[2]
    usual = (f"has no attribute '{attribute}'", f"No module named '{name}'", f"option: {name}")
    return bool(error) and not error.endswith(usual)


def as_text(found: Names) -> str:
    """Return the file's content, a name per line, so that versions of it can be compared."""
    lines = ",\n".join(f"  {json.dumps(_row(one))}" for one in found.names)
    releases = json.dumps(found.releases)
    return f'{{"schema": {SCHEMA},\n "releases": {releases},\n "names": [\n{lines}\n ]}}\n'


def _row(name: Name) -> dict[str, Any]:
    return {key: value for key, value in asdict(name).items() if value}


@functools.cache
def load_names(file: Path = FILE) -> Names:
    """Read the file; NamesError says what is wrong with it."""
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        if raw["schema"] != SCHEMA:
            raise NamesError(f"{file}: it has schema {raw['schema']}, and this reads {SCHEMA}")
        rows = ({**one, "same": tuple(one.get("same", ()))} for one in raw["names"])
        return Names(tuple(raw["releases"]), tuple(Name(**one) for one in rows))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise NamesError(f"{file}: {error}") from error
