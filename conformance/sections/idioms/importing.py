"""The pmap that runs before and after importing a library.

It runs in a new Python, because a library changes settings only once, when it is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

import jax

from conformance.sections.idioms import ENDS_WELL
from conformance.spec.columns import of_jax
from conformance.spec.expectation import every, in_steps, noted
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.releases import by_release
from conformance.worker import child
from conformance.worker.implementations import wrapper_kind
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "pmap-silence.wrappers-of-libraries"

PROGRAM = "program"
RAN = "ran"
NEW_BY_DEFAULT = "0.8.0"
DEADLINE_S = 90.0


def imported(package: str) -> list[str]:
    """Return the kinds of pmap before and after the import of a package."""
    before = wrapper_kind(jax.pmap(lambda x: x))
    importlib.import_module(package)
    return [before, wrapper_kind(jax.pmap(lambda x: x))]


@dataclass(frozen=True, slots=True)
class Library:
    """A package, and the module that is imported of it."""

    key: str
    module: str


LIBRARIES: Mapping[str, Library] = table(
    Library("optax", "optax"),
    Library("flax", "flax.training.train_state"),
    Library("equinox", "equinox"),
    Library("chex", "chex"),
)


def both(kind: str) -> Expectation:
    """Before and after the import, pmap is of this kind."""

    ran = noted(RAN, f"a {kind} before the import and after it", lambda _, seen: seen == [kind] * 2)
    return in_steps(every(ENDS_WELL, ran), PROGRAM)


@family(
    "idioms.importing.{library}",
    library=LIBRARIES,
    claim=CLAIM,
    title="Importing {library.module} does not change which pmap runs by default.",
    left_out="the test starts its own process",
    requires=lambda library: (library.key,),
    expect=of_jax(
        by_release(NEW_BY_DEFAULT, before=both("legacy pmap"), since=both("new pmap")),
    ),
    deadline_s=DEADLINE_S,
)
def importing(impl: Implementation, cluster: Cluster, library: Library) -> None:
    """A map before and after a library is imported."""
    answers: list[list[str]] = []

    def wait() -> None:
        answers.append(child.run(__name__, "imported", library.module).result())

    cluster.step(PROGRAM, wait)
    if answers:
        cluster.note(RAN, answers[0])


if __name__ == "__main__":
    child.serve({"imported": imported})
