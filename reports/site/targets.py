"""What these results are of: the builds of JAX, the machine, and the files to take away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.effects.pairs import Effects
from reports.reading.outcomes import CellKey
from reports.reading.records import Target, TargetKey
from reports.reading.releases import released
from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site.downloads import MATRIX, SUMMARY
from reports.site.feed import PAGE as FEED
from reports.site.page import Page

PAGE = "targets.html"
HEADS = ("Released", "jaxlib", "NumPy", "Python", "Platform", "Machine", "Cores", "Memory")
NOT_RECORDED = "not recorded"
_GIB = 2**30
_SILENT = (Verdict.NOT_RUN, Verdict.REMOVED, Verdict.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class TargetView:
    """One build, and how many cells were run on it."""

    target: Target
    label: str
    packages: str
    cells: int

    @property
    def rows(self) -> tuple[str, ...]:
        """What is told of it, in the order of the table's heads."""
        one = self.target
        day = released().get(one.jax or "")
        return (
            day.isoformat() if day else "not in our table",
            *(value or NOT_RECORDED for value in (one.jaxlib, one.numpy, one.python, one.platform)),
            one.machine or NOT_RECORDED,
            str(one.cores) if one.cores else NOT_RECORDED,
            f"{one.memory / _GIB:.0f} GiB" if one.memory else NOT_RECORDED,
        )


@dataclass(frozen=True, slots=True)
class Download:
    """A file beside the pages, and what is in it."""

    href: str
    says: str


@dataclass(frozen=True, slots=True)
class TargetsPage:
    """All targets, the files, and what was noted while the results were read."""

    targets: tuple[TargetView, ...]
    heads: tuple[str, ...]
    topologies: tuple[str, ...]
    implementations: tuple[str, ...]
    machines: tuple[str, ...]
    downloads: tuple[Download, ...]
    notes: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]


def pages(effects: Effects) -> Iterator[Page]:
    """The page of targets, in every site."""
    results = effects.results
    yield Page(
        PAGE,
        "targets",
        _view(results),
        "Data and targets",
        "The versions of JAX and the machine that these results are of, and the results as files.",
    )


def _view(results: Results) -> TargetsPage:
    cells = _cells(results)
    return TargetsPage(
        targets=tuple(
            TargetView(
                one,
                results.labels[one.key],
                ", ".join(f"{name} {version}" for name, version in sorted(one.packages.items())),
                cells.get(one.key, 0),
            )
            for one in results.targets
        ),
        heads=HEADS,
        topologies=results.topologies,
        implementations=results.implementations,
        machines=tuple(dict.fromkeys(t.machine for t in results.targets if t.machine)),
        downloads=(
            Download(MATRIX, "Every cell: clause, implementation, JAX, topology, verdict, reason"),
            Download(SUMMARY, "Counts of cells and facts by verdict, targets, claims and clauses"),
            Download(FEED, "A feed (Atom): what became worse in each version of JAX"),
        ),
        notes=results.notes,
        counts=(
            ("statements", len(results.claims)),
            ("programs", len(results.clauses)),
            ("causes", len(results.causes)),
            ("cells run", sum(cells.values())),
        ),
    )


def _cells(results: Results) -> dict[TargetKey, int]:
    found: dict[TargetKey, int] = {}
    key: CellKey
    for key, outcome in results.outcomes.items():
        if outcome.verdict not in _SILENT:
            found[key.target] = found.get(key.target, 0) + 1
    return found
