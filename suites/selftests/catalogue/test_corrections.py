"""The corrections of documents: each names claims of the catalogue, and the patch applies."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.catalogue.claims import load_claims
from reports.render.site.corrections import COMMAND, corrections, patch

DOCUMENTS = os.environ.get("PMAP_CONFORMANCE_DOCUMENTS", "")


def test_every_claim_of_a_correction_is_of_the_catalogue() -> None:
    named = {slug for one in corrections() for slug in one.claims}
    assert named <= set(load_claims().claims)


def test_the_patch_applies_to_the_lines_that_it_quotes(tmp_path: Path) -> None:
    for one in corrections():
        path = tmp_path / one.file
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        lines += [f"line {n}" for n in range(len(lines) + 1, one.line + len(one.old))]
        lines[one.line - 1 : one.line - 1 + len(one.old)] = one.old
        path.write_text("\n".join(lines) + "\n")

    applied(tmp_path)

    for one in corrections():
        text = (tmp_path / one.file).read_text()
        assert one.was not in text
        assert one.becomes in text


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
