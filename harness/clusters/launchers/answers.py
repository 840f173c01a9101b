"""The fields and types that a forking process may answer to each order.

Only a valid answer is used, so the code that uses it need not check again.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any

from conformance.commandline.limits import parse_address

MOST_STATUS = 255
MOST_BYTES = 2**63
MOST_PID = 2**31


def fits(order: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Return whether an answer has the fields that its order asks for, with valid values."""
    check = ANSWERS.get(order["do"])
    return check is None or check(order, answer)


def is_status(value: Any) -> bool:
    """Return whether a value can be an exit status: a code, or a negative signal number."""
    return _is_whole(value, -signal.NSIG, MOST_STATUS)


def _is_whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _of_each(field: str, check: Callable[[Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a check that an answer has a valid value for every place of the order."""

    def has(order: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
        found = answer.get(field)
        return (
            isinstance(found, list)
            and len(found) == len(order.get("places", ()))
            and all(map(check, found))
        )

    return has


def _is_delays(value: Any) -> bool:
    return isinstance(value, dict) and all(
        type(one) in (int, float) and one >= 0 for one in value.values()
    )


def _is_evidence(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"log", "stacks"}
        and all(isinstance(one, str) for one in value.values())
    )


def _is_port(order: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    text = answer.get("address")
    try:
        return isinstance(text, str) and parse_address(text)[1] > 0
    except ValueError:
        return False


ANSWERS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]] = {
    "spawn": lambda order, answer: _is_whole(answer.get("pid"), 1, MOST_PID),
    "written": _of_each("written", lambda one: _is_whole(one, -MOST_BYTES, MOST_BYTES)),
    "delays": _of_each("delays", _is_delays),
    "evidence": _of_each("evidence", _is_evidence),
    "reserve": _is_port,
}
