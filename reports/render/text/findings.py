"""What JAX does that no document says, one line each: known issue, versions, program.

Generated from results only: the known issues by which cells deviate or implementations differ,
known differences without one, new differences, and claims without a clause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from conformance.commandline.counting import counted
from conformance.model.records import Claim
from conformance.model.verdicts import Verdict
from reports.analysis.comparing.agreement import Agreement, Found, Where, ordered
from reports.analysis.comparing.changes import cause_of
from reports.analysis.issues.origin import Origin, origin
from reports.render.text.agreement import by_sentence, describe_difference, topologies, versions
from reports.render.text.summary import printable
from reports.store.order import implementation_order, version_order
from reports.store.outcomes import CellKey
from reports.store.results import Results
from reports.store.shown import Shown, spans, versions_run, where_shown

_ORIGINS = {
    Origin.DOCUMENTATION: "the documentation differs",
    Origin.PLATFORM: "of the platform",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One undocumented behaviour of JAX; `program` shows it by itself."""

    section: str
    title: str
    cause: str
    kind: str
    origin: Origin
    shown: tuple[Shown, ...]
    clauses: tuple[str, ...]
    program: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings: by known issue, without one, and new; and the claims without a clause."""

    jax: tuple[str, ...]
    clauses: int
    causes: tuple[Finding, ...]
    others: tuple[Finding, ...]
    new: tuple[Finding, ...]
    gaps: tuple[Claim, ...]


def findings(results: Results, agreement: Agreement | None) -> Findings:
    """Return what the results of the platform with the most cells show; without an agreement only
    what has a known issue.
    """
    results = results.of_one_platform()
    known = by_sentence(agreement) if agreement else {}
    new = ordered(agreement.new) if agreement else ()
    jax = {t.jax for t in results.targets if t.jax and not t.unavailable}
    return Findings(
        jax=tuple(sorted(jax, key=version_order)),
        clauses=len(results.ran()),
        causes=tuple(_causes(results, agreement)),
        others=tuple(_difference(results, says, some) for says, some in known.items()),
        new=tuple(_difference(results, describe_difference(one), [one]) for one in new),
        gaps=tuple(results.gaps()),
    )


def _causes(results: Results, agreement: Agreement | None) -> Iterator[Finding]:
    shown: dict[str, list[CellKey]] = {}
    for key, outcome in results.outcomes.items():
        if outcome.verdict is Verdict.KNOWN_DEVIATION and (slug := cause_of(outcome)):
            shown.setdefault(slug, []).append(key)
    for slug, keys in _compared(results, agreement).items():
        shown.setdefault(slug, []).extend(keys)

    def place(slug: str) -> tuple[str, str]:
        return results.causes[slug].section if slug in results.causes else "", slug

    ran = versions_run(results)
    for slug in sorted(shown, key=place):
        one = results.causes.get(slug)
        yield Finding(
            section=one.section if one else "",
            title=one.title if one else slug,
            cause=slug,
            kind=one.cause_kind if one else "",
            origin=origin(results, one, shown[slug]) if one else Origin.JAX,
            shown=tuple(where_shown(shown[slug], ran, apart=True)),
            clauses=tuple(dict.fromkeys(key.clause for key in shown[slug])),
            program=one.file if one else "",
        )


def _compared(results: Results, agreement: Agreement | None) -> dict[str, list[CellKey]]:
    """Return, by known issue, the cells in which a comparison's entry finds it, though they
    conform.
    """
    key_of = {target.jax: target.key for target in results.targets if not target.unavailable}
    found: dict[str, list[CellKey]] = {}
    for one in agreement.found.values() if agreement else ():
        if one.entry is not None and one.entry.cause:
            found.setdefault(one.entry.cause, []).extend(
                CellKey(where.clause, key_of[where.pair.new_jax], where.pair.new, where.topology)
                for where in one.seen
            )
    return found


def _difference(results: Results, says: str, some: Sequence[Found]) -> Finding:
    seen = [where for one in some for where in one.seen]
    clauses = tuple(dict.fromkeys(where.clause for where in seen))
    smallest = min(clauses, key=lambda id: (len(results.clauses[id].source), id))
    return Finding(
        section=results.clauses[smallest].section,
        title=says,
        cause="",
        kind="",
        origin=Origin.JAX,
        shown=tuple(_by_implementation(results, seen)),
        clauses=clauses,
        program=f"pmap-conformance show {smallest}",
    )


def _by_implementation(results: Results, seen: Sequence[Where]) -> Iterator[Shown]:
    every = {t.jax for t in results.targets if t.jax and not t.unavailable}
    for name in sorted({one.pair.new for one in seen}, key=implementation_order):
        here = [one for one in seen if one.pair.new == name]
        yield Shown(name, spans(versions(here), every), tuple(topologies(here)))


def as_markdown(found: Findings) -> str:
    """Return the page, as Markdown with a line per finding."""
    return printable("\n".join(_page(found)) + "\n")


def _page(found: Findings) -> Iterator[str]:
    yield "# Findings"
    yield ""
    yield (
        "What JAX does under `jax.pmap` and `jax.shard_map`, and no document says. Generated by "
        "`pmap-conformance report findings` from"
    )
    yield f"the results of {counted(found.clauses, 'test')} on jax {', '.join(found.jax)}."
    yield ""
    yield f"## Known issues: {len(found.causes)}"
    yield ""
    yield "After each title: the versions and topologies in which a test shows that a document is"
    yield "wrong, or that an implementation differs from the newest legacy pmap. The site says how"
    yield "each version behaves. Each program is plain JAX and shows its issue alone. To run it:"
    yield "`pmap-conformance causes run SLUG --target jax==VERSION`."
    section = None
    for one in found.causes:
        if one.section != section:
            section = one.section
            yield from ("", f"### {section or 'of no section'}", "")
        yield _line(one)
    for title, some in (
        ("Differences that are no known issue", found.others),
        ("Not looked at yet", found.new),
    ):
        if some:
            yield from ("", f"## {title}: {len(some)}", "")
            yield from map(_line, some)
    yield from ("", f"## Claims without a test: {len(found.gaps)}", "")
    for claim in found.gaps:
        yield f"- {claim.ref} `{claim.slug}`: {in_markdown(claim.statement)}"
    if not found.gaps:
        yield "None."


def _line(finding: Finding) -> str:
    where = "; ".join(
        f"{name} " + ", ".join(f"{one.jax} ({', '.join(one.topologies)})" for one in some)
        for name, some in groupby(finding.shown, key=lambda one: one.implementation)
    )
    named = f" `{finding.cause}`" if finding.cause else ""
    due = f", {_ORIGINS[finding.origin]}" if finding.origin in _ORIGINS else ""
    many = f"{len(finding.clauses)} test{'s' * (len(finding.clauses) > 1)}"
    program = f" `{finding.program}`" if finding.program else ""
    return f"- **{in_markdown(finding.title).rstrip('.')}.**{named}{due}: {where}; {many}.{program}"


def in_markdown(text: str) -> str:
    """Return a text in one line, in which nothing is markup."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|" else c for c in " ".join(text.split()))


def as_json(found: Findings) -> dict[str, Any]:
    """Return the findings as one JSON object."""

    def each(some: Iterable[Finding]) -> list[dict[str, Any]]:
        return [
            {
                "section": one.section,
                "title": one.title,
                "cause": one.cause,
                "kind": one.kind,
                "shown": [
                    {
                        "implementation": shown.implementation,
                        "jax": shown.jax,
                        "topologies": list(shown.topologies),
                    }
                    for shown in one.shown
                ],
                "clauses": list(one.clauses),
                "program": one.program,
            }
            for one in some
        ]

    return {
        "jax": list(found.jax),
        "clauses": found.clauses,
        "causes": each(found.causes),
        "others": each(found.others),
        "new": each(found.new),
        "gaps": [
            {"ref": one.ref, "slug": one.slug, "statement": one.statement} for one in found.gaps
        ],
    }
