"""Derive the effect between a baseline cell and another from their observations.

The baseline is what a user's program did. A value that a document announces as changed counts as
changed: whether the document is right is not asked here. Without a baseline, only what is dangerous
by itself is an effect: a crash, values that differ from the model, a second call that fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from reports.analysis.comparing.fields import apart_by_rounding, message_kept
from reports.analysis.effects.costs import costs
from reports.analysis.effects.digest import (
    RAISED,
    RETURNED,
    Died,
    Digest,
    Failed,
    Leaf,
    Step,
    of_job,
)
from reports.analysis.effects.effect import SAME, Effect, ShownEffect, not_measured
from reports.store.codes import (
    COLLECTIVE,
    DONATION,
    DTYPE,
    MEMORY,
    OF_VALUES,
    SHAPE,
    VALUE,
    WARNING,
    WEAK_TYPE,
    WITHOUT_THE_FIX,
)

CRASHED = "crashed"
OF_ALL_ROWS = "the array is of all processes' rows, not of this process's rows"
NO_BASELINE = "the baseline says nothing of it"

# How the values are wrong that are of no known mistake, by the code of what differs.
_KINDS = {VALUE: "wrong values", SHAPE: "wrong shape", DTYPE: "wrong dtype"}
_OF_CODE = {
    **dict.fromkeys(OF_VALUES, Effect.WRONG_NUMBERS),
    WEAK_TYPE: Effect.OTHER_OUTPUT,
    COLLECTIVE: Effect.MOVES_MORE,
    MEMORY: Effect.NEEDS_MORE_MEMORY,
    DONATION: Effect.NEEDS_MORE_MEMORY,
    WARNING: Effect.WARNS,
}
_ARRAYS = ("ArrayImpl", "ndarray")
_SAID = 160  # characters of an error's text in a sentence
_NUMBERS_SHOWN = 6
_WORDS_KEPT = 5
# How a process of a plain job ends: not at all, by a signal, or with an exit status.
_HANGS, _SIGNAL, _STATUS = "hangs", "SIG", "exit "
_DEADLOCK = "Deadlock"  # what a probe raises in place of threads that never return
REPEATS = ("second call", " again")  # how the names of steps end that repeat one
# What a probe counted and returned, which no user's program computes.
_COUNTED = {"as often as it was traced after each call": "The function is traced again"}


def derive(old: Digest | None, new: Digest) -> ShownEffect:
    """Return the most severe effect from `old` to `new`; of `new` alone if there is no `old`."""
    if new.died is not None:
        return _death(old, new.died)
    if old is None:
        return min(_alone(new), key=_rank, default=not_measured(NO_BASELINE))
    if old.died is not None:
        return min(_alone(new), key=_rank, default=_revived(old.died, new))
    return min(_compared(old, new), key=_rank, default=SAME)


def of_failing(old: Digest | None, new: Digest) -> ShownEffect:
    """Return as `derive` does, of the steps alone that are not as expected, if these change."""
    if old is None or old.died is not None or new.died is not None:
        return derive(old, new)
    failing = {step.name for _, step in new.steps() if step.failed}
    found = [*_compared(old, new)]
    some = [one for one in found if one.step in failing]
    return min(some or found, key=_rank, default=SAME)


def unlike_expected(new: Digest) -> Effect:
    """Return how an error is none, or another, than the one that a step's test expects."""
    found = [Effect.SAME]
    for _, step in new.steps():
        if not step.failed or step.name == WITHOUT_THE_FIX:
            continue
        expected = any(one.error_expected for one in step.failed)
        if step.outcome == RAISED:
            found.append(Effect.OTHER_ERROR if expected else Effect.RAISES)
        elif expected:
            found.append(Effect.TAKEN)
    return min(found, key=lambda effect: effect.rank)


def beside(known: Effect, old: Digest | None, new: Digest) -> Effect:
    """Return the most severe effect beside one that is explained otherwise."""
    if old is None or old.died is not None or new.died is not None:
        return Effect.SAME
    found = (one.effect for one in _compared(old, new))
    some = (effect for effect in found if effect is not known)
    return min(some, key=lambda effect: effect.rank, default=Effect.SAME)


def alone(new: Digest) -> tuple[ShownEffect, ...]:
    """Return what is dangerous without a comparison, one of each effect."""
    if new.died is not None:
        return (_death(None, new.died),)
    found: dict[tuple[Effect, bool], ShownEffect] = {}
    for one in _alone(new):
        found.setdefault((one.effect, one.second_call), one)
    return tuple(found.values())


def job_died(step: Step) -> Effect | None:
    """Return how a process of a plain job failed: hung, or ended by a signal; None if it
    did not.
    """
    if not step.failed or not of_job(step.name):
        return None
    if step.job == _HANGS:
        return Effect.HANGS
    return Effect.CRASHES if step.job.startswith(_SIGNAL) else None


def failing(new: Digest) -> ShownEffect | None:
    """Return how a remedy's own steps fail; None if they do not."""
    if new.died is not None:
        return _death(None, new.died)
    for _, step in new.steps():
        if not step.failed or step.name == WITHOUT_THE_FIX:
            continue
        if step.outcome == RAISED:
            return ShownEffect(Effect.RAISES, _error(step), step.name, _kind(step))
        first = step.failed[0]
        sentence = f"not as it should be: {_cut(first.saw)}"
        return ShownEffect(
            _OF_CODE.get(first.code, Effect.LIES_ELSEWHERE), sentence, step.name, first.code
        )
    return None


def _rank(shown: ShownEffect) -> int:
    return shown.effect.rank


def _death(old: Digest | None, died: Died) -> ShownEffect:
    before = old.died if old is not None else None
    effect = Effect.CRASHES if died.kind == CRASHED else Effect.HANGS
    if before is not None and before.kind == died.kind:
        return SAME
    how = f"the process dies ({', '.join(died.signals)})" if died.signals else "the process dies"
    what = how if effect is Effect.CRASHES else "no answer before the deadline"
    detail = died.detail.split(";")[0]  # after which come stacks
    return ShownEffect(effect, f"{what}: {detail}", died.in_step, what)


def _revived(died: Died, new: Digest) -> ShownEffect:
    raised = next((step for _, step in new.steps() if step.outcome == RAISED), None)
    before = "crashed" if died.kind == CRASHED else "hung"
    after = f"raises {raised.error}" if raised is not None else "comes back"
    return ShownEffect(Effect.REPAIRED, f"{before} → {after}", died.in_step, f"{before} before")


def job_failure(new: Digest) -> Effect | None:
    """Return the most severe failure of a plain job's processes; None if none failed."""
    found = filter(None, (_failure(step) for _, step in new.steps() if of_job(step.name)))
    return min(found, key=lambda effect: effect.rank, default=None)


def _alone(new: Digest) -> Iterator[ShownEffect]:
    loud = _loud(new)
    for _, steps in new.processes:
        before: Step | None = None
        for step in steps:
            if step.name == WITHOUT_THE_FIX:
                continue
            if step.name in _COUNTED:
                continue
            if step.outcome == RETURNED and (wrong := _wrong(step)) is not None:
                if step.name not in loud:
                    yield _other_numbers(step, wrong)
            elif (died := job_died(step)) is not None:
                yield ShownEffect(died, _cut(step.failed[0].saw), step.name, died.value)
            elif _deadlocked(step):
                yield ShownEffect(Effect.HANGS, _error(step), step.name, _kind(step))
            elif _fails_again(before, step) and step.failed and not _refused(before, step):
                yield ShownEffect(
                    Effect.RAISES, _error(step), step.name, _kind(step), second_call=True
                )
            before = step


def _loud(new: Digest) -> frozenset[str]:
    """The steps that raise in any process: a wrong value in another one is no silent one."""
    return frozenset(step.name for _, step in new.steps() if step.outcome == RAISED)


def _compared(old: Digest, new: Digest) -> Iterator[ShownEffect]:
    yield from _ending(old, new)
    there, loud = dict(new.processes), _loud(new)
    for process, steps in old.processes:
        after = {step.name: step for step in there.get(process, ())}
        before: Step | None = None
        for step in steps:
            if (other := after.get(step.name)) is not None and step.name != WITHOUT_THE_FIX:
                if step != other:  # as most are not
                    for shown in _steps(step, other, before):
                        if shown.effect is not Effect.WRONG_NUMBERS or step.name not in loud:
                            yield shown
                before = other


def _steps(old: Step, new: Step, before: Step | None) -> Iterator[ShownEffect]:
    match old.outcome, new.outcome:
        case "returned", "raised":
            second = _fails_again(before, new)
            effect = Effect.HANGS if _deadlocked(new) else Effect.RAISES
            sentence = f"returned → {_error(new)}"
            yield ShownEffect(effect, sentence, new.name, _kind(new), second_call=second)
        case "raised", "returned":
            if (wrong := _wrong(new)) is not None:
                yield replace(_other_numbers(new, wrong, f"raised {old.error} → "), refused=True)
            else:
                accepted = any(one.error_expected for one in new.failed)
                yield ShownEffect(
                    Effect.TAKEN if accepted else Effect.REPAIRED,
                    f"raised {old.error}: {_cut(old.message)} → returns",
                    new.name,
                    f"raised {old.error} → returns",
                )
        case "raised", "raised":
            if old.error != new.error:
                yield ShownEffect(
                    Effect.OTHER_ERROR,
                    f"raised {old.error} → {_error(new)}",
                    new.name,
                    f"raised {old.error} → {_kind(new)}",
                )
        case "returned", "returned" if old.name in _COUNTED:
            yield from _counts(old, new)
        case "returned", "returned":
            yield from _values(old, new)
            yield from costs(old, new)
    yield from _warnings(old, new)


def _ending(old: Digest, new: Digest) -> Iterator[ShownEffect]:
    """Yield how a plain job ends otherwise: in a failure that is new, or in none any more."""
    before, after = ([step for _, step in one.steps() if of_job(step.name)] for one in (old, new))
    known = {_failure(step) for step in before}
    for step in after:
        effect = _failure(step)
        if effect is None or effect in known or (effect is Effect.RAISES and known != {None}):
            continue
        yield ShownEffect(effect, _cut(step.failed[0].saw), step.name, effect.value)
    if not any(step.failed for step in after):
        ends = {step.name: step.job for step in after}
        for step in before:
            if step.failed and step.job != ends.get(step.name, step.job):
                sentence = f"{step.job} → {ends[step.name]}"
                yield ShownEffect(Effect.REPAIRED, sentence, step.name, f"{step.job} before")


def _failure(step: Step) -> Effect | None:
    """Return how a process of a plain job failed; None if it did not, or printed other lines."""
    if (died := job_died(step)) is not None:
        return died
    failed = step.failed and step.job.startswith(_STATUS) and step.job != f"{_STATUS}0"
    return Effect.RAISES if failed else None


def _fails_again(before: Step | None, step: Step) -> bool:
    """Return whether a step raised that repeats one that did not."""
    return (
        step.outcome == RAISED
        and step.name.endswith(REPEATS)
        and before is not None
        and before.outcome == RETURNED
    )


def _refused(before: Step | None, step: Step) -> bool:
    """Return whether a step has to raise after one that ended as it should: with another error."""
    expected = any(one.error_expected for one in step.failed)
    return expected and before is not None and not before.failed


def _deadlocked(step: Step) -> bool:
    """Return whether threads of a step waited for each other forever."""
    return step.outcome == RAISED and step.error == _DEADLOCK


def _wrong(step: Step) -> Failed | None:
    """Return the comparison by which a value differs from the model; None if none does."""
    return next((one for one in step.failed if one.code in OF_VALUES or one.mistake), None)


def _other_numbers(step: Step, wrong: Failed, before: str = "") -> ShownEffect:
    kind = f"it is {message_kept(wrong.mistake)}" if wrong.mistake else _KINDS[wrong.code]
    sentence = f"{before}returns: {_cut(wrong.saw)}"
    return ShownEffect(Effect.WRONG_NUMBERS, sentence, step.name, f"{before}{kind}")


def _values(old: Step, new: Step) -> Iterator[ShownEffect]:
    if len(old.leaves) != len(new.leaves):
        sentence = f"returned {len(old.leaves)} values → returns {len(new.leaves)}"
        yield _changed(old, new, sentence, "another number of values")
        return
    for one, other in zip(old.leaves, new.leaves, strict=True):
        found = _leaf(old, new, one, other)
        if found is not None:
            yield found


def _counts(old: Step, new: Step) -> Iterator[ShownEffect]:
    before, after = (
        tuple(n for leaf in step.leaves for n in leaf.values or ()) for step in (old, new)
    )
    counted = _COUNTED[old.name]
    if before < after:
        sentence = f"{counted}: {_shown(after)} in place of {_shown(before)} times after each call"
        yield ShownEffect(Effect.SLOWER, sentence, new.name, counted)
    elif before > after:
        yield ShownEffect(
            Effect.REPAIRED, f"{counted} less often", new.name, f"{counted} less often"
        )


def _leaf(old: Step, new: Step, one: Leaf, other: Leaf) -> ShownEffect | None:
    measured = one.type == other.type and one.type not in _ARRAYS
    if one == other or (measured and _wrong(old) is None and _wrong(new) is None):
        return None  # a number of the host's that both may have: a size, a duration, a device's id
    if one.dtype != other.dtype:
        return _changed(old, new, f"returned {one.dtype} → {other.dtype}", "another dtype")
    if one.local is not None and other.local is not None and one.local != other.local:
        sentence = f"returned shape {[*one.local]} here → {[*other.local]}"
        return _changed(old, new, sentence, "another shape")
    if one.values is not None and other.values is not None and one.values != other.values:
        if not apart_by_rounding(one.values, other.values, one.dtype):
            sentence = _numbers(one.values, other.values)
            return _changed(old, new, sentence, "other numbers")
    elif one.text != other.text and _wrong(new) is not None and _wrong(old) is None:
        return _changed(old, new, f"returned {_cut(one.text)} → {_cut(other.text)}", "another text")
    if (where := _place(one, other)) is not None:
        return ShownEffect(Effect.LIES_ELSEWHERE, where[0], new.name, where[1])
    return _promoted(one, other, new.name)


def _changed(old: Step, new: Step, sentence: str, shape: str) -> ShownEffect:
    """Return the effect of another result: fixed only if the model says wrong before and
    right now.
    """
    if _wrong(old) is not None and _wrong(new) is None:
        return ShownEffect(
            Effect.REPAIRED, f"wrong before: {sentence}", new.name, f"right now: {shape}"
        )
    return ShownEffect(Effect.WRONG_NUMBERS, sentence, new.name, shape)


def _place(one: Leaf, other: Leaf) -> tuple[str, str] | None:
    """Return how equal values are held otherwise: exactly, and by kind; None if they are not."""
    if one.shape != other.shape:
        wider = len(other.devices or ()) > len(one.devices or ())
        kind = OF_ALL_ROWS if wider else "the array is of another shape"
        return f"{kind}: shape {[*one.shape]} → {[*other.shape]}", kind
    if one.type != other.type:
        sentence = f"{one.type} → {other.type}"
        return sentence, sentence
    if one.deleted != other.deleted:
        sentence = "deleted now" if other.deleted else "no longer deleted"
        return sentence, sentence
    kinds = one.memory_kind, other.memory_kind
    if one.memory_kind != other.memory_kind and all(kinds):
        sentence = f"in memory {one.memory_kind} → {other.memory_kind}"
        return sentence, sentence
    if one.devices is not None and other.devices is not None and one.devices != other.devices:
        return _devices(one.devices, other.devices)
    if one.committed is not None and other.committed is not None:
        words = ("not bound to devices", "bound to its devices")
        if one.committed != other.committed:
            sentence = f"{words[one.committed]} → {words[other.committed]}"
            return sentence, sentence
    return None


def _promoted(one: Leaf, other: Leaf, step: str) -> ShownEffect | None:
    """Return the effect of another weak type: what the value is combined with has another dtype."""
    if None in (one.weak, other.weak) or one.weak == other.weak:
        return None
    words = ("strongly typed", "weakly typed")
    sentence = f"{words[bool(one.weak)]} → {words[bool(other.weak)]}"
    return ShownEffect(Effect.OTHER_OUTPUT, sentence, step, sentence)


def _devices(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[str, str]:
    exact = f"devices {[*one]} → {[*other]}"
    if sorted(one) == sorted(other):
        return exact, "the same devices in another order"
    if len(one) == len(other):
        return exact, "on other devices"
    return exact, "on more devices" if len(other) > len(one) else "on fewer devices"


def _warnings(old: Step, new: Step) -> Iterator[ShownEffect]:
    known = {(category, message_kept(text)) for category, text in old.warnings}
    for category, text in new.warnings:
        if (category, message_kept(text)) not in known:
            kind = f"{category}: {message_kept(text)}"
            yield ShownEffect(Effect.WARNS, f"warns: {category}: {_cut(text)}", new.name, kind)


def _error(step: Step) -> str:
    return f"raises {step.error}: {_cut(step.message)}" if step.message else f"raises {step.error}"


def _kind(step: Step) -> str:
    """Return an error's type and the beginning of its message, which names no arguments."""
    return f"raises {step.error}: {' '.join(step.known_by.split()[:_WORDS_KEPT])}"


def _cut(text: str) -> str:
    return text if len(text) <= _SAID else text[:_SAID] + "…"


def _numbers(one: tuple[object, ...], other: tuple[object, ...]) -> str:
    """Return old and new values, from where they first differ."""
    pairs = enumerate(zip(one, other, strict=False))
    first = next((place for place, (a, b) in pairs if a != b), 0)
    where = f" from element {first} on" if first else ""
    return f"returned {_shown(one[first:])} → {_shown(other[first:])}{where}"


def _shown(values: tuple[object, ...]) -> str:
    shown = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values[:_NUMBERS_SHOWN])
    return f"[{shown}, …]" if len(values) > _NUMBERS_SHOWN else f"[{shown}]"
