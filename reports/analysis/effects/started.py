"""The command that runs a known issue's program so that it shows the issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.model.records import Cause
from reports.analysis.comparing.entries import within
from reports.store.order import version_order
from reports.store.results import Results


def started(cause: Cause, implementations: Iterable[str], jax: str | None) -> str:
    """Return the command for the first of these implementations in one JAX; the default command if
    none shows it.
    """
    lines = (line for name in implementations for line in _lines(cause, name, jax or ""))
    return next(lines, cause.command)


def started_where_it_fails(cause: Cause, implementations: Iterable[str], results: Results) -> str:
    """Return the command for the newest JAX in which the program ends by an error."""
    order = tuple(implementations)
    versions = {target.jax for target in results.targets if target.jax}
    lines = (
        line
        for jax in sorted(versions, key=version_order, reverse=True)
        for name in order
        for line in _lines(cause, name, jax, failing=True)
    )
    return next(lines, started(cause, order, None))


def _lines(cause: Cause, implementation: str, jax: str, failing: bool = False) -> Iterator[str]:
    for one in cause.shows:
        there = implementation in one.commands and within(one.jax, jax) if jax else False
        if there and (one.raises or one.ends or not failing):
            yield one.commands[implementation]
