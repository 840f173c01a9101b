"""`show ID`: one clause with its claim, expectations, deviation entries and source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.catalogue.claims import Claims
from conformance.catalogue.declarations import line_of, source_text
from conformance.catalogue.loading import Catalogue
from conformance.catalogue.spelling import did_you_mean
from conformance.judging.deviations import Deviation
from conformance.spec.clause import Clause


def show(
    catalogue: Catalogue,
    claims: Claims,
    deviations: Sequence[Deviation],
    id: str,
) -> Iterator[str]:
    """Yield the lines about one clause; ValueError with similar ids if there is none."""
    clause = _named(catalogue, id)
    claim = claims.claims[clause.claim]
    document = claims.documents[claim.document].title
    yield clause.id
    yield from _rows(
        {
            "clause": clause.title,
            "statement": f"{claim.statement} ({claim.slug})",
            "source": f"{document}{f', “{claim.heading}”' if claim.heading else ''}",
            "stands in": ", ".join(claims.stands_in(claim)) if claim.heading else "",
            "fact": clause.fact,
            "cause": clause.cause,
            **{f"expected of {name}": one.text for name, one in clause.expect.items()},
            "rows": ", ".join(f"{name} = {key!r}" for name, key in clause.parameters.items()),
            "topologies": ", ".join(clause.topologies),
            "left out": clause.left_out,
            "same run as": ", ".join(i for i in catalogue.runs[id] if i != id),
            "remedies": clause.fixes or "",
            "remedied by": ", ".join(
                one.id for one in catalogue.clauses.values() if one.fixes == id
            ),
            "file": ":".join(map(str, clause.where)),
            "row": ":".join(map(str, line_of(clause) or ())),
        }
    )
    for entry in _entries(clause, deviations):
        yield f"  deviation      {entry.where}: {', '.join(entry.implementation)}, "
        for versions, topologies in entry.cells or ((entry.jax, entry.topology),):
            yield f"                 jax {versions or 'any'}, on {', '.join(topologies)}"
        yield f"                 sees /{entry.seen}/"
        if entry.cause:
            yield f"                 cause {entry.cause}"
        yield f"                 {' '.join(entry.why.split())}"
    yield ""
    yield from source_text(clause).splitlines()
    yield ""
    yield f"# To run it:  pmap-conformance run --clause {id} --target current"
    yield f"# By hand:    from conformance import plain; plain.run({id!r})"


def _named(catalogue: Catalogue, id: str) -> Clause:
    if id not in catalogue.clauses:
        meant = did_you_mean(id, catalogue.clauses) or "; `list clauses` lists them"
        raise ValueError(f"no clause is called {id}{meant}")
    return catalogue.clauses[id]


def _rows(described: dict[str, str]) -> Iterator[str]:
    for what, text in described.items():
        if text:
            yield f"  {what:<26} {text}"


def _entries(clause: Clause, deviations: Sequence[Deviation]) -> Iterator[Deviation]:
    """Yield the entries about a clause, except those for warnings that any clause may emit."""
    for entry in deviations:
        if entry.names(clause.id) and not (entry.warns and "*" in entry.clause):
            yield entry
