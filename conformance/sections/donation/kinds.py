"""The kinds of donated arguments, each with the mapped function that takes it.

One table serves the clauses on deletion, on peaks of memory and on reuse, so that they test the
same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.donation.arrays import (
    Given,
    Make,
    in_numpy,
    on_one,
    on_others,
    own_output,
    placed,
    uncommitted,
    unmapped_array,
    unmapped_on,
    unmapped_uncommitted,
)
from conformance.spec.comparing import Model, in_container
from conformance.spec.expectation import raises, returns
from conformance.spec.expected import Expectation
from conformance.spec.family import table
from conformance.spec.texts import described, text_of
from conformance.spec.topology import ONE_AND_SEVERAL, ONE_AND_TWO, ONE_PROCESS, Place
from conformance.worker.bodies import add, addend, double, doubled
from conformance.worker.protocols import Cluster, Implementation, Mapped

WIDTH = 16  # elements of a row by default; a multiple of every topology's devices

INCOMPATIBLE = raises(
    ValueError, "Received incompatible devices for jitted computation", phase="lower"
)

OF_TWO = "two processes are several: no process sees how many others there are"
UNDER_JIT = "what a map under jit spans in several processes is indexing.under-jit.psum's question"
HALF = "half of the devices of several processes are other processes: a map of its own kind"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is about to be made: what it donates, what it must leave, and in what form.

    `arguments` makes the positional arguments of the donated and the kept arrays, in this order.
    """

    donated: tuple[Given, ...]
    kept: tuple[Given, ...] = ()
    form: Callable[..., tuple[Any, ...]] = lambda *arrays: arrays
    keyword: str = ""  # by which the last of the kept arrays is passed

    def made(self, function: Callable[..., Any]) -> Any:
        """The call's result."""
        arrays = [one.array for one in (*self.donated, *self.kept)]
        named = {self.keyword: arrays.pop()} if self.keyword else {}
        return function(*self.form(*arrays), **named)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to donate: the mapped function, the call (with new arguments), and the expected
    result.

    `call` and `model` take the width of a row.
    """

    key: str
    said: str
    map: Callable[[Implementation], Callable[..., Any]]
    call: Callable[[Implementation, Cluster, int], Call]
    model: Callable[[int], Model]
    topologies: tuple[str, ...] = ONE_AND_TWO
    pmap_only: str = ""
    left_out: str = OF_TWO  # why a topology that a user would ask for is not run

    @property
    def right(self) -> Expectation:
        """Return the expectation of the result, for rows of `WIDTH`."""
        model = self.model(WIDTH)
        contained = in_container(CONTAINERS.get(self.key, _as_it_is), model)
        return returns(contained, text=text_of(model) or "the right values")


def _as_it_is(result: Any) -> Any:
    return result


# The result for two arrays, by the key of a kind.
CONTAINERS: Mapping[str, Callable[[Any], Any]] = {
    "tree": lambda pair: {"a": pair[0], "b": [pair[1]]},
    "tree-partly": lambda pair: {"a": pair[0], "b": [pair[1]]},
    "two-arguments": tuple,
    "unmapped": tuple,
}


# --- The calls


def giving(
    *donated: Make,
    kept: Sequence[Make] = (),
    form: Callable[..., tuple[Any, ...]] = lambda *arrays: arrays,
    keyword: str = "",
) -> Callable[[Implementation, Cluster, int], Call]:
    """Return a maker of calls with new arrays, of this form."""

    def call(impl: Implementation, cluster: Cluster, width: int) -> Call:
        return Call(
            tuple(make(impl, cluster, width) for make in donated),
            tuple(make(impl, cluster, width) for make in kept),
            form,
            keyword,
        )

    return call


# --- The maps


def doubling(impl: Implementation) -> Mapped:
    """A map whose output can take over its donated input's buffers."""
    return impl.map(double(), donate_argnums=(0,))


def doubling_tree(impl: Implementation) -> Mapped:
    """The same, of each leaf of a pytree."""
    return impl.map(lambda tree: jax.tree.map(lambda x: x * 2, tree), donate_argnums=(0,))


def _static_map(first: bool) -> Callable[[Implementation], Mapped]:
    def make(impl: Implementation) -> Mapped:
        static, donated = (0, 1) if first else (1, 0)
        if impl.is_pmap:
            body: Callable[..., Any] = (lambda n, x: x * n) if first else (lambda x, n: x * n)
            return impl.map(body, static_broadcasted_argnums=static, donate_argnums=donated)
        rows = jax.sharding.PartitionSpec("i")

        def times(n: int, x: Any) -> Any:
            return jax.shard_map(lambda x: x * n, mesh=impl.mesh(), in_specs=rows, out_specs=rows)(
                x
            )

        function = times if first else lambda x, n: times(n, x)
        jitted = jax.jit(function, static_argnums=static, donate_argnums=donated)
        return impl.adopt(jitted, "jit(shard_map)")

    return make


def _unmapped_map(impl: Implementation) -> Mapped:
    """The output that is not mapped can take over the buffers of the input that is not mapped."""

    def body(x: Any, y: Any) -> Any:
        return x * 2, y * 2

    if impl.is_pmap:
        return impl.map(body, in_axes=(0, None), out_axes=(0, None), donate_argnums=(1,))
    specs = jax.sharding.PartitionSpec("i"), jax.sharding.PartitionSpec()
    function = jax.shard_map(body, mesh=impl.mesh(), in_specs=specs, out_specs=specs)
    return impl.adopt(jax.jit(function, donate_argnums=(1,)), "jit(shard_map)")


def _unmapped_in_a_list(impl: Implementation) -> Any:
    """The same, whose results are in a list, as models are."""
    mapped = _unmapped_map(impl)
    return lambda x, y: list(mapped(x, y))


def _half_map(impl: Implementation) -> Mapped:
    devices = impl.devices
    return impl.map(double(), donate_argnums=(0,), devices=devices[: len(devices) // 2])


def _under_jit(impl: Implementation) -> Any:
    inner = doubling(impl)
    return jax.jit(lambda x: inner(x))


def _jit_donating(impl: Implementation) -> Any:
    inner = impl.map(double())
    return jax.jit(lambda x: inner(x), donate_argnums=(0,))


NO_KEYWORDS = "shard_map takes no keyword arguments"


def twice_doubled(width: int) -> Model:
    """`doubling_tree` of a pytree with two leaves."""

    @described("this process's rows, doubled, two times")
    def model(place: Place) -> Any:
        return [place.rows(width) * 2] * 2

    return model


def tripled(width: int) -> Model:
    """The map with a static 3."""

    @described("this process's rows, times three")
    def model(place: Place) -> Any:
        return place.rows(width) * 3

    return model


def _as_tree(a: Any, b: Any) -> tuple[Any, ...]:
    return ({"a": a, "b": [b]},)


KINDS: Mapping[str, Kind] = table(
    # Sharded as required.
    Kind(
        "own-output",
        "a mapped function's own output",
        doubling,
        giving(own_output),
        doubled,
        ONE_AND_SEVERAL,
        left_out="",
    ),
    Kind(
        "placed",
        "an array that is already sharded as required",
        doubling,
        giving(placed("i")),
        doubled,
        ONE_AND_SEVERAL,
        left_out="",
    ),
    Kind(
        "two-arguments",
        "both of two arguments",
        lambda impl: impl.map(lambda x, y: (x * 2, y * 3), donate_argnums=(0, 1)),
        giving(own_output, own_output),
        lambda width: lambda place: [place.rows(width) * 2, place.rows(width) * 3],
    ),
    Kind(
        "second-argument",
        "the second of two arguments",
        lambda impl: impl.map(add(), donate_argnums=(1,)),
        giving(own_output, kept=(own_output,), form=lambda given, kept: (kept, given)),
        doubled,
    ),
    Kind(
        "tree",
        "a pytree",
        doubling_tree,
        giving(own_output, own_output, form=_as_tree),
        twice_doubled,
    ),
    Kind(
        "static-first",
        "an argument after a static one",
        _static_map(True),
        giving(own_output, form=lambda x: (3, x)),
        tripled,
    ),
    Kind(
        "static-last",
        "an argument before a static one",
        _static_map(False),
        giving(own_output, form=lambda x: (x, 3)),
        tripled,
    ),
    Kind(
        "unmapped",
        "an unmapped argument, replicated",
        _unmapped_map,
        giving(unmapped_array, kept=(own_output,), form=lambda given, kept: (kept, given)),
        lambda width: lambda place: [place.rows(width) * 2, addend(width) * 2],
    ),
    Kind(
        "beside-keyword",
        "a positional argument, with another passed by keyword",
        lambda impl: impl.map(add(), donate_argnums=(0,)),
        giving(own_output, kept=(own_output,), keyword="y"),
        doubled,
        pmap_only=NO_KEYWORDS,
    ),
    Kind(
        "jit-donating",
        "the argument of a jit that calls a mapped function",
        _jit_donating,
        giving(own_output),
        doubled,
        ONE_PROCESS,
        left_out=UNDER_JIT,
    ),
    # Otherwise.
    Kind(
        "other-spec",
        "an array with a different sharding over the same devices",
        doubling,
        giving(placed(None, "i")),
        doubled,
        ONE_AND_SEVERAL,
        left_out="",
    ),
    Kind(
        "replicated",
        "an array replicated over the same devices",
        doubling,
        giving(placed()),
        doubled,
    ),
    Kind(
        "one-device",
        "an array committed to one device",
        doubling,
        giving(on_one),
        doubled,
        ONE_AND_SEVERAL,
        left_out="",
    ),
    Kind(
        "other-devices",
        "an array on devices that the mapped function does not use",
        _half_map,
        giving(on_others),
        lambda width: lambda place: (place.rows(width) * 2)[: place.topology.devices // 2],
        ONE_PROCESS,
        left_out=HALF,
    ),
    Kind(
        "uncommitted",
        "an uncommitted array",
        doubling,
        giving(uncommitted),
        doubled,
        ONE_AND_SEVERAL,
        left_out="",
    ),
    Kind(
        "tree-partly",
        "a pytree with one replicated leaf",
        doubling_tree,
        giving(own_output, placed(), form=_as_tree),
        twice_doubled,
    ),
    # Nothing that could be reused.
    Kind("numpy", "a NumPy array", doubling, giving(kept=(in_numpy,)), doubled),
    Kind(
        "not-donated",
        "an argument of a mapped function without donation",
        lambda impl: impl.map(double()),
        giving(kept=(own_output,)),
        doubled,
    ),
    Kind(
        "under-jit",
        "an argument of a donating mapped function, under a jit without donation",
        _under_jit,
        giving(kept=(own_output,)),
        doubled,
        ONE_PROCESS,
        left_out=UNDER_JIT,
    ),
    Kind(
        "by-keyword",
        "an argument passed by keyword",
        lambda impl: impl.map(add(), donate_argnums=(1,)),
        giving(kept=(own_output, own_output), keyword="y"),
        doubled,
        pmap_only=NO_KEYWORDS,
    ),
    Kind(
        "smaller-output",
        "an argument of a mapped function with a smaller result",
        lambda impl: impl.map(lambda x: x.sum(), donate_argnums=(0,)),
        giving(own_output),
        lambda width: lambda place: place.rows(width).sum(-1),
    ),
    Kind(
        "other-dtype",
        "an argument of a mapped function whose result has another dtype",
        lambda impl: impl.map(lambda x: x.astype(np.int16), donate_argnums=(0,)),
        giving(own_output),
        lambda width: lambda place: place.rows(width).astype(np.int16),
    ),
)


# Unmapped arguments that are not on all devices.
UNMAPPED: Mapping[str, Kind] = table(
    Kind(
        "unmapped-one-device",
        "an unmapped argument, committed to one device",
        _unmapped_in_a_list,
        giving(unmapped_on(0), kept=(own_output,), form=lambda given, kept: (kept, given)),
        lambda width: lambda place: [place.rows(width) * 2, addend(width) * 2],
    ),
    Kind(
        "unmapped-second-device",
        "an unmapped argument, committed to the second device",
        _unmapped_in_a_list,
        giving(unmapped_on(1), kept=(own_output,), form=lambda given, kept: (kept, given)),
        lambda width: lambda place: [place.rows(width) * 2, addend(width) * 2],
    ),
    Kind(
        "unmapped-uncommitted",
        "an unmapped argument, uncommitted",
        _unmapped_in_a_list,
        giving(unmapped_uncommitted, kept=(own_output,), form=lambda given, kept: (kept, given)),
        lambda width: lambda place: [place.rows(width) * 2, addend(width) * 2],
    ),
)


def kinds(*keys: str) -> dict[str, Kind]:
    """Some of `KINDS`."""
    return {key: KINDS[key] for key in keys}
