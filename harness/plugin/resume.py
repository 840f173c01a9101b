"""`--resume`: reuse what an earlier run recorded of the same program on the same target.

Recorded observations are judged again by today's catalogue; a cell that would be red is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

import conformance.model.records as model
from conformance.judging.rejudging import CannotJudge, Rejudging
from conformance.model.verdicts import Verdict
from harness.plugin.session import Session
from harness.results.gathering import OF_ANOTHER_PROGRAM, LeftOut
from harness.running.cells import CellId
from harness.targets.interpreters import NoAnswerError, facts
from harness.targets.target import Target, TargetError

# What may stand in new results as it was recorded; all else is worth another run.
GOOD = (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION, Verdict.REMOVED, Verdict.NOT_APPLICABLE)

BACKENDS = {"cuda": "gpu"}  # what JAX calls a platform that runs, where it is another word
OF_A_TARGET = ("jax", "jaxlib", "python", "platform")


@dataclass(frozen=True, slots=True)
class Today:
    """What this run would run: its cells, their programs' digests, its targets, its judge.

    `targets` maps a spec to the fields of its target's record: jax, jaxlib, python, platform,
    packages. `requires` maps a clause to the packages that it needs.
    """

    cells: frozenset[CellId]
    programs: Mapping[str, str]
    targets: Mapping[str, Mapping[str, Any]]
    requires: Mapping[str, Sequence[str]]
    judge: Rejudging

    def wants(self, id: CellId) -> bool:
        """Return whether this run would run the cell."""
        return id in self.cells

    def kept(self, cell: model.Cell, target: model.Target) -> model.Cell:
        """Return the record as this run's results store it; LeftOut says why the cell is
        run again.
        """
        if cell.verdict in (Verdict.NOT_RUN, Verdict.FLAKY):
            raise LeftOut(f"{cell.verdict} then")
        if cell.program != self.programs[cell.clause]:
            raise LeftOut(OF_ANOTHER_PROGRAM)
        self._same_target(cell.clause, target)
        try:
            record = self.judge(cell, target)
        except CannotJudge as error:
            raise LeftOut(str(error)) from error
        if any(seen.get("between") is None for seen in cell.observations):
            raise LeftOut("recorded without the warnings between the steps")
        if record.verdict not in GOOD:
            raise LeftOut(f"{record.verdict} by today's catalogue")
        return replace(record, resumed=cell.resumed or target.run)

    def _same_target(self, clause: str, then: model.Target) -> None:
        now = self.targets[then.target]
        for key in OF_A_TARGET:
            if _as_far_as_counts(key, getattr(then, key)) != _as_far_as_counts(key, now[key]):
                raise LeftOut(f"of another {key}")
        for package in self.requires.get(clause, ()):
            if then.packages.get(package) != now["packages"].get(package):
                raise LeftOut(f"of another {package}")


def today(session: Session, programs: Mapping[str, str]) -> Today:
    """Return what the options of a run select, on its available targets."""
    clauses = session.catalogue.clauses
    had = {one.spec: one.target for one in session.options.targets if one.target is not None}
    cells = (id for section in session.catalogue.sections() for id in session.cells(section))
    requires = {id: one.requires for id, one in clauses.items() if one.requires}
    packages = {name for some in requires.values() for name in some}
    platform = BACKENDS.get(session.options.platform, session.options.platform)
    return Today(
        frozenset(id for id in cells if id.target in had),
        programs,
        {spec: _facts(one, packages) | {"platform": platform} for spec, one in had.items()},
        requires,
        Rejudging(clauses, session.deviations),
    )


def _facts(target: Target, packages: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a target's record, from the metadata of installed packages."""
    try:
        known = facts(target.python, ["jax", "jaxlib", *packages])
    except NoAnswerError as error:
        raise TargetError(
            f"Target {target.spec} no longer runs: {target.python}: {error}. Provision it again."
        ) from error
    versions = dict(known.packages)
    return {
        "jax": versions.pop("jax", None),
        "jaxlib": versions.pop("jaxlib", None),
        "python": known.python,
        "packages": versions,
    }


def _as_far_as_counts(key: str, value: str | None) -> str | None:
    """Return the part of a value that matters: Python 3.11.4 and 3.11.9 are the same to JAX."""
    if key == "python" and value is not None:
        return ".".join(value.split(".")[:2])
    return value
