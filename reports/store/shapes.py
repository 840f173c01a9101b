"""The form of an observation that is compared with others: what is of another form is refused.

A page that shows one observation shows any form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.codec import NoValue, converted
from conformance.model.observations import Observation
from conformance.model.records import Cell
from conformance.store.errors import ResultsError
from reports.store.lazily import Lazily


def in_known_form(cell: Cell) -> Sequence[Mapping[str, Any]]:
    """The observations of a cell; ResultsError names the first key that is of another form."""
    some = cell.observations
    try:
        converted(list(some), list[Observation], "the cell record's observations")
    except NoValue as error:
        where = f"{some.where}: " if isinstance(some, Lazily) else ""
        raise ResultsError(f"{where}{error}") from None
    return some
