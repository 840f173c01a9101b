"""The corrections of documents: each names claims of the catalogue, and the patch applies."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from building.searched import PUBLISHED

from conformance.catalogue.claims import load_claims
from reports.render.site.corrections import (
    COMMAND,
    commit,
    corrections,
    patch,
    repository,
    suggested,
    wordings,
)
from reports.render.site.documents import documents
from reports.store.results import load

DOCUMENTS = os.environ.get("PMAP_CONFORMANCE_DOCUMENTS", "")


def test_every_claim_of_a_correction_is_of_the_catalogue() -> None:
    named = {slug for one in (*corrections(), *wordings()) for slug in one.claims}
    assert named <= set(load_claims().claims)


def test_the_repository_and_the_commit_are_those_of_the_lines() -> None:
    assert repository() == "https://github.com/jax-ml/jax"
    assert all(one.href.startswith(f"{repository()}/blob/{commit()}/") for one in corrections())


@pytest.mark.long
def test_every_claim_that_fails_in_the_published_results_has_a_replacement() -> None:
    fail = {
        row.claim.slug
        for document in documents(load([PUBLISHED]))
        if not document.silent
        for row in document.claims
        if row.untrue
    }
    assert len(fail) > 50
    assert sorted(slug for slug in fail if not list(suggested([slug]))) == []


def test_a_suggestion_quotes_the_lines_and_their_replacement() -> None:
    for one in corrections():
        lines = list(suggested(one.claims))
        for kind, text in (("-", one.old), ("+", one.new)):
            assert set(lines) >= {kind + line for line in text}


def test_a_wording_is_suggested_without_a_quotation() -> None:
    for one in wordings():
        assert f"Suggested wording: {one.becomes}" in list(suggested(one.claims))


def test_nothing_is_suggested_for_a_claim_that_no_correction_names() -> None:
    assert list(suggested(["migrate-pmap.never-claimed"])) == []


def test_the_patch_applies_to_the_lines_that_it_quotes(tmp_path: Path) -> None:
    before: dict[str, list[str]] = {}
    for one in corrections():
        lines = before.setdefault(one.file, [])
        lines += [f"line {n}" for n in range(len(lines) + 1, one.line + len(one.old))]
        lines[one.line - 1 : one.line - 1 + len(one.old)] = one.old
    after = {file: list(lines) for file, lines in before.items()}
    for one in reversed(corrections()):
        after[one.file][one.line - 1 : one.line - 1 + len(one.old)] = one.new
    for file, lines in before.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("\n".join(lines) + "\n")

    applied(tmp_path)

    for file, lines in after.items():
        assert (tmp_path / file).read_text().splitlines() == lines


@pytest.mark.skipif(not DOCUMENTS, reason="PMAP_CONFORMANCE_DOCUMENTS names no folder of sources")
def test_the_patch_applies_to_the_documents(tmp_path: Path) -> None:
    for name in {one.file for one in corrections()}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(DOCUMENTS) / Path(name).name, tmp_path / name)

    applied(tmp_path)

    for one in corrections():
        assert one.becomes in (tmp_path / one.file).read_text()


def applied(folder: Path) -> None:
    """Apply the patch in a folder."""
    (folder / "corrections.patch").write_text(patch(corrections()))
    done = subprocess.run(
        COMMAND.split(), cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
