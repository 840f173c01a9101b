"""What all self-tests need.

They call probes in their own process, so it imports JAX before it loads the catalogue
(`conformance.catalogue.stand_ins`).
"""

from __future__ import annotations

from collections.abc import Iterator

import jax  # noqa: F401
import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_answers_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Reports neither use nor replace what the user's own commands have kept."""
    kept = tmp_path_factory.mktemp("answers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reports.answers.folder", lambda: kept)
        yield
