"""Writes the results file: one JSON line per header and per cell, flushed as it happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conformance.catalogue.causes import Cause, command, load_causes
from conformance.catalogue.claims import Claims
from conformance.catalogue.clause import Clause
from conformance.catalogue.declarations import source_text
from conformance.catalogue.identity import program_digest
from conformance.catalogue.loading import Catalogue
from conformance.catalogue.outline import place_of
from conformance.commandline.results import SCHEMA_VERSION
from conformance.judging.releases import changes
from harness.plugin.placing import ResultsFile
from harness.running.tiers import Tier

SCHEMA = SCHEMA_VERSION


class Programs(Mapping[str, str]):
    """The digest of each clause's program, by the clause's id; timed clauses have none.

    A digest is computed when it is first asked for: a run of one clause needs one of thousands.
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
    """Opens `file`, and writes the claims and clauses that a reader needs before the first cell.

    A clause's record has no source there; before the clause's first cell it is written again, with
    its source. `core` is the core tier, where it is all that is run. The file has its place from
    its first cell on; if `whole`, once `put` is called. An earlier one is renamed, if `keep`.
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
        self._core = {"runs": core.runs, "of": core.of} if core is not None else None
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
        for slug in claims.claims:
            self._write(claim_record(claims, slug))
        for id in self.programs:
            self._write(clause_record(self._catalogue.clauses[id], ""))
        for cause in load_causes().values():
            self._write(cause_record(cause))

    def cell(self, record: Mapping[str, Any], facts: Mapping[str, Any] | None) -> None:
        """Write a cell or a timing, and before a target's first one the target's header."""
        self.target(record["target"], facts, record["reason"] if facts is None else None)
        if record["kind"] == "cell" and record["clause"] in self.programs:
            record = {**record, "program": self.programs[record["clause"]]}
            self._show(record["clause"])
        self._write(record)
        self._placed()

    def carried(self, target: Mapping[str, Any] | None, record: Mapping[str, Any]) -> None:
        """Write a record of an earlier run, under that run's record of its target if it has one."""
        self._carry_target(target)
        if record["kind"] == "cell" and record["clause"] in self.programs:
            self._show(record["clause"])
        self._write(record)
        self._placed()

    def carried_line(self, target: Mapping[str, Any], clause: str, line: str) -> None:
        """Write the line of a cell of an earlier run as it is, as `carried` does its record."""
        self._carry_target(target)
        if clause in self.programs:
            self._show(clause)
        self._file.write_line(line)
        self._placed()

    def _carry_target(self, target: Mapping[str, Any] | None) -> None:
        run = (target["started"], target["run"]) if target else None
        if target and run and self._carried.get(target["target"]) != run:
            self._carried[target["target"]] = run
            self._write({**target, "schema": SCHEMA})

    def target(self, spec: str, facts: Mapping[str, Any] | None, unavailable: str | None) -> None:
        """Write a target's header, once, or again when it turns out to be there after all.

        `facts` come from a live worker of it; None where none came up (yet).
        """
        if (spec, facts is not None) in self._targets or (spec, True) in self._targets:
            return
        self._targets.add((spec, facts is not None))
        keys = ("jax", "jaxlib", "numpy", "python", "platform", "machine")
        self._write(
            {
                "kind": "target",
                "schema": SCHEMA,
                "target": spec,
                **{key: facts[key] if facts else None for key in keys},
                "core": self._core,
                "packages": facts.get("packages", {}) if facts else {},
                "compiling": facts.get("compiling", "") if facts else "",
                "cores": facts.get("cores") if facts else None,
                "memory": facts.get("memory") if facts else None,
                "run": self._run,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "unavailable": unavailable,
            }
        )

    def put(self) -> None:
        """Give the file its place."""
        self.kept = self._file.put(keep=self._keep) or self.kept

    def close(self) -> None:
        """End the file; nothing is left of one that was not given its place."""
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

    def _write(self, record: Mapping[str, Any]) -> None:
        self._file.write(record)


def claim_record(claims: Claims, slug: str) -> dict[str, Any]:
    """A claim as results files carry it."""
    claim = claims.claims[slug]
    place = place_of(claims, claim)
    return {
        "kind": "claim",
        "slug": slug,
        "ref": claim.ref,
        "document": claim.document,
        "document_title": claims.documents[claim.document].title,
        "heading": claim.heading,
        "heading_hash": claims.headings.get(claim.document, {}).get(claim.heading, ""),
        "statement": claim.statement,
        "claim_kind": claim.kind,
        "outline": place.document,
        "order": place.order,
        "revisions": list(place.revisions),
        "current": place.current,
        "url": place.url,
    }


def cause_record(cause: Cause) -> dict[str, Any]:
    """A cause as results files carry it."""
    return {
        "kind": "cause",
        "cause": cause.slug,
        "section": cause.section,
        "title": cause.title,
        "sentence": cause.sentence,
        "cause_kind": cause.kind,
        "tags": list(cause.tags),
        "remedies": list(cause.remedies),
        "edit": cause.edit,
        "part_of": cause.part_of,
        "links": list(cause.links),
        "program": cause.program,
        "command": command(cause.shows[0], cause.shows[0].implementation[0], f"{cause.slug}.py"),
        "file": cause.file,
        "shows": [
            {
                "implementation": list(one.implementation),
                "jax": one.jax,
                "topology": list(one.topology),
                "prints": one.prints,
                "raises": one.raises,
                "ends": one.ends,
                "commands": {
                    name: command(one, name, f"{cause.slug}.py") for name in one.implementation
                },
            }
            for one in cause.shows
        ],
    }


def clause_record(clause: Clause, source: str) -> dict[str, Any]:
    """A clause as results files carry it: all that a report shows of it.

    `source` is its row and its probe as they are written, empty where the file has no cell of it.
    """
    module, line = clause.where
    return {
        "kind": "clause",
        "clause": clause.id,
        "section": clause.section,
        "title": clause.title,
        "claim": clause.claim,
        "fixes": clause.fixes,
        "topologies": list(clause.topologies),
        "expected": {name: e.text for name, e in clause.expect.items()},
        "by_release": [name for name, e in clause.expect.items() if changes(e)],
        "fact": clause.fact,
        "left_out": clause.left_out,
        "cause": clause.cause,
        "parameters": dict(clause.parameters),
        "source": source,
        "module": module,
        "line": line,
    }
