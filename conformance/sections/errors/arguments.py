"""`Received incompatible devices`, by the argument's placement and by how it is passed.

A table of placements by ways of passing, because mapped and unmapped arguments are checked by
different code, a later call takes another path than the first, and a pytree may have one wrong
leaf. Arguments without a placement must pass.
"""

from __future__ import annotations

from typing import Any

import jax

from conformance.sections.errors import (
    AS_JIT_CLAIM,
    INCOMPATIBLE,
    POSITIONAL_ONLY,
    WHERE,
    WIDTH,
    Where,
    refused_unless_legacy,
    times,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import Columns, everywhere, unless_legacy
from conformance.spec.defaults import Defaults
from conformance.spec.expectation import in_steps, not_applicable, raises, returns, steps
from conformance.spec.family import family
from conformance.spec.names import SHARD_MAP
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, Place
from conformance.worker.bodies import add, addend, double
from conformance.worker.protocols import Cluster, Implementation


@described("this process's rows plus twice themselves")
def tripled(place: Place) -> Any:
    return place.rows(WIDTH) * 3


# The placement is the finding, however the argument is passed.
FACT = "errors.incompatible-devices.{where}"

DEFAULTS = Defaults(
    claim=AS_JIT_CLAIM, topologies=ONE_AND_FOUR, fact="errors.incompatible-devices.passes"
)


@family(
    "errors.incompatible-devices.unmapped-{where}",
    # On one device it has a clause of its own; replicated is where it belongs.
    where={key: where for key, where in WHERE.items() if key not in ("one-device", "replicated")},
    claim="{where.claim}",
    fact="errors.incompatible-devices.unmapped-argument",
    cause="argument-elsewhere-refused",
    title="An unmapped argument is {where.text}.",
    needs=devices(2),
    expect=lambda where: refused_unless_legacy(
        lambda place: where.rows(place.rows(WIDTH)) + addend(WIDTH)
    ),
)
def unmapped(impl: Implementation, cluster: Cluster, where: Where) -> None:
    """Pass an unmapped argument on the wrong devices."""
    elsewhere = where.put(impl, addend(WIDTH), mapped=False)
    function = where.map(impl, add(), in_axes=(0, None))
    cluster.twice(function, where.rows(impl.rows(cluster, WIDTH)), elsewhere)


@family(
    "errors.incompatible-devices.keyword-{where}",
    where=WHERE,
    claim="{where.claim}",
    fact=FACT,
    cause="argument-elsewhere-refused",
    title="A keyword argument is {where.text}.",
    needs=devices(8),
    expect=lambda where: (
        refused_unless_legacy(times(3, where)) | {SHARD_MAP: not_applicable(POSITIONAL_ONLY)}
    ),
)
def keyword(impl: Implementation, cluster: Cluster, where: Where) -> None:
    """Pass a keyword argument (always mapped over its leading axis) on the wrong devices."""
    rows = where.rows(impl.rows(cluster, WIDTH))
    function = where.map(impl, lambda x, y: x + 2 * y)
    elsewhere = where.put(impl, rows)
    cluster.twice(lambda: function(rows, y=elsewhere))


@family(
    "errors.incompatible-devices.leaf-{where}",
    where=WHERE,
    claim="{where.claim}",
    fact=FACT,
    cause="argument-elsewhere-refused",
    title="One leaf of a pytree argument is {where.text}.",
    needs=devices(2),
    expect=lambda where: refused_unless_legacy(times(3, where)),
)
def leaf(impl: Implementation, cluster: Cluster, where: Where) -> None:
    """Pass a pytree with one leaf on the wrong devices."""
    rows = where.rows(impl.rows(cluster, WIDTH))
    tree = {"a": rows, "b": [where.put(impl, rows)]}
    cluster.twice(where.map(impl, lambda t: t["a"] + 2 * t["b"][0]), tree)


def refused_later(where: Where) -> Columns:
    """Expect the same as `refused_unless_legacy`, after two valid calls with right values."""
    model = times(2, where)
    refused = raises(ValueError, INCOMPATIBLE, phase="lower", otherwise=model)
    names = ("fitting call", "fitting call again", "misplaced call", "misplaced call again")
    return unless_legacy(
        in_steps(returns(model), *names),
        steps(
            fitting_call=returns(model),
            fitting_call_again=returns(model),
            misplaced_call=refused,
            misplaced_call_again=refused,
        ),
    )


@family(
    "errors.incompatible-devices.later-call-{where}",
    where=WHERE,
    claim="pmap-silence.incompatible-devices-second-call",
    fact=FACT,
    cause="argument-elsewhere-refused",
    title="After two valid calls of the same wrapper, its argument is {where.text}.",
    needs=devices(2),
    expect=refused_later,
)
def later_call(impl: Implementation, cluster: Cluster, where: Where) -> None:
    """Pass an argument on the wrong devices once the wrapper's fast path is in use."""
    rows = where.rows(impl.rows(cluster, WIDTH))
    function = where.map(impl, double())
    cluster.step("fitting call", function, rows)
    cluster.step("fitting call again", function, rows)
    elsewhere = where.put(impl, rows)
    cluster.step("misplaced call", function, elsewhere)
    cluster.step("misplaced call again", function, elsewhere)


@clause(
    "errors.arguments.keyword",
    claim="pmap-silence.pytrees-and-keywords",
    topologies=ONE_AND_FOUR,
    expect=everywhere(returns(tripled))
    | {SHARD_MAP: raises(TypeError, "got an unexpected keyword argument 'y'", otherwise=tripled)},
)
def keyword_fits(impl: Implementation, cluster: Cluster) -> None:
    """A keyword argument that is already sharded as required: pmap maps it, shard_map
    refuses it.
    """
    function = impl.map(lambda x, y: x + 2 * y)
    rows = impl.given(cluster.rows(WIDTH))
    cluster.twice(lambda: function(rows, y=rows))


PASSES = everywhere(returns(tripled))


@DEFAULTS.clause("errors.incompatible-devices.numpy-passes", expect=PASSES)
def numpy_passes(impl: Implementation, cluster: Cluster) -> None:
    """NumPy arguments are on no device, so no mapped function refuses them."""
    rows = impl.rows(cluster, WIDTH)
    cluster.twice(impl.map(lambda x, y: x + 2 * y), rows, rows)


@DEFAULTS.clause("errors.incompatible-devices.uncommitted-passes", expect=PASSES)
def uncommitted_passes(impl: Implementation, cluster: Cluster) -> None:
    """Uncommitted arrays are moved to the mapped function's devices."""
    rows = jax.numpy.asarray(impl.rows(cluster, WIDTH))
    cluster.twice(impl.map(lambda x, y: x + 2 * y), rows, rows)


@DEFAULTS.clause(
    "errors.incompatible-devices.uncommitted-unmapped-passes",
    expect=everywhere(returns(lambda place: place.rows(WIDTH) + addend(WIDTH), text="rows plus y")),
)
def uncommitted_unmapped_passes(impl: Implementation, cluster: Cluster) -> None:
    """An uncommitted unmapped argument is moved to the mapped function's devices."""
    rows = jax.numpy.asarray(impl.rows(cluster, WIDTH))
    cluster.twice(impl.map(add(), in_axes=(0, None)), rows, jax.numpy.asarray(addend(WIDTH)))
