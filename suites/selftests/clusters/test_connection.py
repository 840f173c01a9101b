"""What the controller accepts from a worker, without a process."""

from __future__ import annotations

from typing import Any

import pytest

from harness.clusters.connection import FLOOD_BYTES, TroubleKind, WorkerConnection


class Sent:
    """A channel that holds one message."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message

    def receive(self) -> dict[str, Any]:
        return self._message


def taken(message: dict[str, Any], case: str | None) -> WorkerConnection:
    worker = WorkerConnection(0, Sent(message))  # type: ignore[arg-type]
    worker.take(case)
    return worker


def test_a_message_of_the_running_case_is_stored() -> None:
    worker = taken({"case": "7", "mapped": "PmapFunction"}, "7")
    assert (worker.trouble, worker.mapped) == (None, ["PmapFunction"])


@pytest.mark.parametrize(
    ("message", "case"),
    [
        ({"case": "6", "mapped": "PmapFunction"}, "7"),  # of the case before
        ({"mapped": "PmapFunction"}, "7"),
        ({"case": "7", "mapped": "PmapFunction"}, None),  # no case runs yet
        ({"case": "7", "mapped": 3}, "7"),
        ({"ready": True}, None),  # without facts
    ],
)
def test_any_other_message_is_trouble(message: dict[str, Any], case: str | None) -> None:
    worker = taken(message, case)
    assert worker.trouble is not None
    assert worker.trouble.kind is TroubleKind.UNEXPECTED
    assert str(message) in str(worker.trouble)
    assert (worker.mapped, worker.ready) == ([], False)


def test_ready_needs_an_observation() -> None:
    worker = taken({"case": "7", "ready": True}, "7")
    assert worker.trouble is not None
    assert not worker.ready


def test_output_up_to_the_limit_is_no_flood() -> None:
    worker = WorkerConnection(0)
    worker.look_for_flood(FLOOD_BYTES)
    assert worker.trouble is None
    worker.look_for_flood(FLOOD_BYTES + 1)
    assert worker.trouble is not None
