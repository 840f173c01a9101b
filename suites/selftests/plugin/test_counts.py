"""What the summary of a run says of its counts and times."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from conformance.model.verdicts import Verdict
from conformance.spec.topology import Topology
from harness.clusters.launchers.__init__ import TargetDown
from harness.plugin import hooks
from harness.running.pool import Pool
from harness.targets.target import Target

NOTHING = "nothing was tested"


@pytest.mark.parametrize(
    ("verdicts", "nothing"),
    [
        ({Verdict.NOT_APPLICABLE: 3}, True),
        ({Verdict.NOT_APPLICABLE: 1, Verdict.REMOVED: 2}, True),
        ({Verdict.NOT_APPLICABLE: 3, Verdict.CONFORMS: 1}, False),
        ({Verdict.NOT_RUN: 3}, False),
    ],
)
def test_a_run_that_tested_nothing_says_so(verdicts: dict[Verdict, int], nothing: bool) -> None:
    session: Any = SimpleNamespace(verdicts=Counter(verdicts), tier=None)
    assert any(NOTHING in line for line in hooks._counts(session)) == nothing


def test_the_start_of_a_cluster_that_is_asked_for_its_facts_is_counted() -> None:
    fleet: Any = mock.MagicMock(here=False)
    fleet.starting.side_effect = TargetDown("it cannot run")
    pool = Pool((), fleet=fleet)
    with pytest.raises(TargetDown):
        pool.facts(mock.create_autospec(Target, instance=True), Topology(1, 1))
    assert pool.spent.starting > 0
