"""`dev`: commands for maintaining this project."""

from __future__ import annotations

import argparse
from pathlib import Path

from conformance.commandline.counting import counted
from harness.commandline import options
from harness.commandline.command import DONE, FOUND, Action, report_progress


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", nargs="?", default="current", help="a target")
    parser.add_argument("--tools", action="store_true", help="the commands alone")


def _bench(chosen: argparse.Namespace) -> int:
    from harness.running import bench, tool_bench

    tool_bench.main()
    if not chosen.tools:
        bench.measure(chosen.spec, progress=report_progress)
    return DONE


def _add_readme(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    options.add_output(parser, "a README with the marks; it is replaced (default: README.md)")


def _readme(chosen: argparse.Namespace) -> int:
    from conformance.store.outputs import write_text
    from reports.render.readme import load_changes, replaced
    from reports.store.results import load

    file = chosen.output or Path("README.md")
    text = file.read_text(encoding="utf-8")
    write_text(file, replaced(text, load(options.expand(chosen.files)), load_changes()))
    return DONE


def _add_docs(parser: argparse.ArgumentParser) -> None:
    options.add_output(parser, "the folder of the pages (default: docs)", metavar="DIR")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if one differs")


def _docs(chosen: argparse.Namespace) -> int:
    from conformance.store.outputs import write_text
    from harness.commandline import reference
    from reports.render.text import schema as schema_page

    folder = chosen.output or Path("docs")
    made = {"command-line.md": reference.page(), "results-format.md": schema_page.page()}
    made["results-format.schema.json"] = schema_page.as_json()
    stale = [
        folder / name
        for name, text in made.items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]
    for file in stale:
        if not chosen.check:
            write_text(file, made[file.name])
        print(f"{'differs' if chosen.check else 'written'}: {file}")
    return FOUND if stale and chosen.check else DONE


def _add_changes(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    options.add_output(parser, "the file (default: the one of this installation)")


def _changes(chosen: argparse.Namespace) -> int:
    from conformance.store.outputs import write_text
    from reports.analysis.effects.published import FILE, as_json, as_text
    from reports.store.results import load

    files = options.expand(chosen.files)
    found = as_json(load(files), b"".join(one.read_bytes() for one in files))
    write_text(chosen.output or FILE, as_text(found))
    print(f"{len(found['pairs'])} pairs of sides: {chosen.output or FILE}")
    return DONE


def _add_pods(parser: argparse.ArgumentParser) -> None:
    options.add_targets(parser, "newest")
    options.add_output(parser, "write a results file, for the site")


def _pods(chosen: argparse.Namespace) -> int:
    from harness.running.pods import grown, lines
    from harness.targets.target import expand_all

    found = []
    for spec in expand_all(chosen.target or ["newest"]):
        some = grown(spec, progress=report_progress)
        found += some
        for line in lines(some):
            print(line)
    if chosen.output:
        options.write_records(chosen.output, found)
    return DONE


def _add_names(parser: argparse.ArgumentParser) -> None:
    options.add_targets(parser, "newest")
    options.add_output(parser, "the file (default: the one of this installation)")


def _names(chosen: argparse.Namespace) -> int:
    from packaging.version import Version

    from conformance.store.outputs import write_text
    from harness.running.public_names import look_up
    from harness.targets.target import expand_all
    from reports.analysis.public_names import FILE, as_text, history

    releases = look_up(expand_all(chosen.target or ["newest"]), progress=report_progress)
    found = history(sorted(releases, key=lambda one: Version(one.jax)))
    write_text(chosen.output or FILE, as_text(found))
    print(f"{len(found.gone)} names are gone, {len(found.names) - len(found.gone)} warn")
    return DONE


def _add_libraries(parser: argparse.ArgumentParser) -> None:
    options.add_targets(parser, "newest")
    options.add_output(parser, "the file (default: the one of this installation)")


def _libraries(chosen: argparse.Namespace) -> int:
    from conformance.store.outputs import write_text
    from harness.running.libraries import examine
    from harness.targets.target import expand_all
    from reports.analysis.libraries import FILE, as_text, from_records

    wanted = expand_all(chosen.target or ["newest"])
    found = from_records(examine(wanted, progress=report_progress))
    write_text(chosen.output or FILE, as_text(found))
    print(f"{len(found)} pairs of a library and JAX: {chosen.output or FILE}")
    return DONE


def _add_freeze(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the lines")
    where.add_argument("--against", metavar="FILE", type=Path, help="compare with these lines")


def _freeze(chosen: argparse.Namespace) -> int:
    from conformance.store.outputs import write_text
    from reports.render.frozen import difference, freeze
    from reports.store.results import load

    lines = list(freeze(load(options.expand(chosen.files))))
    if chosen.against is None:
        write_text(chosen.output, "".join(f"{line}\n" for line in lines))
        print(f"{counted(len(lines), 'line')}: {chosen.output}")
        return DONE
    found = difference(chosen.against.read_text(encoding="utf-8").splitlines(), lines)
    for sign, some in (("-", found.gone), ("+", found.new)):
        for line in some:
            print(f"{sign}{line}")
    all_lines = counted(len(lines), "line")
    print(f"{all_lines}; only before: {len(found.gone)}, only now: {len(found.new)}")
    return FOUND if found else DONE


def _add_boundaries(parser: argparse.ArgumentParser) -> None:
    options.add_results(parser)
    parser.add_argument(
        "--programs", metavar="FILE", type=Path, help="what `causes run --everywhere` wrote"
    )
    parser.add_argument("--missing", action="store_true", help="only those that no run settles")


def _boundaries(chosen: argparse.Namespace) -> int:
    from packaging.version import Version

    from conformance.catalogue.causes import load_causes
    from conformance.catalogue.loading import load
    from conformance.judging.deviations import load_all
    from harness.running import boundaries
    from reports.analysis.effects.hazards import hazards
    from reports.analysis.effects.pairs import Effects
    from reports.store import results
    from reports.store.releases import released

    releases = tuple(sorted(released(), key=Version))
    causes, entries = load_causes(), load_all()
    clauses, files = load().clauses, options.expand(chosen.files)
    ran = {one for file in files for one in boundaries.run_cells(file)}
    found = [
        *boundaries.of_entries(entries, clauses, releases),
        *boundaries.of_causes(causes, entries, clauses, releases),
    ]
    if chosen.programs:
        ran.update(boundaries.run_programs(chosen.programs))
        found += boundaries.of_programs(causes.values(), releases)
    lines = [(boundaries.line(one, ran), bool(one.missing(ran))) for one in found]
    for hazard in hazards(Effects(results.load(files))):
        name = f"{hazard.danger}, {hazard.cause.cause if hazard.cause else hazard.clause}"
        for implementation, before, after in hazard.turns(releases):
            gap = boundaries.between(before, after, releases)
            subject = f"{name} under {implementation}"
            lines.append((boundaries.bound_line(subject, before, after, gap), bool(gap)))
    for text, unsettled in lines:
        if unsettled or not chosen.missing:
            print(text)
    count = sum(unsettled for _, unsettled in lines)
    print(f"{len(lines)} bounds between adjacent releases, {count} that no run settles")
    return FOUND if count else DONE


ACTIONS = {
    "dev bench": Action(_add_bench, _bench),
    "dev readme": Action(_add_readme, _readme, (OSError,), keeps_all=True),
    "dev docs": Action(_add_docs, _docs, (OSError,)),
    "dev changes": Action(_add_changes, _changes, (), keeps_all=True),
    "dev libraries": Action(_add_libraries, _libraries),
    "dev names": Action(_add_names, _names, (OSError,)),
    "dev pods": Action(_add_pods, _pods),
    "dev freeze": Action(_add_freeze, _freeze, (OSError,), keeps_all=True),
    "dev boundaries": Action(_add_boundaries, _boundaries),
}
