"""Known issues (causes): list them with the versions that show them, and run their programs."""

from __future__ import annotations

import doctest
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

import conformance.model.records as model
from conformance.catalogue.causes import HANGS, SWITCHED, Cause, Shows
from conformance.catalogue.spelling import did_you_mean
from conformance.commandline.counting import counted
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.topology import Topology
from conformance.store.reading import records
from conformance.store.recorded import target_of
from conformance.worker.jobs import DEADLINE_S, Ended, Job, run_job
from harness.targets.target import Target, describe, provision, worker_environment

HANGS_AFTER_S = 15.0

_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(: |$)")

Place = tuple[str, str]  # implementation, topology


@dataclass(frozen=True, slots=True)
class Shown:
    """One run of a known issue's program: where, what each process did, and what is wrong
    with it.
    """

    cause: str
    jax: str
    implementation: str
    topology: str
    ended: tuple[Ended, ...]
    wrong: str

    def record(self) -> dict[str, Any]:
        """Return the run as JSON."""
        return {
            "cause": self.cause,
            "jax": self.jax,
            "implementation": self.implementation,
            "topology": self.topology,
            "processes": [{"end": one.end, "out": one.out, "err": one.err} for one in self.ended],
            "wrong": self.wrong,
        }


def listed(
    causes: Mapping[str, Cause], named: Mapping[str, Sequence[str]], files: Sequence[Path]
) -> Iterator[str]:
    """Yield a line for each known issue: its sentence, who names it, and where `files` show it."""
    found = seen(files)
    versions = sorted({jax for _, _, jax in found.ran}, key=Version)
    section = ""
    for one in sorted(causes.values(), key=lambda c: (c.section, c.slug)):
        if one.section != section:
            section = one.section
            yield f"{section}:"
        yield f"  {one.slug}: {one.title}"
        yield f"      {one.sentence}"
        yield f"      named by {len(named.get(one.slug, ()))}; {one.kind}; see {one.links[0]}"
        for place in sorted(found.shown.get(one.slug, {})):
            in_these = found.shown[one.slug][place]
            ran = [v for v in versions if (*place, v) in found.ran]
            yield f"      {place[0]} on {place[1]}: {ranges(in_these, ran)}"
        if files and one.slug not in found.shown:
            yield "      no cell of these results shows it"
    yield counted(len(causes), "cause")


@dataclass(slots=True)
class Seen:
    """What results files show: by known issue and place the versions, and all that was run."""

    shown: dict[str, dict[Place, set[str]]]
    ran: set[tuple[str, str, str]]


def seen(files: Sequence[Path]) -> Seen:
    """Collect the cells that name a known issue, or whose clause does and which conform."""
    found = Seen({}, set())
    for file in files:
        targets: dict[str, model.Target] = {}
        by_clause: dict[str, model.Clause] = {}
        for number, record in records(file):
            match record:
                case model.Target():
                    targets[record.target] = record
                case model.Clause():
                    by_clause[record.clause] = record
                case model.Cell():
                    _note(found, record, target_of(record, targets, file, number), by_clause)
    return found


def _note(
    found: Seen, cell: model.Cell, target: model.Target, by_clause: Mapping[str, model.Clause]
) -> None:
    jax = target.jax
    if jax is None or cell.verdict not in (Verdict.CONFORMS, Verdict.KNOWN_DEVIATION):
        return
    place = (cell.implementation, cell.topology)
    found.ran.add((*place, jax))
    if cell.verdict == Verdict.KNOWN_DEVIATION:
        slug = cell.deviation.cause if cell.deviation is not None else ""
    else:
        slug = _changed(by_clause.get(cell.clause), cell.implementation)
    if slug:
        found.shown.setdefault(slug, {}).setdefault(place, set()).add(jax)


def _changed(clause: model.Clause | None, implementation: str) -> str:
    """Return the known issue that a clause names if it expects other behaviour than legacy
    pmap's.
    """
    if clause is None:
        return ""
    expected = clause.expected
    as_legacy = expected.get(implementation) == expected.get(names.LEGACY_PMAP)
    return "" if as_legacy else clause.cause


def ranges(some: set[str], versions: Sequence[str]) -> str:
    """Format `some` of `versions`, as in "0.7.2 to 0.9.0, 0.10.2 (of 7 that were run)".

    Every measured version inside a range is part of it.
    """
    runs: list[list[str]] = []
    for before, version in zip(["", *versions], versions, strict=False):
        if version not in some:
            continue
        if runs and runs[-1][-1] == before:
            runs[-1].append(version)
        else:
            runs.append([version])
    spans = (run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
    return f"{', '.join(spans)} (of {len(versions)} that were run)"


def run(
    causes: Mapping[str, Cause],
    targets: Sequence[str],
    chosen: Sequence[str],
    *,
    everywhere: bool = False,
    extras: Sequence[str] = (),
    say: Callable[[str], None] = print,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Shown]:
    """Run the programs of the known issues that begin with one of `chosen` (all if none) on each
    target.

    Each runs where it declares an effect; `everywhere` also runs it on the other versions, to check
    its bounds. Targets get the packages `extras`; a program that requires others is skipped.
    ValueError if `chosen` matches nothing.
    """
    some = [c for c in causes.values() if not chosen or c.slug.startswith(tuple(chosen))]
    if not some:
        meant = did_you_mean(chosen[0], causes)
        raise ValueError(
            f"no known issue has the name {', '.join(chosen)}, or one that begins with it{meant}"
        )
    done: list[Shown] = []
    for spec in targets:
        target = provision(spec, extras=extras, progress=progress)
        jax = describe(target)["jax"]
        for cause in some:
            missing = [one for one in cause.requires if one not in target.packages]
            if missing:
                asked = " ".join(f"--extra {one}" for one in missing)
                say(f"not run {cause.slug}, jax {jax}: it requires {', '.join(missing)}: {asked}")
                continue
            for implementation, topology, shows in _places(cause, jax, everywhere):
                one = _shown(cause, target, jax, implementation, topology, shows)
                done.append(one)
                say(line(one, shows))
    return done


def _places(cause: Cause, jax: str, everywhere: bool) -> Iterator[tuple[str, str, Shows | None]]:
    places = dict.fromkeys(
        (name, topology)
        for shows in cause.shows
        for name in shows.implementation
        for topology in shows.topology
    )
    for name, topology in places:
        shows = next((s for s in cause.shows if s.here(name, jax, topology)), None)
        if shows is not None or (everywhere and _exists(name, jax)):
            yield name, topology, shows


def _exists(implementation: str, jax: str) -> bool:
    """Return whether this JAX has the implementation: without its switch a program runs new
    pmap.
    """
    return implementation != names.LEGACY_PMAP or Version(jax) < Version("0.10")


def _shown(
    cause: Cause, target: Target, jax: str, implementation: str, topology: str, shows: Shows | None
) -> Shown:
    program = Path(__file__).parents[2] / cause.file
    environment = worker_environment(target, os.environ) | SWITCHED.get(implementation, {})
    environment.pop("PYTHONPATH")  # the program is plain: it finds nothing of this project
    hangs = shows is not None and shows.ends == HANGS
    where = Topology.parse(topology)
    job = Job(
        str(program),
        where.processes,
        where.devices_per_process,
        environment,
        HANGS_AFTER_S if hangs else DEADLINE_S,
    )
    ended = run_job(job, target.python)
    return Shown(
        cause.slug,
        jax,
        implementation,
        topology,
        tuple(ended),
        wrong(shows, ended) if shows else still_shown(cause, implementation, topology, ended),
    )


def still_shown(cause: Cause, implementation: str, topology: str, ended: Sequence[Ended]) -> str:
    """Return the errors of causes whose program shows their behaviour where they do not claim
    it.
    """
    for shows in cause.shows:
        same = implementation in shows.implementation and topology in shows.topology
        if same and not wrong(shows, ended):
            return f"shows what is said of jax {shows.jax} alone"
    return ""


def wrong(shows: Shows, ended: Sequence[Ended]) -> str:
    """Return what differs from what the known issue declares; empty if nothing does."""
    for number, one in enumerate(ended):
        if shows.process not in (None, number):
            continue
        process = f"process {number}: " if len(ended) > 1 else ""
        end = shows.ends or ("exit 1" if shows.raises else "exit 0")
        if one.end != end:
            return f"{process}ended with {one.end} in place of {end}: {last(one.err)}"
        if shows.raises and not _alike(shows.raises, last(one.err)):
            return f"{process}raised {last(one.err)!r} in place of {shows.raises!r}"
        if shows.prints and not _alike(shows.prints, one.out):
            return f"{process}printed {one.out.strip()!r} in place of {shows.prints.strip()!r}"
    return ""


def last(err: str) -> str:
    """Return the first line of a traceback's last exception, or else the last line."""
    lines = [one for one in err.splitlines() if one.strip()]
    for number in range(len(lines) - 1, 0, -1):
        if lines[number - 1].startswith("  ") and _EXCEPTION.match(lines[number]):
            return lines[number]
    return lines[-1] if lines else ""


def _alike(expected: str, got: str) -> bool:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected.strip(), got.strip(), flags)


def line(shown: Shown, shows: Shows | None) -> str:
    """Format what a run showed, in one line."""
    where = f"{shown.cause} under {shown.implementation} on {shown.topology}, jax {shown.jax}"
    if shown.wrong:
        return f"WRONG {where}: {shown.wrong}"
    outcome = "; ".join(
        dict.fromkeys(
            f"{process.end}, {' | '.join((process.out.strip() or last(process.err)).splitlines())}"
            for process in shown.ended
        )
    )
    return f"{'shown' if shows else 'says nothing here'} {where}: {outcome[:300]}"
