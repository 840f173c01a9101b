"""Results of other platforms than that of the other pages, each beside the result there."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from conformance.model.records import Clause, Target, TargetKey
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.changes import cause_of
from reports.analysis.effects.pairs import Effects
from reports.render.site.marks import Mark, mark_of
from reports.render.site.names import clause_path, section_words
from reports.render.site.page import Page
from reports.store.order import implementation_order
from reports.store.outcomes import RAN, CellKey, Outcome
from reports.store.results import Results

PAGE = "platforms.html"
TITLE = "GPU and TPU results"
ACCELERATORS = ("cuda", "tpu")
SEVERAL = "multi_controller"  # the section about several processes


@dataclass(frozen=True, slots=True)
class Result:
    """A cell of another platform, and the cells of the same JAX on the platform of the site."""

    key: CellKey
    clause: Clause
    silent: bool  # no document speaks of it: the mark is about legacy pmap
    outcome: Outcome
    others: tuple[Outcome, ...]

    @property
    def mark(self) -> Mark:
        """Whether what is expected was seen."""
        return mark_of(self.outcome.verdict)

    @property
    def other(self) -> Mark:
        """The same on the platform of the site: of several topologies, one that is alike."""
        if self.alike:
            return self.mark
        return mark_of(self.others[0].verdict) if self.others else Mark.NOT_RUN

    @property
    def alike(self) -> bool:
        """Return whether a cell of the site's platform ended as this one, for the same reason."""
        here = (self.outcome.verdict, cause_of(self.outcome))
        return any((one.verdict, cause_of(one)) == here for one in self.others)

    @property
    def href(self) -> str:
        """The address of the test's page."""
        return clause_path(self.key.clause)


@dataclass(frozen=True, slots=True)
class Row:
    """The results of a test under those implementations that ended alike on both platforms."""

    first: Result
    implementations: tuple[str, ...]


def rows(results: Iterable[Result]) -> tuple[Row, ...]:
    """Return the rows of a table of results, in their order."""
    found: dict[tuple[str, Mark, Mark, bool], list[Result]] = {}
    for one in results:
        found.setdefault((one.key.clause, one.mark, one.other, one.alike), []).append(one)
    return tuple(
        Row(some[0], tuple(dict.fromkeys(one.key.implementation for one in some)))
        for some in found.values()
    )


@dataclass(frozen=True, slots=True)
class Section:
    """The results of a section: of tests about its subject, whatever they ran on."""

    name: str
    results: tuple[Result, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of its table."""
        return rows(self.results)

    @property
    def title(self) -> str:
        """The section in words."""
        return section_words(self.name)

    @property
    def note(self) -> str:
        """What its title leaves open: how tests about several processes ran in one."""
        in_one = all(one.key.topology.startswith("1x") for one in self.results)
        return " of tests that run in one process too" if self.name == SEVERAL and in_one else ""


@dataclass(frozen=True, slots=True)
class PlatformView:
    """What was run on one target of another platform."""

    target: Target
    devices: str  # as JAX names them, of any run that recorded it
    topologies: tuple[str, ...]
    results: tuple[Result, ...]
    left_out: int  # tests without a result

    @property
    def tests(self) -> int:
        """How many tests have a result."""
        return len({one.key.clause for one in self.results})

    @property
    def conforming(self) -> int:
        """How many results are as expected."""
        return sum(one.outcome.verdict is Verdict.CONFORMS for one in self.results)

    @property
    def known(self) -> int:
        """How many results are not as expected, for a known issue."""
        return sum(one.outcome.verdict is Verdict.KNOWN_DEVIATION for one in self.results)

    @property
    def alike(self) -> int:
        """How many results are those of the site's platform."""
        return sum(one.alike for one in self.results)

    @property
    def different(self) -> tuple[Result, ...]:
        """The results that the site's platform does not have."""
        return tuple(one for one in self.results if one.others and not one.alike)

    @property
    def different_rows(self) -> tuple[Row, ...]:
        """The rows of their table."""
        return rows(self.different)

    @property
    def alone(self) -> int:
        """How many results have none of the site's platform beside them."""
        return sum(not one.others for one in self.results)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The results by section."""
        by_section = groupby(self.results, key=lambda one: one.clause.section)
        return tuple(Section(name, tuple(some)) for name, some in by_section)


@dataclass(frozen=True, slots=True)
class PlatformsPage:
    """All other platforms, and the name of the site's."""

    main: str
    names: str  # the other platforms, in words
    platforms: tuple[PlatformView, ...]
    missing: str  # the accelerators without a result, in words


def pages(effects: Effects) -> Iterator[Page]:
    """Yield the page, where there is more than one platform."""
    if there(effects.every):
        yield Page(
            PAGE,
            "platforms",
            platforms_page(effects),
            TITLE,
            "The tests that ran on another platform, beside their results on "
            f"{effects.every.platforms[0].upper()}.",
        )


def without_results(platforms: Collection[str]) -> list[str]:
    """Return the accelerators that none of these platforms is."""
    return [name for name in ACCELERATORS if not any(one.startswith(name) for one in platforms)]


def words(platforms: Iterable[str]) -> str:
    """Return platforms in words."""
    return " and ".join(one.upper() for one in platforms)


def there(results: Results) -> bool:
    """Return whether results are of more than one platform."""
    return len(results.platforms) > 1


def elsewhere(results: Results) -> str:
    """Return on which other platforms and versions tests ran, and whether with one device only;
    empty if none did.
    """
    others = results.platforms[1:]
    if not others:
        return ""
    some = [one.jax or "?" for one in results.targets if one.platform in others]
    one = ", with one device only" if on_one_device(results, others) else ""
    return f"On {words(others)}, few tests ran (JAX {' and '.join(dict.fromkeys(some))}){one}"


def on_one_device(results: Results, platforms: Collection[str]) -> bool:
    """Return whether every test that ran on any of these platforms had one device."""
    there = {target.key for target in results.targets if target.platform in platforms}
    return {key.topology for key, _ in _ran(results, there)} == {"1x1"}


def _ran(results: Results, targets: Container[TargetKey]) -> Iterator[tuple[CellKey, Outcome]]:
    """Yield the cells that ran on these targets."""
    for key, outcome in results.outcomes.items():
        if key.target in targets and outcome.verdict in RAN:
            yield key, outcome


def platforms_page(effects: Effects) -> PlatformsPage:
    """Return the results of each platform but the first, beside those of the first."""
    results = effects.every
    main, *others = results.platforms
    beside = _by_place(effects.results)
    targets = [t for t in results.targets if t.platform in others]
    return PlatformsPage(
        main,
        words(others),
        tuple(_view(results, target, beside) for target in targets),
        words(without_results(results.platforms)),
    )


Place = tuple[str, str | None, str, bool]


def _place(key: CellKey) -> Place:
    """Return what cells of two platforms share: the number of devices is each machine's own."""
    return key.clause, key.target.jax, key.implementation, key.topology.startswith("1x")


def _by_place(results: Results) -> dict[Place, list[Outcome]]:
    found: dict[Place, list[Outcome]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict in RAN:
            found.setdefault(_place(key), []).append(outcome)
    return found


def _view(results: Results, target: Target, beside: dict[Place, list[Outcome]]) -> PlatformView:
    ran = list(_ran(results, {target.key}))
    found = [_result(results, key, outcome, beside.get(_place(key), ())) for key, outcome in ran]
    return PlatformView(
        target,
        next((one.device_kind for one in results.environments if _names_devices(one, target)), ""),
        _topologies(results, (key for key, _ in ran)),
        tuple(sorted(found, key=_order)),
        len(results.clauses) - len({key.clause for key, _ in ran}),
    )


def _result(results: Results, key: CellKey, outcome: Outcome, others: Sequence[Outcome]) -> Result:
    clause = results.clauses[key.clause]
    claim = results.claims.get(clause.claim)
    return Result(key, clause, claim is not None and claim.silent, outcome, tuple(others))


def _names_devices(environment: Target, target: Target) -> bool:
    return environment.key == target.key and bool(environment.device_kind)


def _topologies(results: Results, keys: Iterable[CellKey]) -> tuple[str, ...]:
    ran = {key.topology for key in keys}
    return tuple(one for one in results.topologies if one in ran)


def _order(one: Result) -> tuple[str, str, tuple[int, str], str]:
    return (
        one.clause.section,
        one.key.clause,
        implementation_order(one.key.implementation),
        one.key.topology,
    )
