"""A small results file for the tests of `reports`: every verdict once, and hostile text."""

from __future__ import annotations

from records import (
    Record,
    cause,
    cell,
    claim,
    clause,
    deviation,
    fault,
    fault_process,
    finding,
    leaf,
    observation,
    raised,
    returned,
    target,
    unavailable,
)

MARKUP = "<script>alert"
HOSTILE = f"{MARKUP}('&\"')</script>\x1b[31m\ud800"

VERDICT_CELLS = (
    "conforms",
    "deviates",
    "known deviation",
    "removed",
    "not applicable",
    "crashed",
    "hung",
    "flaky",
    "not run",
)


def sample() -> list[Record]:
    """One clause per verdict, a remedy, a gap, an unavailable target, hostile text everywhere."""
    ids = [f"errors.{verdict.replace(' ', '-')}" for verdict in VERDICT_CELLS]
    unknown = fault_process(state=HOSTILE, signal=HOSTILE, stack=HOSTILE, log=HOSTILE)
    hostile_cell = cell(
        "errors.fix",
        "crashed",
        implementation="shard_map",
        reason=HOSTILE,
        findings=[finding(HOSTILE, "value", expected=HOSTILE, step=HOSTILE)],
        deviation=deviation(link="javascript:alert(1)", why=HOSTILE, observed=HOSTILE),
        fault=fault("crashed", detail=HOSTILE, processes=[unknown]),
        observations=[hostile_observation()],
        reproduce=HOSTILE,
    )
    return [
        target(),
        unavailable("jax==0.12.0.1", "no Python of 3.12 or newer"),
        claim("migrate-pmap.errors"),
        claim("migrate-pmap.gap", ref="C9", heading="Performance", statement=f"Gap {HOSTILE}"),
        cause("a-cause"),
        *(clause(id) for id in ids),
        clause("errors.fix", fixes="errors.deviates", title=HOSTILE, source=HOSTILE),
        *(cell(id, verdict) for id, verdict in zip(ids, VERDICT_CELLS, strict=True)),
        hostile_cell,
        cell("errors.conforms", implementation="legacy_pmap", topology="1x8"),
    ]


def hostile_observation() -> Record:
    """An observation whose every text is hostile, with keys that no report knows."""
    sharding = {"type": HOSTILE, HOSTILE: HOSTILE, "mesh": {HOSTILE: 2}}
    array = leaf([1.0], path=HOSTILE, type=HOSTILE, dtype=HOSTILE, sharding=sharding)
    array |= {"values": [HOSTILE] * 40, HOSTILE: HOSTILE}
    first = returned(
        array,
        array,
        name=HOSTILE,
        tree=HOSTILE,
        warnings=[{"category": HOSTILE, "message": HOSTILE, "count": 1}],
        logs=[{"logger": HOSTILE, "level": HOSTILE, "message": HOSTILE}],
        extra={HOSTILE: HOSTILE},
    )
    second = raised(HOSTILE, HOSTILE, name=HOSTILE, module=HOSTILE, phase=HOSTILE, frames=[HOSTILE])
    witness = [{"wrapper": HOSTILE, "outputs": [HOSTILE]}]
    return observation(first, second, jax=HOSTILE, implementation=HOSTILE, witness=witness) | {
        HOSTILE: HOSTILE
    }
