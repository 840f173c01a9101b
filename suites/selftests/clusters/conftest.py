"""The verdicts of this machine's own clusters, computed once for all launchers that must agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from proof import Told, verdicts

from harness.running.cells import CellId


@pytest.fixture(scope="session")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Mapping[CellId, Told]:
    """The cells on clusters forked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PMAP_CONFORMANCE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return verdicts(None)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMAP_CONFORMANCE_CACHE", str(tmp_path / "cache"))
