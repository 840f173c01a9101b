"""The time lane: groups of cells, whose participants are measured in alternating blocks.

A participant is a cell of a timing clause: an implementation in a target. The targets of a group
have their clusters at the same time and take turns, block by block, so that legacy of one version
is measured next to new pmap of another at the same moment. Nothing else runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import conformance.model.records as model
from conformance.judging import ratios
from conformance.judging.ratios import Ratio
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.clause import Timing
from harness.running.admission import process_capacity
from harness.running.cells import CellId
from harness.running.runner import Runner

SECTION = "timing"
FEWEST_TOGETHER = 2  # targets of one group: a ratio needs two


class Clock:
    """The timer that pytest-benchmark reads: it advances by what a worker measured."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance by `seconds`."""
        self._now += seconds


CLOCK = Clock()  # a mark is written before there is a session, and names its timer


@dataclass
class Participant:
    """A cell in a group: its last record, and the seconds of each contender, block by block."""

    cell: CellId
    record: model.Cell | None = None
    blocks: dict[str, list[list[float]]] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Return whether every block returned right values."""
        return self.record is not None and self.record.verdict == Verdict.CONFORMS


class Lane:
    """Runs groups, each target on its own runner, which `make_runner` makes."""

    def __init__(
        self,
        make_runner: Callable[[], Runner],
        blocks: int,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._make_runner = make_runner
        self._blocks = blocks
        self._progress = progress
        self._runners: dict[str, Runner] = {}

    def run_group(self, cells: Sequence[CellId]) -> dict[CellId, Participant]:
        """Measure in turns the cells of one clause and topology."""
        self.keep(cell.target for cell in cells)
        participants = {cell: Participant(cell) for cell in cells}
        in_turn = list(participants.values())
        for number in range(self._blocks):
            self._progress(f"{cells[0].clause} on {cells[0].topology}: block {number + 1}")
            for participant in in_turn:
                if number == 0 or participant.measured:
                    self._block(participant)
            in_turn.append(in_turn.pop(0))  # each goes first in turn
        return participants

    def facts(self, target: str) -> dict[str, Any] | None:
        """Return the facts of a target, once a group has run on it; None before."""
        runner = self._runners.get(target)
        return runner.facts.get(target) if runner else None

    def keep(self, targets: Iterable[str]) -> None:
        """Close the clusters of all other targets, which would take room from the next group."""
        wanted = set(targets)
        for target, runner in self._runners.items():
            if target not in wanted:
                runner.pool.release()

    def close(self) -> None:
        """End every cluster."""
        for runner in self._runners.values():
            runner.pool.close()

    @property
    def runners(self) -> Iterable[Runner]:
        """Return the runners that were made."""
        return self._runners.values()

    def _block(self, participant: Participant) -> None:
        target = participant.cell.target
        if target not in self._runners:
            self._runners[target] = self._make_runner()
        participant.record = self._runners[target].run(participant.cell)
        if participant.measured:
            for name, taken in seconds_of(participant.record.observations).items():
                participant.blocks.setdefault(name, []).append(taken)


def seconds_of(observations: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return each contender's rounds of one block, in the slowest process."""
    by_step: dict[str, list[list[float]]] = {}
    for observation in observations:
        for step in observation["steps"]:
            if names.SECONDS in step["extra"]:
                by_step.setdefault(step["name"], []).append(step["extra"][names.SECONDS])
    return {name: ratios.slowest(taken) for name, taken in by_step.items()}


def groups_of(cells: Sequence[CellId], processes: int) -> list[list[CellId]]:
    """Divide the cells of one clause and topology into groups that fit this machine.

    If not all targets fit, the first one, the baseline of the others, is in every group.
    """
    targets = list(dict.fromkeys(cell.target for cell in cells))
    together = max(FEWEST_TOGETHER, process_capacity() // processes)
    if len(targets) <= together:
        groups = [targets]
    else:
        first, rest, size = targets[0], targets[1:], together - 1
        groups = [[first, *rest[at : at + size]] for at in range(0, len(rest), size)]
    return [[cell for cell in cells if cell.target in group] for group in groups]


def against(
    contender: str, measured: Participant, participants: Iterable[Participant], timing: Timing
) -> list[Ratio]:
    """Return what a contender is compared with: its cell's baseline, and legacy pmap.

    Legacy pmap is that of the same target, or else of the group's first target that has it.
    """
    found = []
    if timing.baseline not in (None, contender):
        found.append(_ratio(measured, contender, measured, timing.baseline, timing.baseline))
    legacies = [
        e for e in participants if e.cell.implementation == names.LEGACY_PMAP and e.measured
    ]
    own = [e for e in legacies if e.cell.target == measured.cell.target]
    if legacies and measured.cell.implementation != names.LEGACY_PMAP:
        legacy = (own or legacies)[0]
        name = f"legacy pmap of {legacy.cell.target}"
        found.append(_ratio(measured, contender, legacy, contender, name))
    return found


def _ratio(
    measured: Participant, contender: str, reference: Participant, other: str, name: str
) -> Ratio:
    return ratios.ratio(measured.blocks[contender], reference.blocks[other], name)


def record(
    participant: Participant, contender: str, timing: Timing, compared: Sequence[Ratio]
) -> model.Timing:
    """Return a contender's line of the results file; `failed` if it was not measured."""
    cell = participant.cell
    blocks = participant.blocks.get(contender, [])
    measured = participant.measured and bool(blocks)
    assert participant.record is not None
    return model.Timing(
        timing=cell.clause,
        contender=contender,
        implementation=cell.implementation,
        target=cell.target,
        topology=cell.topology,
        illustrates=tuple(timing.illustrates),
        seconds=model.Spread(**ratios.seconds(blocks)) if measured else None,
        rounds=sum(map(len, blocks)),
        ratios=tuple(model.Ratio(**asdict(one), says=str(one)) for one in compared),
        failed=None if measured else f"{participant.record.verdict}: {participant.record.reason}",
        verdict=participant.record.verdict,
    )
