"""`compare`: a user's function under legacy pmap, new pmap and shard_map, on several JAX
versions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from conformance.commandline.limits import whole
from conformance.spec.topology import Topology
from conformance.store.outputs import write_text
from harness.commandline import function_options, options, terminal
from harness.commandline.command import DONE, FAILED, FOUND, Action, UsageError, report_progress

if TYPE_CHECKING:
    from harness.targets.target import Target
    from harness.usercode.observing import Call, Observer
    from reports.analysis.usercode.compared import Compared
    from reports.analysis.usercode.explained import Issue

TARGETS = ("jax==0.9.0", "newest")  # the last with all implementations, and the newest
TOPOLOGY = "1x8"
TIMED_CALLS = 20
MOST_TIMED_CALLS = 1000
HTML = "html"  # one file, in the style of the site
ANY, UNEXPLAINED = "any", "unexplained"
EXAMPLE = f"""examples:
  pmap-conformance compare model.py:body --args 'f32[n,128] f32[128,64]' --in-axes 0,None
  pmap-conformance compare train:step --mapped --inputs train:make --target 0.9.0 --target 0.12.0.1
  pmap-conformance compare old.py:train --mapped --against new.py:train --topology 2x2

Each run calls the function three times in a fresh cluster, from the same inputs; what it
returns is compared with the baseline field by field, and then used: + 1, [0], np.asarray.
{function_options.RIGHTS}"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{EXAMPLE}\n\n{parser.epilog}"
    parser.add_argument("function", metavar="FUNCTION", help="module:function or file.py:function")
    function_options.add_function(parser)
    parser.add_argument(
        "--against",
        metavar="FUNCTION",
        help="with --mapped: another function that maps by itself, run as it is on each target",
    )
    parser.add_argument(
        "--against-inputs", metavar="FUNCTION", help="what makes its arguments, as --inputs"
    )
    options.add_targets(parser, " and ".join(TARGETS))
    options.add_extras(parser)
    parser.add_argument(
        "--implementation",
        action="append",
        default=[],
        metavar="NAME",
        help="legacy_pmap, new_pmap, shard_map; with --mapped also own, which is JAX's default; "
        "repeatable (default: all that apply)",
    )
    parser.add_argument(
        "--topology",
        action="append",
        metavar="NxD",
        help=f"processes x devices of each, repeatable (default: {TOPOLOGY})",
    )
    parser.add_argument(
        "--baseline",
        metavar=options.SIDE,
        help="what the others are compared with (default: the first that runs)",
    )
    parser.add_argument(
        "--timed-calls",
        type=whole(0, MOST_TIMED_CALLS),
        default=TIMED_CALLS,
        metavar="N",
        help="further calls whose time is compared (default: %(default)s)",
    )
    parser.add_argument(
        "--fail-on",
        choices=(ANY, UNEXPLAINED, options.NONE),
        default=ANY,
        help="exit 1 where any difference is found, or one that no known issue and no document "
        "explains (default: %(default)s)",
    )
    options.add_format(parser, options.TEXT, options.JSON, options.MARKDOWN, HTML)
    options.add_output(parser, "write the report there (default: standard output)")


def _run(chosen: argparse.Namespace) -> int:
    call = function_options.parse_call(chosen, chosen.timed_calls)
    names = function_options.check_implementations(chosen.implementation, chosen.mapped)
    against = _against(chosen, call)
    baseline = options.parse_side(chosen.baseline, "--baseline") if chosen.baseline else None
    topologies = [Topology.parse(one) for one in dict.fromkeys(chosen.topology or [TOPOLOGY])]
    for one in topologies:
        function_options.check_arguments(call, one)
    from harness.targets.target import parse_spec, provision
    from harness.usercode.observing import CATALOGUE, observer

    specs = list(dict.fromkeys(str(parse_spec(one)) for one in chosen.target or TARGETS))
    if baseline is not None:
        _check_side(baseline, names, specs)
    targets = [provision(one, extras=chosen.extra, progress=report_progress) for one in specs]
    with observer((CATALOGUE,), report_progress) as runs:
        seen = [
            _observed(runs, call, against, chosen, names, targets, topology)
            for topology in topologies
        ]
    return _report(seen, baseline, chosen)


def _check_side(side: tuple[str, str], names: Sequence[str], specs: Sequence[str]) -> None:
    """Raise UsageError if a side is certainly none of those that will run."""
    versions = [one.partition("+")[0].removeprefix("jax==") for one in specs]
    pinned = all(one.startswith("jax==") for one in specs)
    if side[0] not in names or (pinned and side[1] not in versions):
        there = ", ".join(f"{name}@{jax}" for name in names for jax in versions)
        raise UsageError(f"--baseline {'@'.join(side)}: this side is not run; name one of {there}")


def _against(chosen: argparse.Namespace, call: Call) -> Call | None:
    """Return how the other function is called; None if there is none."""
    import dataclasses

    if chosen.against is None:
        if chosen.against_inputs:
            raise UsageError(
                "--against-inputs makes inputs for the other function: name that with --against"
            )
        return None
    if not chosen.mapped:
        raise UsageError("--against: both functions map by themselves: add --mapped")
    made = chosen.against_inputs
    return dataclasses.replace(
        call,
        function=function_options.find_function(chosen.against),
        inputs=function_options.find_function(made) if made else call.inputs,
        arguments=() if made else call.arguments,
    )


def _observed(
    runs: Observer,
    call: Call,
    against: Call | None,
    chosen: argparse.Namespace,
    names: Sequence[str],
    targets: Sequence[Target],
    topology: Topology,
) -> list[dict[str, Any]]:
    """Return every run on a topology; UsageError if the first function could not be called."""
    from harness.usercode.observing import OWN, Place
    from reports.analysis.usercode.runs import failure_of

    label = chosen.function if against else ""
    jobs = [(call, name, target, label) for target in targets for name in names]
    if against is not None:
        jobs += [(against, OWN, target, chosen.against) for target in targets]
    found: list[dict[str, Any]] = []
    for one, name, target, label in jobs:
        seen = runs.call(one, Place(name, target, topology), label).record()
        if not any(run["observations"] for run in found) and (failed := failure_of(seen)):
            raise UsageError(
                f"{chosen.function} could not be called on jax {seen['jax']}: {failed}; name a "
                "function that can be imported here, and arguments that it accepts"
            )
        found.append(seen)
    return found


def _report(
    seen: Sequence[Sequence[Mapping[str, Any]]],
    side: tuple[str, str] | None,
    chosen: argparse.Namespace,
) -> int:
    """Print the comparisons of each topology; return the exit status."""
    from reports.analysis.comparing.entries import load_entries
    from reports.analysis.usercode.compared import compare
    from reports.analysis.usercode.explained import explain, named_issues
    from reports.render import compared_page
    from reports.render.text import compared as compared_text

    issues, entries = load_issues(), load_entries()
    records: list[dict[str, Any]] = []
    texts: list[str] = []
    pages: list[str] = []
    parts: list[compared_page.Part] = []
    statuses: list[int] = []
    for runs in seen:
        baseline = _baseline(runs, side)
        others = [compare(baseline, one) for one in runs if one is not baseline]
        found = [explain(one, entries, issues) for one in others]
        statuses.append(_status(baseline, found, chosen.fail_on))
        records.append(
            {"baseline": dict(baseline), "runs": [dict(one.run) for one in found]}
            | {"compared": [one.record() for one in found]}
            | {"known_issues": named_issues(found, issues)}
        )
        texts += [*([""] if texts else []), *compared_text.lines(baseline, found, issues)]
        pages.append(compared_text.markdown(baseline, found, issues))
        parts.append(compared_page.part_of(baseline, found, issues))
    made = {
        options.TEXT: lambda: "\n".join(texts),
        options.JSON: lambda: json.dumps(records, indent=2),
        options.MARKDOWN: lambda: "\n\n".join(pages),
        HTML: lambda: compared_page.as_html(chosen.function, parts),
    }
    if chosen.output is not None:
        write_text(chosen.output, made[chosen.format]().rstrip("\n") + "\n")
    elif chosen.format == options.TEXT:
        terminal.write(texts)
    else:
        print(made[chosen.format]())
    return max(statuses)


def _baseline(runs: Sequence[Mapping[str, Any]], side: tuple[str, str] | None) -> Mapping[str, Any]:
    """Return the run that others are compared with; UsageError if there is none."""
    from reports.analysis.usercode.runs import failure_of

    ran = [one for one in runs if not one["missing"]]
    called = [one for one in ran if not failure_of(one)]
    if not ran:
        raise UsageError(f"nothing could be run: {runs[0]['missing']}")
    if not called:
        raise UsageError(f"the function could not be called: {failure_of(ran[0])}")
    if side is None:
        return called[0]
    for one in called:
        if (one["implementation"], one["jax"]) == side:
            return one
    there = ", ".join(f"{one['implementation']}@{one['jax']}" for one in called)
    raise UsageError(f"--baseline {'@'.join(side)}: this side was not run; name one of {there}")


def _status(baseline: Mapping[str, Any], found: Sequence[Compared], fail_on: str) -> int:
    if all(one.missing for one in found):
        report_progress("there is nothing to compare with the baseline")
        return FAILED
    if fail_on == options.NONE:
        return DONE
    some = [d for one in found for d in one.found if d.matters]
    if fail_on == UNEXPLAINED:
        some = [d for d in some if not (d.cause or d.says)]
    return FOUND if some else DONE


def load_issues() -> dict[str, Issue]:
    """Return the known issues that can explain differences."""
    from conformance.catalogue.causes import load_causes
    from reports.analysis.usercode.explained import Issue, Shown

    return {
        slug: Issue(
            slug,
            one.title,
            one.edit,
            one.tags,
            tuple(Shown(s.implementation, s.jax, s.topology, s.raises) for s in one.shows),
            one.links,
        )
        for slug, one in load_causes().items()
    }


ACTIONS = {"compare": Action(_add, _run)}
