"""`bisect`: find the release of JAX in which the behaviour of a function or a clause changes."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from conformance.catalogue.spelling import did_you_mean
from conformance.spec.topology import Topology
from harness.commandline import function_options, options, terminal
from harness.commandline.command import DONE, FOUND, Action, UsageError, report_progress
from harness.commandline.compare import load_issues

if TYPE_CHECKING:
    from harness.targets.target import Target
    from harness.usercode.bisecting import Bisected
    from harness.usercode.observing import Call, Observed, Observer, Place
    from reports.analysis.usercode.compared import Compared

TOPOLOGY = "1x8"
IMPLEMENTATION = "new_pmap"
FROM = "0.7.2"
EXAMPLE = f"""examples:
  pmap-conformance bisect model.py:body --args 'f32[n,4]' --from 0.8.0 --to 0.12.0.1
  pmap-conformance bisect --clause rank.argmax.no-axis.1d --implementation new_pmap

Of n releases it runs the first, the last, and log2(n) in between, each in a fresh cluster.
{function_options.RIGHTS}"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{EXAMPLE}\n\n{parser.epilog}"
    parser.add_argument(
        "function", metavar="FUNCTION", nargs="?", help="module:function or file.py:function"
    )
    parser.add_argument("--clause", metavar="ID", help="a clause of the catalogue, in its place")
    function_options.add_function(parser)
    parser.add_argument(
        "--implementation",
        default=None,
        metavar="NAME",
        help=f"legacy_pmap, new_pmap, shard_map; with --mapped also own (default: {IMPLEMENTATION},"
        " and own with --mapped)",
    )
    parser.add_argument("--topology", default=TOPOLOGY, metavar="NxD", help="default: %(default)s")
    parser.add_argument(
        "--from", dest="first", default=FROM, metavar="JAX", help="default: %(default)s"
    )
    parser.add_argument(
        "--to", dest="last", default="newest", metavar="JAX", help="default: %(default)s"
    )
    parser.add_argument(
        "--field",
        action="append",
        default=[],
        metavar="NAME",
        help="look at this field alone, as `compare` names it: values, outcome, 'sharding type'; "
        "repeatable (default: all)",
    )
    parser.add_argument(
        "--nightly",
        action="store_true",
        help="go on over JAX's nightly wheels between the two releases, of the index that "
        "PMAP_CONFORMANCE_NIGHTLY_INDEX names (default: JAX's own)",
    )
    options.add_extras(parser)
    options.add_format(parser, options.TEXT, options.JSON, options.MARKDOWN)


def _run(chosen: argparse.Namespace) -> int:
    topology = Topology.parse(chosen.topology)
    chosen.field = _checked_fields(chosen.field)
    run, catalogue, implementation = _subject(chosen, topology)
    from harness.targets.target import list_releases, parse_spec, resolve_newest
    from harness.usercode.bisecting import bisect
    from harness.usercode.observing import Place, observer

    last = parse_spec(chosen.last)
    if last.kind == "newest":
        last = parse_spec(resolve_newest(extras=chosen.extra))
    report_progress("asking the package index for the releases of JAX")
    releases: list[str] = list_releases(parse_spec(chosen.first), last)
    steps = math.ceil(math.log2(max(1, len(releases) - 1)))
    report_progress(f"{len(releases)} releases: at most {2 + steps} are run")
    with observer(catalogue, report_progress) as runs:

        @functools.cache
        def observe(release: str) -> Observed:
            target = _provision(release, chosen.extra)
            return run(runs, Place(implementation, target, topology))

        found = bisect(releases, observe, _same(chosen.field), report_progress)
        if chosen.nightly and found.changed is not None:
            found, releases = _by_night(found, releases, observe, _same(chosen.field))
    return _report(found, releases, chosen)


def _by_night(
    found: Bisected[Observed],
    releases: Sequence[str],
    observe: Callable[[str], Observed],
    same: Callable[[Observed, Observed], bool],
) -> tuple[Bisected[Observed], list[str]]:
    """Return the night in which it changes, and all versions that were looked at, in order."""
    from harness.targets.target import list_nights
    from harness.usercode.bisecting import bisect

    first, last = found.last_same, found.changed
    assert last is not None
    report_progress(
        f"changed in jax {last}, after {first}: asking the index for nightly wheels in between"
    )
    nights = list_nights(first, last)
    if not nights:
        report_progress(f"the index has no nightly wheels between jax {first} and {last}")
        return found, list(releases)
    at = releases.index(last)
    nearer = bisect([first, *nights, last], observe, same, report_progress)
    observed = found.observed | nearer.observed
    return dataclasses.replace(nearer, observed=observed), [
        *releases[:at],
        *nights,
        *releases[at:],
    ]


def _subject(
    chosen: argparse.Namespace, topology: Topology
) -> tuple[Callable[[Observer, Place], Observed], tuple[str, ...], str]:
    """Return what is run at a place, the modules that have its clause, and the implementation."""
    if (chosen.function is None) == (chosen.clause is None):
        raise UsageError("name a function, module:function or file.py:function, or a --clause")
    if chosen.clause is not None:
        return _clause(chosen)
    from harness.usercode.observing import CATALOGUE, OWN

    name = chosen.implementation or (OWN if chosen.mapped else IMPLEMENTATION)
    function_options.check_implementations([name], chosen.mapped)
    call: Call = function_options.parse_call(chosen)
    function_options.check_arguments(call, topology)
    return (lambda runs, place: runs.call(call, place)), (CATALOGUE,), name


def _clause(
    chosen: argparse.Namespace,
) -> tuple[Callable[[Observer, Place], Observed], tuple[str, ...], str]:
    for option in ("args", "inputs", "in_axes", "out_axes", "axis_name", "donate"):
        if getattr(chosen, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')}: a clause has its own arguments")
    from conformance.catalogue.loading import load
    from conformance.spec.names import JAX

    clauses = load().clauses
    one = clauses.get(chosen.clause)
    if one is None:
        meant = did_you_mean(chosen.clause, clauses) or "; `list clauses` lists them"
        raise UsageError(f"no clause is called {chosen.clause}{meant}")
    name = chosen.implementation or (JAX if JAX in one.expect else IMPLEMENTATION)
    if name not in one.expect:
        raise UsageError(f"--implementation {name}: {one.id} is asked of {', '.join(one.expect)}")
    deadline_s = one.deadline_s or chosen.deadline

    def run(runs: Observer, place: Place) -> Observed:
        return runs.observe(one.id, one.parameters, deadline_s, place)

    return run, (one.probe.__module__,), name


def _checked_fields(names: Sequence[str]) -> list[str]:
    """Return the fields of names as `compare` shows them; UsageError if there is none."""
    from reports.analysis.comparing.fields import FIELDS
    from reports.analysis.usercode.costs import COSTS
    from reports.render.text.difference_words import NAMES, internal

    known = [*(NAMES.get(one, one) for one in FIELDS), *COSTS]
    for one in names:
        if one not in known and one not in FIELDS:
            meant = did_you_mean(one, known) or f"; there are {', '.join(known)}"
            raise UsageError(f"--field {one}: no field has this name{meant}")
    return list(map(internal, names))


def _provision(release: str, extras: Sequence[str]) -> Target:
    """Return a release's target; Unobservable if it is not available."""
    from harness.targets.target import TargetError, provision
    from harness.usercode.bisecting import Unobservable

    try:
        return provision(f"jax=={release}", extras=extras, progress=report_progress)
    except TargetError as error:
        raise Unobservable(" ".join(str(error).split())) from error


def _same(fields: Sequence[str]) -> Callable[[Observed, Observed], bool]:
    """Return a comparison of two observations in the selected fields."""

    def same(one: Observed, other: Observed) -> bool:
        if one.missing or other.missing:
            return bool(one.missing) == bool(other.missing)
        return not _differences(_compared(one, other, fields))

    return same


def _compared(one: Observed, other: Observed, fields: Sequence[str]) -> Compared:
    from reports.analysis.usercode.compared import compare

    found = compare(one.record(), other.record())
    some = tuple(d for d in found.found if not fields or d.field in fields)
    return dataclasses.replace(found, found=some)


def _differences(compared: Compared) -> bool:
    return bool(compared.missing) or compared.differs


def _report(found: Bisected[Observed], releases: Sequence[str], chosen: argparse.Namespace) -> int:
    from reports.analysis.comparing.entries import load_entries
    from reports.analysis.usercode.explained import explain, named_issues
    from reports.analysis.usercode.runs import failure_of
    from reports.render.text import compared as compared_text

    first, last = found.observed[found.last_same], found.observed[found.changed or releases[-1]]
    for one in (first, last):
        if not one.missing and (failed := failure_of(one.record())):
            raise UsageError(
                f"{chosen.function} could not be called on jax {one.jax}: {failed}; name a "
                "function that can be imported here, and arguments that it accepts"
            )
    issues = load_issues()
    compared = explain(_compared(first, last, chosen.field), load_entries(), issues)
    record: dict[str, Any] = {
        "from": releases[0],
        "to": releases[-1],
        "releases": len(releases),
        "run": [one for one in releases if one in found.observed],
        "left_out": found.skipped,
        "last_same": found.last_same,
        "changed_in": found.changed,
        "compared": compared.record() if found.changed else None,
        "known_issues": named_issues([compared] if found.changed else [], issues),
    }
    title = _title(found, releases)
    if chosen.format == options.JSON:
        print(json.dumps(record, indent=2))
    elif chosen.format == options.MARKDOWN:
        body = compared_text.markdown(first.record(), [compared], issues)
        print(f"{title}\n\n{body}" if found.changed else title)
    else:
        body_lines = compared_text.lines(first.record(), [compared], issues)
        terminal.write([title, *(["", *body_lines] if found.changed else [])])
    return FOUND if found.changed else DONE


def _title(found: Bisected[Observed], releases: Sequence[str]) -> str:
    runs = f"{len(found.observed)} of {len(releases)} releases were run"
    if found.changed is None:
        return f"no change from jax {releases[0]} to {releases[-1]} ({runs})"
    left = f"; left out between: {', '.join(found.skipped)}" if found.skipped else ""
    last = f"jax {found.last_same} is the last release without the change"
    return f"changed in jax {found.changed}: {last} ({runs}{left})"


ACTIONS = {"bisect": Action(_add, _run)}
