"""Write the results file: one JSON line per header and per cell, flushed at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import conformance.model.records as model
from conformance.catalogue.causes import Cause, command, load_causes
from conformance.catalogue.claims import Claims
from conformance.catalogue.declarations import source_text
from conformance.catalogue.identity import program_digest
from conformance.catalogue.loading import Catalogue
from conformance.catalogue.outline import Places
from conformance.spec.clause import Clause
from conformance.spec.releases import changes
from harness.results.results_file import ResultsFile
from harness.running.tiers import Tier


class Programs(Mapping[str, str]):
    """The digest of each clause's program, by the clause's id; timed clauses have none.

    Digests are computed on demand: a run of one clause needs one of thousands.
    """

    def __init__(self, clauses: Mapping[str, Clause]) -> None:
        self._clauses = {id: one for id, one in clauses.items() if one.timing is None}
        self._digests: dict[str, str] = {}

    def __getitem__(self, id: str) -> str:
        if id not in self._digests:
            self._digests[id] = program_digest(self._clauses[id])
        return self._digests[id]

    def __contains__(self, id: object) -> bool:
        return id in self._clauses

    def __iter__(self) -> Iterator[str]:
        return iter(self._clauses)

    def __len__(self) -> int:
        return len(self._clauses)


class Recorder:
    """Opens `file` and writes the claims and clauses that a reader needs before the first cell.

    A clause's record has no source there; before the clause's first cell it is written again, with
    its source. `core` is the core tier, if only that runs. The file is put in place with its first
    cell; if `whole`, once `put` is called. An earlier one is renamed, if `keep`.
    """

    def __init__(
        self,
        file: Path,
        run: str,
        catalogue: Catalogue,
        claims: Claims,
        core: Tier | None = None,
        *,
        whole: bool = False,
        keep: bool = True,
    ) -> None:
        self._file = ResultsFile(file)
        self._whole = whole
        self._keep = keep
        self.kept: Path | None = None  # the name of the earlier file
        self._run = run
        self._core = model.Core(core.runs, core.of) if core is not None else None
        self._targets: set[tuple[str, bool]] = set()
        self._carried: dict[str, tuple[str, str]] = {}  # by target, the run of its last header
        self._catalogue = catalogue
        self._shown: set[str] = set()  # the clauses whose sources are written
        self.programs = Programs(catalogue.clauses)
        try:
            self._head(claims)
        except BaseException:  # who did not get a recorder cannot close it
            self.close()
            raise

    def _head(self, claims: Claims) -> None:
        for record in claim_records(claims):
            self._write(record)
        for id in self.programs:
            self._write(clause_record(self._catalogue.clauses[id], ""))
        for cause in load_causes().values():
            self._write(cause_record(cause))

    def cell(self, record: model.Cell | model.Timing, facts: Mapping[str, Any] | None) -> None:
        """Write a cell or a timing, preceded by the target's header if it is the target's first."""
        unavailable = record.reason if facts is None and isinstance(record, model.Cell) else None
        self.target(record.target, facts, unavailable)
        if isinstance(record, model.Cell) and record.clause in self.programs:
            record = replace(record, program=self.programs[record.clause])
            self._show(record.clause)
        self._write(record)
        self._placed()

    def carried(self, target: model.Target | None, record: model.Record) -> None:
        """Write a record of an earlier run, under that run's record of its target if it has one."""
        self._carry_target(target)
        if isinstance(record, model.Cell) and record.clause in self.programs:
            self._show(record.clause)
        self._write(record)
        self._placed()

    def carried_line(self, target: model.Target, clause: str, line: bytes) -> None:
        """Write the line of an earlier run's cell unchanged, as `carried` does with a record."""
        self._carry_target(target)
        if clause in self.programs:
            self._show(clause)
        self._file.write_line(line)
        self._placed()

    def _carry_target(self, target: model.Target | None) -> None:
        run = (target.started, target.run) if target else None
        if target and run and self._carried.get(target.target) != run:
            self._carried[target.target] = run
            self._write(replace(target, schema=model.SCHEMA_VERSION))

    def target(self, spec: str, facts: Mapping[str, Any] | None, unavailable: str | None) -> None:
        """Write a target's header, once, or again if it becomes available later.

        `facts` come from a live worker of it; None if none has started.
        """
        if (spec, facts is not None) in self._targets or (spec, True) in self._targets:
            return
        self._targets.add((spec, facts is not None))
        needed = ("jax", "jaxlib", "numpy", "python", "platform", "machine")
        further = ("packages", "compiling", "cores", "memory", "device_kind")
        known: dict[str, Any] = {key: facts[key] if facts else None for key in needed}
        known |= {key: facts[key] for key in further if facts and key in facts}
        self._write(
            model.Target(
                schema=model.SCHEMA_VERSION,
                target=spec,
                core=self._core,
                run=self._run,
                started=datetime.now(UTC).isoformat(timespec="seconds"),
                unavailable=unavailable,
                **known,
            )
        )

    def put(self) -> None:
        """Move the file into its place."""
        self.kept = self._file.put(keep=self._keep) or self.kept

    def close(self) -> None:
        """Close the file; a file that was not put in place is removed."""
        self._file.close()

    def _placed(self) -> None:
        if not self._whole:
            self.put()

    def _show(self, id: str) -> None:
        """Write a clause's record with its source, once."""
        if id not in self._shown:
            self._shown.add(id)
            clause = self._catalogue.clauses[id]
            self._write(clause_record(clause, source_text(clause)))

    def _write(self, record: model.Record) -> None:
        self._file.write(record)


def claim_records(claims: Claims) -> Iterator[model.Claim]:
    """Yield the claims as results files store them."""
    places = Places(claims)
    for slug, claim in claims.claims.items():
        place = places.place_of(claim)
        yield model.Claim(
            slug=slug,
            ref=claim.ref,
            document=claim.document,
            document_title=claims.documents[claim.document].title,
            heading=claim.heading,
            heading_hash=claims.headings.get(claim.document, {}).get(claim.heading, ""),
            statement=claim.statement,
            claim_kind=claim.kind,
            outline=place.document,
            order=place.order,
            revisions=tuple(place.revisions),
            current=place.current,
            url=place.url,
        )


def cause_record(cause: Cause) -> model.Cause:
    """Return a known issue as results files store it."""
    return model.Cause(
        cause=cause.slug,
        section=cause.section,
        title=cause.title,
        sentence=cause.sentence,
        cause_kind=cause.kind,
        tags=tuple(cause.tags),
        remedies=tuple(cause.remedies),
        edit=cause.edit,
        part_of=cause.part_of,
        links=tuple(cause.links),
        program=cause.program,
        command=command(cause.shows[0], cause.shows[0].implementation[0], f"{cause.slug}.py"),
        file=cause.file,
        shows=tuple(
            model.Shows(
                implementation=tuple(one.implementation),
                jax=one.jax,
                topology=tuple(one.topology),
                prints=one.prints,
                raises=one.raises,
                ends=one.ends,
                commands={
                    name: command(one, name, f"{cause.slug}.py") for name in one.implementation
                },
            )
            for one in cause.shows
        ),
    )


def clause_record(clause: Clause, source: str) -> model.Clause:
    """Return a clause as results files store it: everything that a report shows of it.

    `source` is its row and its probe as written, empty if the file has no cell of it.
    """
    module, line = clause.where
    return model.Clause(
        clause=clause.id,
        section=clause.section,
        title=clause.title,
        claim=clause.claim,
        fixes=clause.fixes,
        topologies=tuple(clause.topologies),
        expected={name: e.text for name, e in clause.expect.items()},
        by_release=tuple(name for name, e in clause.expect.items() if changes(e)),
        fact=clause.fact,
        left_out=clause.left_out,
        cause=clause.cause,
        parameters=dict(clause.parameters),
        source=source,
        module=module,
        line=line,
    )
