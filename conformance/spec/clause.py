"""A clause: one executable test of a claim, declared above its probe.

A clause module reads like the document it tests: the decorator says what must happen under each
implementation, the function below it is the user's program.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

from conformance.spec.expected import Expectation
from conformance.spec.names import COLUMNS, IMPLEMENTATIONS, JAX
from conformance.spec.topology import ONE_PROCESS, Topology

Probe = Callable[..., object]

ID = re.compile(r"[a-z_]+(\.[a-z0-9]+(-[a-z0-9]+)*)+")


@dataclass(frozen=True, slots=True)
class Need:
    """The smallest cluster on which a clause is meaningful."""

    devices: int = 1
    processes: int = 1
    devices_per_process: int = 1

    def unmet(self, topology: Topology) -> str | None:
        """Return why `topology` is too small; None if it is large enough."""
        for what, least, has in (
            ("devices", self.devices, topology.devices),
            ("processes", self.processes, topology.processes),
            ("devices per process", self.devices_per_process, topology.devices_per_process),
        ):
            if has < least:
                return f"needs at least {least} {what}, {topology} has {has}"
        return None


def devices(count: int) -> Need:
    """Require at least `count` devices in the cluster."""
    return Need(devices=count)


def processes(count: int, *, devices_per_process: int = 1) -> Need:
    """Require at least `count` processes, each with `devices_per_process` devices."""
    return Need(processes=count, devices_per_process=devices_per_process)


@dataclass(frozen=True, slots=True)
class Timing:
    """The contenders of a clause that measures time, as steps of its probe.

    Ratios within a cell are to `baseline`. Times prove nothing: they illustrate clauses that are
    judged by what JAX compiled.
    """

    contenders: tuple[str, ...]
    illustrates: tuple[str, ...]
    baseline: str | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """One executable test. `id` is stable and dotted; its first word is the section.

    For a family, `parameters` are the keys of its rows, which are sent to workers, and `rows` the
    rows themselves, both by the probe's keyword.
    """

    id: str
    claim: str
    probe: Probe
    expect: Mapping[str, Expectation]
    needs: Need = Need()
    topologies: tuple[str, ...] = ONE_PROCESS
    fixes: str | None = None
    fresh: bool = False
    deadline_s: float | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)
    named: str = ""
    fact: str = ""
    left_out: str = ""
    cause: str = ""
    requires: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    selects: bool = False
    on_cpu: bool = False
    timing: Timing | None = None

    @property
    def section(self) -> str:
        """The part of the documents that this clause belongs to."""
        return self.id.split(".", 1)[0]

    @property
    def title(self) -> str:
        """Return what the clause tests: as declared, else the first paragraph of the probe's
        docstring.
        """
        return self.named or " ".join((inspect.getdoc(self.probe) or "").split("\n\n")[0].split())

    def elsewhere(self, topology: Topology) -> str | None:
        """Return why the clause does not apply to `topology`, which it does not name; None if it
        does.

        Several processes are a question of their own, and so is one process: a clause about the one
        need not be meaningful for the other. A clause that names only one process without a reason
        is run.
        """
        several = topology.processes > 1
        if several in {Topology.parse(one).processes > 1 for one in self.topologies}:
            return None
        if not several:
            return f"asked of several processes ({', '.join(self.topologies)}), {topology} has one"
        return f"asked of one process: {self.left_out}" if self.left_out else None

    @property
    def run(self) -> tuple[Any, ...]:
        """Identity of what is run: clauses with equal values judge the same run of a cell."""
        probe = (self.probe.__module__, self.probe.__qualname__)
        asked = (self.fresh, self.deadline_s, self.requires, self.programs, self.selects)
        rows = tuple(sorted((name, _identity(row)) for name, row in self.rows.items()))
        return (*probe, json.dumps(self.parameters, sort_keys=True), rows, *asked)

    @property
    def where(self) -> tuple[str, int]:
        """Module file, from the package's folder on, and line of the probe."""
        path = Path(inspect.getsourcefile(self.probe) or "")
        package = self.probe.__module__.split(".", 1)[0]
        parts = path.parts
        start = len(parts) - 1 - parts[::-1].index(package) if package in parts else -1
        # What `inspect.getsourcelines` answers, without reading the module's text.
        code = getattr(inspect.unwrap(self.probe), "__code__", None)
        return "/".join(parts[start:]), code.co_firstlineno if code is not None else 0


def _identity(row: Any) -> str:
    """Return what distinguishes a row from one with the same key in another table."""
    return repr(row) if isinstance(row, str | int | float | tuple | None) else str(id(row))


class Declared(TypedDict, total=False):
    """What a clause may declare beside its id; `clause` describes each."""

    claim: str
    expect: Mapping[str, Expectation]
    needs: Need | None
    topologies: Iterable[str]
    left_out: str
    title: str
    fact: str
    cause: str
    fixes: str | None
    fresh: bool
    deadline_s: float | None
    requires: Iterable[str]
    programs: Iterable[str]
    selects: bool
    on_cpu: bool
    timing: Timing | None
    also: Iterable[Check]


@dataclass(frozen=True, slots=True)
class Check:
    """Another clause about the run of a clause or family, whose ids are theirs and `.suffix`.

    It runs where they do, and has their claim unless it declares one.
    """

    suffix: str
    declared: Mapping[str, Any]

    def beside(self, declared: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the check declares beside a clause that declares `declared`."""
        return {name: declared[name] for name in OF_A_RUN if name in declared} | {**self.declared}


# What the checks of one run have in common.
OF_A_RUN = (
    "claim",
    "needs",
    "topologies",
    "left_out",
    "fresh",
    "deadline_s",
    "requires",
    "programs",
    "selects",
    "on_cpu",
)


def check(suffix: str, *, expect: Any, title: Any, **declared: Any) -> Check:
    """Return a further check of the same run, for `also=`; the keywords are the decorator's.

    `only`, a function of the rows, says for which of them there is such a clause.
    """
    return Check(suffix, {"expect": expect, "title": title, **declared})


def clause(id: str, **declared: Unpack[Declared]) -> Callable[[Probe], Probe]:
    """Declare the decorated function as the probe of the clause `id`.

    The keywords, of which `claim` and `expect` are required:

    * `claim`: a slug of claims.toml.
    * `expect`: an expectation for each implementation, or for `names.JAX` alone where the probe
      maps nothing.
    * `needs`: the smallest cluster. `topologies`: where it runs. `left_out`: why it does not run on
      other topologies on which a user would ask.
    * `title`: what it tests; by default the first paragraph of the probe's docstring.
    * `fact`: what a reader would call one finding, where several clauses vary one; a name like an
      id, by default the id.
    * `cause`: the slug of the known issue that it shows although it conforms.
    * `fixes`: the id of the clause whose error this one remedies.
    * `fresh`: run it on a cluster that ran nothing before. `deadline_s`: in seconds, for clauses
      that hang or are slow.
    * `requires`: packages beyond JAX that the probe imports. `programs`: other programs that it
      starts, such as `mpirun`. Where one is missing, the clause is not run.
    * `selects`: the clause tests which implementation runs. Its expectation must prove it, since
      the judge then does not; it runs also where this JAX lacks the implementation.
    * `on_cpu`: the probe starts processes that compute on CPU whatever the platform, of which its
      cells would say nothing: on another one they are not applicable.
    * `timing`: the clause measures time, and is in no matrix.
    * `also`: further checks of the same run.

    A probe may be declared more than once: its clauses then judge one run. ValueError where the
    declaration is incomplete or no run can meet it.
    """
    checks = tuple(declared.pop("also", ()))
    checked(id, declared)

    def declare(probe: Probe) -> Probe:
        add_clause(probe, id, declared)
        for one in checks:
            add_clause(probe, f"{id}.{one.suffix}", one.beside(declared))
        return probe

    return declare


def add_clause(
    probe: Probe,
    id: str,
    declared: Mapping[str, Any],
    *,
    parameters: Mapping[str, str] | None = None,
    rows: Mapping[str, Any] | None = None,
) -> None:
    """Add one checked clause to the probe's; for `clause` and `family` only.

    ValueError where the declaration is incomplete or no run can meet it.
    """
    checked(id, declared)
    values = dict(declared)
    title, needs = values.pop("title", ""), values.pop("needs", None)
    one = Clause(
        **values
        | {
            "id": id,
            "probe": probe,
            "named": title,
            "needs": needs or Need(),
            "fact": values.get("fact") or id,
            "expect": dict(values["expect"]),
            "topologies": tuple(values.get("topologies", ONE_PROCESS)),
            "requires": tuple(values.get("requires", ())),
            "programs": tuple(values.get("programs", ())),
            "parameters": dict(parameters or {}),
            "rows": dict(rows or {}),
        }
    )
    if not one.title:
        raise ValueError(f"clause {id} has no docstring: its first line is the clause's title")
    unmet = [one.needs.unmet(Topology.parse(text)) for text in one.topologies]
    if None not in unmet:
        why = "; ".join(filter(None, unmet)) or "it names no topology"
        raise ValueError(f"clause {id} can run on none of its topologies: {why}")
    if not ID.fullmatch(one.fact):
        raise ValueError(
            f"clause {id}: the fact {one.fact!r} is not dotted lower-case words, "
            "as errors.other-device"
        )
    clauses: list[Clause] = probe.__dict__.setdefault("clauses", [])
    clauses.append(one)


def checked(id: str, declared: Mapping[str, Any]) -> None:
    """Raise ValueError if a clause of this id cannot declare this."""
    if not ID.fullmatch(id):
        raise ValueError(f"clause id {id!r} is not dotted lower-case words: errors.other-device")
    for name in ("claim", "expect"):
        if name not in declared:
            raise ValueError(f"clause {id} has no {name}: declare it, or give its module a default")
    expect = declared["expect"]
    missing = [name for name in IMPLEMENTATIONS if name not in expect and JAX not in expect]
    if missing:
        raise ValueError(
            f"clause {id} has no expectation for {', '.join(missing)}: add one, or "
            "not_applicable(reason)"
        )
    if JAX in expect and len(expect) > 1:
        raise ValueError(
            f"clause {id}: it expects something of {JAX!r}, so it maps nothing; "
            "remove the other implementations"
        )
    unknown = expect.keys() - set(COLUMNS)
    if unknown:
        raise ValueError(
            f"clause {id}: no implementation is called {', '.join(sorted(unknown))}; "
            f"there are {', '.join(COLUMNS)}"
        )
    if isinstance(declared.get("topologies"), str):
        topologies = declared["topologies"]
        raise ValueError(f"clause {id}: topologies is a text; write a tuple: ({topologies!r},)")
