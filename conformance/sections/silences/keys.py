"""PRNG keys, typed and raw: mapped, unmapped, made, split, sent to other devices and returned.

The models compute Threefry in NumPy, so that a key on the wrong device, or a generator that counts
differently in a mapped body, is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import ONE_PROCESS_ALONE
from conformance.spec.clause import devices
from conformance.spec.columns import everywhere
from conformance.spec.comparing import Keys, Model
from conformance.spec.expectation import TWICE, in_steps, returns
from conformance.spec.family import family, table
from conformance.spec.texts import described, text_of
from conformance.spec.topology import Place
from conformance.worker.protocols import Cluster, Implementation

WIDTH = 2  # random words of each row, and words of a raw key

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF


def threefry(key: Any, high: int, low: int) -> tuple[int, int]:
    """Threefry-2x32 of 20 rounds."""
    first, second = int(key[0]), int(key[1])
    schedule = (first, second, first ^ second ^ _PARITY)
    a, b = (high + first) & _WORD, (low + second) & _WORD
    for turn in range(5):
        for rotation in _ROTATIONS[turn % 2]:
            a = (a + b) & _WORD
            b = ((b << rotation) | (b >> (32 - rotation))) & _WORD
            b ^= a
        a = (a + schedule[(turn + 1) % 3]) & _WORD
        b = (b + schedule[(turn + 2) % 3] + turn + 1) & _WORD
    return a, b


def words(key: Any) -> list[int]:
    """`jax.random.bits(key, (WIDTH,))`."""
    return [a ^ b for a, b in (threefry(key, 0, i) for i in range(WIDTH))]


def data(place: Place) -> Any:
    """A raw key for each device."""
    return place.rows(WIDTH, dtype=np.uint32)


WHOLE = (7, 9)


@described("random words from each device's key")
def _words(place: Place) -> Any:
    return np.array([words(key) for key in data(place)], np.uint32)


@described("random words from the one key, plus each device's number")
def _words_of_whole(place: Place) -> Any:
    return (np.array(words(WHOLE))[None] + np.arange(8)[:, None]).astype(np.uint32)


@described("each key, with 5 folded in")
def _folded(place: Place) -> Any:
    return np.array([threefry(key, 0, 5) for key in data(place)], np.uint32)


@described("each key, with 5 folded in twice")
def _folded_twice(place: Place) -> Any:
    return np.array([threefry(key, 0, 5) for key in _folded(place)], np.uint32)


@described("each key, split in two")
def _split(place: Place) -> Any:
    return np.array([[threefry(key, 0, i) for i in (0, 1)] for key in data(place)], np.uint32)


@described("a key of each device's number")
def _seeded(place: Place) -> Any:
    return np.array([(0, seed) for seed in range(8)], np.uint32)


@described("the key of the device before")
def _sent(place: Place) -> Any:
    return np.roll(data(place), 1, axis=0)


@described("the one key, from each device")
def _copies(place: Place) -> Any:
    return np.broadcast_to(np.array(WHOLE, np.uint32), (8, 2))


@described("all keys, on each device")
def _gathered(place: Place) -> Any:
    return np.broadcast_to(data(place), (8, 8, 2))


AROUND = [(i, (i + 1) % 8) for i in range(8)]


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a key in a mapped function; `seeds` if it gets numbers, `whole` if the key is
    unmapped.
    """

    key: str
    text: str
    body: Callable[[bool], Callable[..., Any]]
    model: Model
    seeds: bool = False
    whole: bool = False
    again: bool = False
    under_jit: bool = False


USES: Mapping[str, Use] = table(
    Use(
        "mapped",
        "random words from a mapped key",
        lambda typed: lambda k: jax.random.bits(k, (WIDTH,)),
        _words,
    ),
    Use(
        "whole",
        "random words from an unmapped key",
        lambda typed: lambda n, k: jax.random.bits(k, (WIDTH,)) + n.astype(np.uint32),
        _words_of_whole,
        seeds=True,
        whole=True,
    ),
    Use(
        "folded",
        "a number folded into a mapped key",
        lambda typed: lambda k: jax.random.fold_in(k, 5),
        _folded,
    ),
    Use(
        "fed-back",
        "keys returned by the mapped function and passed to it again",
        lambda typed: lambda k: jax.random.fold_in(k, 5),
        _folded_twice,
        again=True,
    ),
    Use(
        "split",
        "a mapped key split in two",
        lambda typed: lambda k: jax.random.split(k, 2),
        _split,
    ),
    Use(
        "made",
        "a key made in the body",
        lambda typed: lambda n: (jax.random.key if typed else jax.random.PRNGKey)(n),
        _seeded,
        seeds=True,
    ),
    Use(
        "sent",
        "a key sent to the next device",
        lambda typed: lambda k: jax.lax.ppermute(k, "i", AROUND),
        _sent,
    ),
    Use(
        "gathered",
        "the keys of all devices, gathered by all_gather",
        lambda typed: lambda k: jax.lax.all_gather(k, "i"),
        _gathered,
    ),
    Use(
        "under-jit",
        "random words from a mapped key, under jit",
        lambda typed: lambda k: jax.random.bits(k, (WIDTH,)),
        _words,
        under_jit=True,
    ),
    Use(
        "returned-whole",
        "an unmapped key that is returned",
        lambda typed: lambda n, k: k,
        _copies,
        seeds=True,
        whole=True,
    ),
)


@family(
    "silences.keys.{kind}-{use}",
    kind={"typed": True, "raw": False},
    use=USES,
    claim="pmap-silence.prng-keys",
    title=lambda kind, use: f"Keys, {'typed' if kind else 'raw'}: {use.text}.",
    fact="silences.keys.{kind}",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(2),
    expect=lambda use: everywhere(in_steps(returns(use.model), *TWICE)),
)
def used(impl: Implementation, cluster: Cluster, kind: bool, use: Use) -> None:
    """A map of keys, called twice."""
    wrap = jax.random.wrap_key_data if kind else jax.numpy.asarray
    function = impl.map(use.body(kind), in_axes=(0, None) if use.whole else 0)
    if use.under_jit:
        function = jax.jit(function)
    given = np.arange(8, dtype=np.int32) if use.seeds else wrap(data(cluster))
    arguments = [given, wrap(np.array(WHOLE, np.uint32))] if use.whole else [given]

    def call() -> Any:
        keys = function(*arguments)
        keys = function(keys) if use.again else keys
        # Converted on their devices, outside the mapped function: NumPy has no typed keys.
        is_typed = jax.dtypes.issubdtype(keys.dtype, jax.dtypes.prng_key)
        return jax.random.key_data(keys) if is_typed else keys

    cluster.twice(call)


def kept(use: Use) -> Model:
    """The same keys, typed."""

    @described(f"typed keys: {text_of(use.model) or use.text}")
    def model(place: Place) -> Any:
        return Keys(use.model(place))

    return model


RETURNED: Mapping[str, Use] = {
    key: USES[key] for key in ("folded", "split", "made", "sent", "returned-whole")
}


@family(
    "silences.keys.kept-{use}",
    use=RETURNED,
    claim="pmap-silence.prng-keys",
    title="Typed keys are returned as typed keys: {use.text}.",
    fact="silences.keys.kept",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(2),
    expect=lambda use: everywhere(in_steps(returns(kept(use)), *TWICE)),
)
def kept_typed(impl: Implementation, cluster: Cluster, use: Use) -> None:
    """A map of typed keys, called twice; what it returns is left as it is."""
    function = impl.map(use.body(True), in_axes=(0, None) if use.whole else 0)
    wrap = jax.random.wrap_key_data
    given = np.arange(8, dtype=np.int32) if use.seeds else wrap(data(cluster))
    arguments = [given, wrap(np.array(WHOLE, np.uint32))] if use.whole else [given]
    cluster.twice(function, *arguments)
