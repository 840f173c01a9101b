"""What these results are of: the builds of JAX, the machine, and the files to take away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.model.records import Target, TargetKey
from conformance.model.verdicts import Verdict
from reports.analysis.effects.pairs import Effects
from reports.render.site.downloads import MATRIX, SUMMARY
from reports.render.site.feed import PAGE as FEED
from reports.render.site.names import safe_name
from reports.render.site.page import Page
from reports.store.outcomes import CellKey
from reports.store.releases import released
from reports.store.results import Results

PAGE = "targets.html"
HEADS = (
    "Released",
    "jaxlib",
    "NumPy",
    "Python",
    "Platform",
    "Devices",
    "Machine",
    "Cores",
    "Memory",
)
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
        """Return the cells of the table's row, in the order of its heads."""
        one = self.target
        day = released().get(one.jax or "")
        return (
            day.isoformat() if day else "not in our table",
            *(value or NOT_RECORDED for value in (one.jaxlib, one.numpy, one.python, one.platform)),
            one.device_kind or NOT_RECORDED,
            one.machine or NOT_RECORDED,
            str(one.cores) if one.cores else NOT_RECORDED,
            f"{one.memory / _GIB:.0f} GiB" if one.memory else NOT_RECORDED,
        )


@dataclass(frozen=True, slots=True)
class RunView:
    """A run, when it began, and how many of the shown cells of one environment are of it."""

    anchor: str
    run: str
    began: str
    cells: int


@dataclass(frozen=True, slots=True)
class EnvironmentView:
    """What was installed for one JAX, and the runs that had it."""

    target: Target
    label: str
    packages: str
    runs: tuple[RunView, ...]

    @property
    def cells(self) -> int:
        """How many of the shown cells are of its runs."""
        return sum(one.cells for one in self.runs)


@dataclass(frozen=True, slots=True)
class Download:
    """A file beside the pages, and what is in it."""

    href: str
    says: str


@dataclass(frozen=True, slots=True)
class TargetsPage:
    """All targets, the files, and what was noted while the results were read."""

    targets: tuple[TargetView, ...]
    environments: tuple[EnvironmentView, ...]
    heads: tuple[str, ...]
    topologies: tuple[str, ...]
    implementations: tuple[str, ...]
    machines: tuple[str, ...]
    downloads: tuple[Download, ...]
    notes: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]


def pages(effects: Effects) -> Iterator[Page]:
    """The page of targets, in every site."""
    results = effects.every
    yield Page(
        PAGE,
        "targets",
        _view(results),
        "Download",
        "The results as files, and the environments that they were measured in.",
    )


def _view(results: Results) -> TargetsPage:
    cells = _cells(results)
    return TargetsPage(
        targets=tuple(
            TargetView(
                one,
                results.labels[one.key],
                _packages(one),
                cells.get(one.key, 0),
            )
            for one in results.targets
        ),
        environments=_environments(results),
        heads=HEADS,
        topologies=results.topologies,
        implementations=results.implementations,
        machines=tuple(dict.fromkeys(t.machine for t in results.targets if t.machine)),
        downloads=(
            Download(MATRIX, "Every result: test, implementation, JAX, topology, verdict, reason"),
            Download(SUMMARY, "Counts of cells and facts by verdict, targets, claims and clauses"),
            Download(FEED, "A feed (Atom): what became worse in each version of JAX"),
        ),
        notes=results.notes,
        counts=(
            ("documented claims", len(results.claims)),
            ("tests", len(results.clauses)),
            ("known issues", len(results.causes)),
            ("results", sum(cells.values())),
        ),
    )


def run_anchor(run: str) -> str:
    """Return where a run stands on the page."""
    return safe_name(f"run-{run}")


def _environments(results: Results) -> tuple[EnvironmentView, ...]:
    """Return the environments; in each JAX, those of the runs with most shown cells come first."""
    counted: Counter[tuple[TargetKey, str]] = Counter()
    for key, outcome in results.outcomes.items():
        if outcome.runs and outcome.verdict not in _SILENT:
            last = outcome.runs[-1]
            counted[key.target, last.cell.resumed or last.run] += 1
    order = {one.key: place for place, one in enumerate(results.targets)}
    some = [one for one in results.environments if one.key in order]
    some.sort(key=lambda one: (order[one.key], -counted[one.key, one.run], one.run))
    alike: dict[tuple[object, ...], list[Target]] = {}
    for one in some:
        installed = one.jaxlib, one.numpy, one.python, _packages(one), one.compiling
        alike.setdefault((one.key, *installed), []).append(one)
    seen: set[str] = set()
    found = []
    for targets in alike.values():
        runs = []
        for one in targets:
            anchor = "" if one.run in seen else run_anchor(one.run)
            seen.add(one.run)
            began = one.started[:16].replace("T", " ")
            runs.append(RunView(anchor, one.run, began, counted[one.key, one.run]))
        first = targets[0]
        found.append(
            EnvironmentView(first, results.labels[first.key], _packages(first), tuple(runs))
        )
    return tuple(found)


def _packages(target: Target) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(target.packages.items()))


def _cells(results: Results) -> dict[TargetKey, int]:
    found: dict[TargetKey, int] = {}
    key: CellKey
    for key, outcome in results.outcomes.items():
        if outcome.verdict not in _SILENT:
            found[key.target] = found.get(key.target, 0) + 1
    return found
