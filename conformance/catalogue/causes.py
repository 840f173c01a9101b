"""Known issues (causes): each one thing that JAX does and a user notices, with a program that shows
it.

A known issue is a pair of files in `causes/` of its section: `<slug>.toml` describes it,
`<slug>.py` is a program of plain JAX, without this project, that prints it. Deviation entries name
their known issue, and so do clauses under which behaviour changes as documented.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.catalogue.finds import Find, FindError, parse_finds
from conformance.model.tables import check_keys, load_toml
from conformance.spec.names import COLUMNS, JAX, LEGACY_PMAP, NEW_PMAP
from conformance.spec.topology import Topology

# Who errs: JAX, the document that is checked, or a platform.
KINDS = ("implementation", "documentation", "platform")
HANGS = "hangs"
FOLDER = Path(__file__).parents[1] / "sections"
FILES = "*/causes/*.toml"

# Whether a program's pmap is the legacy one: JAX's own variable, read up to 0.9.2.
SWITCH = "JAX_PMAP_SHMAP_MERGE"
SWITCHED = {LEGACY_PMAP: {SWITCH: "0"}, NEW_PMAP: {SWITCH: "1"}}

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ENDS = re.compile(r"SIG[A-Z0-9]+|hangs|exit [1-9][0-9]*")
# Where a statement can begin. To parse all programs takes most of the time that loading takes.
_IMPORT = re.compile(
    r"(?:^|[;:])\s*(?:from\s+(?P<package>[.\w]+)\s+import\b|import\s+(?P<modules>[\w.,\t ]+))",
    re.MULTILINE,
)
_MODULES = {*sys.stdlib_module_names, "jax", "jaxlib", "numpy"}
# Of a package that is not called as its module is.
_MODULE_OF = {"absl-py": "absl", "dm-haiku": "haiku", "orbax-checkpoint": "orbax"}


class CauseError(ValueError):
    """A known issue that is invalid, or that names something that does not exist."""


@dataclass(frozen=True, slots=True)
class Shows:
    """What the program shows, and where: which implementations, JAX versions and topologies.

    `prints` is its output and `raises` the last line of its exception, both with `...` for any
    text. `ends` is another end: a signal's name, "hangs", or "exit 3". `process` is the process
    that it holds for; None means every process.
    """

    implementation: tuple[str, ...]
    jax: str = ""
    topology: tuple[str, ...] = ("1x8",)
    prints: str = ""
    raises: str = ""
    ends: str = ""
    process: int | None = None

    def here(self, implementation: str, jax: str, topology: str) -> bool:
        """Return whether the program is expected to show the issue here."""
        return (
            implementation in self.implementation
            and topology in self.topology
            and SpecifierSet(self.jax).contains(Version(jax), prereleases=True)
        )


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that JAX, a library or a document does and a user notices.

    `tags` are calls and parts of messages for the search; `remedies` are clause ids, the best
    first, and `edit` describes the change in a program that the first of them makes; `links` are
    JAX's commits, source lines and issues; `requires` names packages that its program needs beside
    JAX. `compared` marks an issue that no clause judges: only a comparison of the implementations
    names it, and `scanned` one that neither names: its program and the rules of a scan show it.
    `part_of` is the issue of the same defect of which this is one appearance. `finds` are the rules
    by which a scan finds it.
    """

    slug: str
    section: str
    title: str
    sentence: str
    kind: str
    tags: tuple[str, ...]
    links: tuple[str, ...]
    shows: tuple[Shows, ...]
    program: str
    remedies: tuple[str, ...] = ()
    edit: str = ""
    part_of: str = ""
    requires: tuple[str, ...] = ()
    compared: bool = False
    scanned: bool = False
    finds: tuple[Find, ...] = ()
    find_none: str = ""

    @property
    def file(self) -> str:
        """The path of its program below the package's folder."""
        return f"conformance/sections/{self.section}/causes/{self.slug}.py"


@functools.cache
def load_causes(folder: Path = FOLDER) -> Mapping[str, Cause]:
    """Return every known issue by slug; CauseError names the invalid file and the error."""
    causes: dict[str, Cause] = {}
    for file in sorted(folder.glob(FILES)):
        one = load(file)
        if one.slug in causes:
            raise CauseError(
                f"{file.name}: {causes[one.slug].section} already has a known issue of that name"
            )
        causes[one.slug] = one
    for program in sorted(folder.glob("*/causes/*.py")):
        if program.stem not in causes:
            raise CauseError(
                f"{program.name}: there is no {program.stem}.toml that describes it: add it"
            )
    return causes


def load(file: Path) -> Cause:
    """Return the known issue of one TOML file and of the program beside it.

    CauseError names the file and the first field that is invalid or missing.
    """
    raw = load_toml(file, CauseError)
    made = {"slug", "section", "program", "finds"}
    known = {one.name for one in fields(Cause)} - made | {"find"}
    optional = {"remedies", "edit", "part_of", "requires", "compared", "scanned"}
    optional |= {"find", "find_none"}
    check_keys(raw, known, known - optional, file.name, CauseError)
    if not _SLUG.fullmatch(file.stem):
        raise CauseError(f"{file.name}: name it in lower-case words with hyphens")
    for key in ("title", "sentence", "kind", *(raw.keys() & {"edit", "part_of", "find_none"})):
        if not (isinstance(raw[key], str) and raw[key].strip()):
            raise CauseError(f"{file.name}: {key} must be a text")
    if raw["kind"] not in KINDS:
        raise CauseError(f"{file.name}: kind {raw['kind']!r} is none of {', '.join(KINDS)}")
    for key, least in (("tags", 1), ("links", 1), ("remedies", 0), ("requires", 0)):
        raw[key] = _texts(raw.get(key, []), least, f"{file.name}: {key}")
    if raw.get("edit") and not raw["remedies"]:
        raise CauseError(
            f"{file.name}: edit describes the first remedy, and there is none: add remedies"
        )
    for key in ("compared", "scanned"):
        if type(raw.get(key, True)) is not bool:
            raise CauseError(f"{file.name}: write {key} = true, or leave it out")
    raw["finds"] = _finds(raw, file.name)
    if raw.get("scanned") and not any(find.effect for find in raw["finds"]):
        raise CauseError(f"{file.name}: scanned needs a [[find]] with an effect")
    if not (isinstance(raw["shows"], list) and raw["shows"]):
        raise CauseError(
            f"{file.name}: add [[shows]]: what the program prints or raises, and where"
        )
    raw["shows"] = tuple(_shows(one, file.name) for one in raw["shows"])
    program = file.with_suffix(".py")
    if not program.is_file():
        raise CauseError(f"{file.name}: add {program.name}, the program that shows it")
    text = program.read_text(encoding="utf-8")
    _plain(text, program.name, raw["requires"])
    return Cause(slug=file.stem, section=file.parents[1].name, program=text, **raw)


def check(
    causes: Mapping[str, Cause], clauses: Iterable[str], named: Mapping[str, Sequence[str]]
) -> None:
    """Raise CauseError if an issue names an unknown clause, or is named by nothing or by an unknown
    slug.

    `named` maps the slugs that clauses and deviation entries name to who names them.
    """
    ids = set(clauses)
    for one in causes.values():
        proofs = [find.proved for find in one.finds if find.proved]
        gone = [id for id in (*one.remedies, *proofs) if id not in ids]
        if gone:
            raise CauseError(f"cause {one.slug}: no clause is called {', '.join(gone)}")
        whole = causes.get(one.part_of)
        if one.part_of and (whole is None or whole is one or whole.part_of):
            why = "no cause" if whole is None else "itself" if whole is one else "a part as well"
            raise CauseError(f"cause {one.slug}: part_of {one.part_of}, which is {why}")
        unjudged = "compared" if one.compared else "scanned" if one.scanned else ""
        if one.slug not in named and not unjudged:
            raise CauseError(f"cause {one.slug}: no clause and no deviation entry names it")
        if one.slug in named and unjudged:
            raise CauseError(
                f"cause {one.slug}: {named[one.slug][0]} names it, so a clause "
                f"judges it: leave out {unjudged}"
            )
    for slug, naming in named.items():
        if slug not in causes:
            raise CauseError(f"{naming[0]}: no cause is called {slug}")


def command(shows: Shows, implementation: str, program: str = "program.py") -> str:
    """Return the shell command that runs a program where it shows the issue."""
    place = Topology.parse(shows.topology[0])
    switch = " ".join(f"{name}={value}" for name, value in SWITCHED.get(implementation, {}).items())
    variables = (
        f"JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES={place.devices_per_process} {switch}".strip()
    )
    if place.processes == 1:
        return f"{variables} python {program}"
    several = " ".join(map(str, range(place.processes)))
    one = f"{variables} python {program} localhost:12345 {place.processes} $i"
    return f"for i in {several}; do {one} & done; wait"


def _finds(raw: dict[str, Any], file: str) -> tuple[Find, ...]:
    """Return the rules by which a scan finds an issue; removes them from `raw`."""
    if "find" not in raw:
        return ()
    if "find_none" in raw:
        raise CauseError(
            f"{file}: find_none gives the reason why there is no [[find]]: leave out one of them"
        )
    try:
        return parse_finds(raw.pop("find"))
    except FindError as error:
        raise CauseError(f"{file}: {error}") from error


def _shows(raw: Any, file: str) -> Shows:
    if not isinstance(raw, dict):
        raise CauseError(f"{file}: shows must be written [[shows]]")
    known = {one.name for one in fields(Shows)}
    where = f"{file}: [[shows]]"
    check_keys(raw, known, {"implementation"}, where, CauseError)
    for key in ("implementation", "topology"):
        if key in raw:
            raw[key] = _texts(raw[key], 1, f"{where} {key}")
    unknown = set(raw["implementation"]) - set(COLUMNS)
    if unknown:
        raise CauseError(f"{where}: no implementation is called {', '.join(sorted(unknown))}")
    for key in raw.keys() & {"jax", "prints", "raises", "ends"}:
        if not isinstance(raw[key], str):
            raise CauseError(f"{where}: {key} must be a text")
    try:
        for text in raw.get("topology", ()):
            Topology.parse(text)
        SpecifierSet(raw.get("jax", ""))
    except ValueError as error:
        raise CauseError(f"{where}: {error}") from error
    if not any(raw.get(key) for key in ("prints", "raises", "ends")):
        raise CauseError(f"{where} needs prints, raises or ends")
    if raw.get("ends") and (raw.get("raises") or not _ENDS.fullmatch(raw["ends"])):
        raise CauseError(
            f"{where}: ends is a signal, hangs, or a status such as 'exit 3', and needs no raises"
        )
    if JAX in raw["implementation"] and len(raw["implementation"]) > 1:
        raise CauseError(f"{where}: what maps nothing is shown under {JAX!r} alone")
    return Shows(**raw)


def _texts(value: Any, least: int, where: str) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) and one for one in values):
        raise CauseError(f"{where} must be texts in a list")
    if len(values) < least:
        raise CauseError(f"{where} must not be empty")
    return tuple(values)


def _plain(program: str, name: str, requires: Sequence[str]) -> None:
    """Raise CauseError if a program needs more than Python, JAX and what `requires` lists."""
    known = _MODULES | {_MODULE_OF.get(one, one) for one in requires}
    for statement in _IMPORT.finditer(program.replace("\\\n", " ")):
        for module in (statement["package"] or statement["modules"]).split(","):
            if module.split(" as ")[0].split(".")[0].strip() not in known:
                raise CauseError(f"{name}: imports {module.strip()}, which is not plain JAX")
