"""Compare what a step costs: bytes moved, programs compiled, memory used."""

from __future__ import annotations

from collections.abc import Iterator

from reports.analysis.comparing.fields import REPEATED
from reports.analysis.effects.digest import Step
from reports.analysis.effects.effect import Effect, ShownEffect

MORE_MEMORY = 1.4  # times as much at the peak: runs of one program differ by up to 1.35 times
MORE_FUNCTIONS = 10  # times as many as before: then a call's own work in Python is noticed


def costs(old: Step, new: Step) -> Iterator[ShownEffect]:
    """Yield every cost that both measured and that differs."""
    yield from _moved(old, new)
    # What a first call compiles depends on what was compiled before it in the same process.
    if new.name in REPEATED and old.compiled == 0 and (new.compiled or 0) > 0:
        sentence = f"compiles {new.compiled} programs again in “{new.name}”"
        kind = "What was compiled before is traced and compiled again"
        yield ShownEffect(Effect.SLOWER, sentence, new.name, kind)
    if old.functions is not None and (new.functions or 0) > MORE_FUNCTIONS * (old.functions + 1):
        sentence = (
            f"a call runs some {new.functions} Python functions, where it ran {old.functions}"
        )
        yield ShownEffect(
            Effect.SLOWER, sentence, new.name, "Each call runs many Python functions more"
        )
    yield from _memory(old, new)


def _moved(old: Step, new: Step) -> Iterator[ShownEffect]:
    if old.collectives is None or new.collectives is None:
        return
    before, after = _kinds(old), _kinds(new)
    shape = f"{before} → {after}"
    more = new.moved_bytes - old.moved_bytes
    by_host = bool(new.by_host) - bool(old.by_host)
    if more > 0 or by_host > 0:
        size = f"moves {size_of(more)} more" if more > 0 else "copies through the host"
        kind = f"More is moved: {after} in place of {before}"
        yield ShownEffect(Effect.MOVES_MORE, f"{size}: {shape}", new.name, kind)
    elif more < 0 or by_host < 0:
        size = f"moves {size_of(-more)} less" if more < 0 else "copies no longer through the host"
        yield ShownEffect(Effect.REPAIRED, f"{size}: {shape}", new.name, f"moves less: {shape}")


def _kinds(step: Step) -> str:
    kinds = [name for name, count in step.collectives or () if count]
    if step.by_host:
        kinds.append("through the host")
    return ", ".join(kinds) or "nothing"


def _memory(old: Step, new: Step) -> Iterator[ShownEffect]:
    if old.memory is not None and new.memory is not None:
        sentence = f"{old.memory:.2g} → {new.memory:.2g} times its bytes at the peak"
        if new.memory > MORE_MEMORY * old.memory:
            yield ShownEffect(
                Effect.NEEDS_MORE_MEMORY, f"needs {sentence}", new.name, "a higher peak"
            )
        elif old.memory > MORE_MEMORY * new.memory:
            yield ShownEffect(Effect.REPAIRED, f"needs less: {sentence}", new.name, "a lower peak")
    if old.reused is not None and new.reused is not None and old.reused != new.reused:
        sentence = f"{old.reused} → {new.reused} donated buffers taken over"
        if new.reused < old.reused:
            kind = "fewer donated buffers are taken over"
            yield ShownEffect(Effect.NEEDS_MORE_MEMORY, sentence, new.name, kind)
        else:
            yield ShownEffect(
                Effect.REPAIRED, sentence, new.name, "more donated buffers are taken over"
            )
    if old.gone is not None and new.gone is not None and old.gone != new.gone:
        if sum(new.gone) < sum(old.gone):
            sentence = "a donated argument is kept, where it was deleted"
            yield ShownEffect(Effect.NEEDS_MORE_MEMORY, sentence, new.name, sentence)
        else:
            sentence = "a donated argument is deleted, where it was kept"
            yield ShownEffect(Effect.REPAIRED, sentence, new.name, sentence)


def size_of(count: int) -> str:
    """Format a number of bytes."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
