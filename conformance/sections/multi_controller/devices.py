"""Local and global devices, and meshes and products that span all of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.sections.multi_controller import (
    WIDTH,
    Across,
    alike,
    local_parts,
    notes_text,
    row_of,
    say,
    spread,
)
from conformance.spec.clause import clause, devices
from conformance.spec.columns import of_jax
from conformance.spec.expectation import (
    along,
    every,
    in_steps,
    noted,
    returns,
    sharded,
    steps,
    twice,
)
from conformance.spec.family import family, table
from conformance.spec.texts import described
from conformance.spec.topology import ONE_AND_FOUR, ONE_AND_SEVERAL, SEVERAL_PROCESSES, Place
from conformance.worker.protocols import Cluster, Implementation

IDS = "ids"

# --- Lists ----------------------------------------------------------------------------------------


@described("the process of each device of the cluster, in order")
def owners(place: Place) -> Any:
    return np.arange(place.topology.devices) // place.topology.devices_per_process


@described("the positions of this process's devices among all of them")
def own_positions(place: Place) -> Any:
    return place.first_row + np.arange(place.topology.devices_per_process)


def noted_ids(cluster: Cluster, devices: list[jax.Device]) -> None:
    """Note the ids of these devices."""
    cluster.note(IDS, [device.id for device in devices])


@clause(
    "multi_controller.devices.global",
    claim="multi-process.devices-local-and-global",
    topologies=ONE_AND_SEVERAL,
    expect=of_jax(every(twice(returns(owners)), alike(IDS, "the list of all devices"))),
)
def global_devices(impl: Implementation, cluster: Cluster) -> None:
    """`jax.devices()` lists the devices of all processes, the same in each process."""
    for step in ("first call", "second call"):
        found = jax.devices()
        cluster.step(step, lambda found=found: np.array([d.process_index for d in found]))
        noted_ids(cluster, found)


@clause(
    "multi_controller.devices.local",
    claim="multi-process.devices-local-and-global",
    topologies=ONE_AND_SEVERAL,
    expect=of_jax(
        steps(
            own=returns(own_positions),
            of_the_last=returns(
                lambda place: own_positions(Place(place.topology, place.topology.processes - 1)),
                text="the positions of the last process's devices",
            ),
        )
    ),
)
def local_devices(impl: Implementation, cluster: Cluster) -> None:
    """`jax.local_devices()` lists this process's devices, and with `process_index=` another's."""
    everyone = jax.devices()
    last = jax.process_count() - 1
    cluster.step("own", lambda: np.array([everyone.index(d) for d in jax.local_devices()]))
    cluster.step(
        "of the last",
        lambda: np.array([everyone.index(d) for d in jax.local_devices(process_index=last)]),
    )


def _disjoint(noted: list[Any]) -> bool:
    ids = [one for some in noted for one in some]
    return len(set(ids)) == len(ids) and all(len(some) == len(noted[0]) for some in noted)


@clause(
    "multi_controller.devices.disjoint",
    claim="multi-process.local-devices-disjoint",
    topologies=SEVERAL_PROCESSES,
    expect=of_jax(
        every(
            twice(
                returns(
                    lambda place: np.full(place.topology.devices_per_process, place.process),
                    text="this process, of each of them",
                )
            ),
            Across(IDS, "no device is local to two processes", _disjoint),
        )
    ),
)
def disjoint_devices(impl: Implementation, cluster: Cluster) -> None:
    """The processes' local devices are disjoint, and each device names its process."""
    for step in ("first call", "second call"):
        own = jax.local_devices()
        cluster.step(step, lambda own=own: np.array([device.process_index for device in own]))
        noted_ids(cluster, own)


# --- Meshes ---------------------------------------------------------------------------------------


@described("this process's rows, one on each of its devices")
def own_rows(place: Place) -> Any:
    return list(place.rows(WIDTH)[:, None])


@described("the sum of all rows")
def sum_of_all(place: Place) -> Any:
    return place.all_rows(WIDTH).sum(0)


@described("the sum of this process's rows")
def sum_of_own(place: Place) -> Any:
    return place.rows(WIDTH).sum(0)


@clause(
    "multi_controller.mesh.over-all",
    claim="multi-process.mesh-over-all-processes",
    topologies=ONE_AND_SEVERAL,
    expect=of_jax(
        steps(
            placed=returns(own_rows),
            summed=returns(
                sum_of_all, mistakes={"the sum over this process's own devices": sum_of_own}
            ),
        )
    ),
)
def mesh_over_all(impl: Implementation, cluster: Cluster) -> None:
    """An array over `Mesh(jax.devices(), ('a',))`, and its sum."""
    mesh = jax.sharding.Mesh(jax.devices(), ("a",))
    rows = cluster.all_rows(WIDTH)
    array = jax.device_put(rows, spread(mesh, "a"))
    cluster.step("placed", local_parts, array)
    cluster.step("summed", lambda: jnp.sum(array, axis=0))


@clause(
    "multi_controller.mesh.same-as-make-mesh",
    claim="multi-process.mesh-same-as-make-mesh",
    topologies=ONE_AND_SEVERAL,
    expect=of_jax(
        steps(
            devices=returns(lambda place: np.True_, text="yes: the same devices in the same order"),
            mesh=returns(lambda place: np.True_, text="yes: the same mesh"),
        )
    ),
)
def same_as_make_mesh(impl: Implementation, cluster: Cluster) -> None:
    """`Mesh(jax.devices(), ('a',))` equals `jax.make_mesh((device_count(),), ('a',))`."""
    by_hand = jax.sharding.Mesh(jax.devices(), ("a",))
    made = jax.make_mesh((jax.device_count(),), ("a",))
    alike = list(by_hand.devices.flat) == list(made.devices.flat)
    cluster.step("devices", lambda: np.bool_(alike))
    cluster.step("mesh", lambda: np.bool_(by_hand == made))


# --- The distributed product ----------------------------------------------------------------------

INNER, COLUMNS = 4, 8


def factors(place: Place) -> tuple[Any, Any]:
    """Whole numbers, so that every sum is exact in whichever order."""
    left = np.arange(1, 1 + place.topology.devices * INNER, dtype=np.float32).reshape(-1, INNER)
    return left, np.arange(1, 1 + INNER * COLUMNS, dtype=np.float32).reshape(INNER, COLUMNS)


@described("this process's rows of the product")
def rows_of_product(place: Place) -> Any:
    left, right = factors(place)
    return place.mine(left @ right)


@described("this process's rows of a product that is summed over half of the inner dimension only")
def product_of_parts(place: Place) -> Any:
    left, right = factors(place)
    return place.mine(left[:, : INNER // 2] @ right[: INNER // 2])


@dataclass(frozen=True, slots=True)
class Product:
    """A spelling of the product, and the axis types of the mesh, if given."""

    key: str
    text: str
    multiply: Callable[[Any, Any], Any]
    types: tuple[str, ...] = ()


PRODUCTS: Mapping[str, Product] = table(
    Product(
        "default-mesh",
        "`x @ y` on a mesh from `make_mesh` with default axis types.",
        lambda x, y: x @ y,
    ),
    Product("auto-mesh", "`x @ y` on a mesh of Auto axes.", lambda x, y: x @ y, ("Auto",) * 2),
    Product(
        "out-sharding",
        "`jnp.matmul(x, y, out_sharding=...)` on a mesh of Explicit axes.",
        lambda x, y: jnp.matmul(x, y, out_sharding=spread(x.sharding.mesh, "a", None)),
        ("Explicit",) * 2,
    ),
)


def only_summed(programs: Any) -> bool:
    """Return whether the compiled programs communicate, and by all-reduce only."""
    ran = [one["operation"] for program in programs for one in program["collectives"]]
    return bool(ran) and set(ran) == {"all-reduce"}


@family(
    "multi_controller.matmul.{product}",
    product=PRODUCTS,
    claim="multi-process.sharded-matmul",
    title="{product.text}",
    fact="multi_controller.matmul",
    fixes=lambda product: (
        None if product.key == "default-mesh" else "multi_controller.matmul.default-mesh"
    ),
    needs=devices(4),
    topologies=ONE_AND_FOUR,
    expect=lambda product: of_jax(
        every(
            in_steps(
                returns(
                    rows_of_product,
                    mistakes={"the sum over half of the inner dimension": product_of_parts},
                ),
                "from empty caches",
                "second call",
            ),
            in_steps(
                sharded("sharded like P('a', None)", along("a", None)),
                "from empty caches",
                "second call",
            ),
            steps(
                from_empty_caches=noted(
                    "programs",
                    "summed by all-reduce, and nothing else is communicated",
                    lambda _, seen: only_summed(seen),
                    compiled=True,
                )
            ),
        )
    ),
)
def distributed_product(impl: Implementation, cluster: Cluster, product: Product) -> None:
    """The tutorial's product of arrays over all processes, with nothing added for them."""
    left, right = factors(cluster)
    shape, names = (jax.device_count() // 2, 2), ("a", "b")
    types = tuple(getattr(jax.sharding.AxisType, name) for name in product.types)
    mesh = jax.make_mesh(shape, names, **({"axis_types": types} if types else {}))
    x = jax.device_put(left, spread(mesh, "a", "b"))
    y = jax.device_put(right, spread(mesh, "b", None))

    def multiply() -> Any:
        return jax.nn.relu(product.multiply(x, y))

    cluster.compiled("from empty caches", multiply)
    cluster.step("second call", multiply)


# --- A picture of it ------------------------------------------------------------------------------


WIDE = 8


def drawing(draw: bool, array: Any) -> str:
    """Return the output of `visualize_array_sharding`; empty if this process does not call it."""
    written = io.StringIO()
    if draw:
        with contextlib.redirect_stdout(written):
            jax.debug.visualize_array_sharding(array)
    return written.getvalue()


def devices_drawn(text: str) -> list[int]:
    """The ids in the boxes, in order."""
    return [int(word) for word in text.split() if word.isdigit()]


@clause(
    "multi_controller.visualize",
    claim="multi-process.visualize-array-sharding",
    topologies=ONE_AND_SEVERAL,
    requires=("rich",),
    expect=of_jax(
        every(
            notes_text("nothing but a drawing, in process 0 alone", lambda place: ""),
            noted("drawn", "each device once, in order", lambda place, seen: seen == [True, True]),
        )
    ),
)
def visualize(impl: Implementation, cluster: Cluster) -> None:
    """Process 0 alone prints the sharding of an array over all processes."""
    rows = cluster.all_rows(WIDE)  # in narrow boxes the ids are broken over lines
    array = jax.device_put(rows, spread(row_of(jax.devices()), "a"))
    kind = jax.devices()[0].platform.upper()  # as it is drawn: CPU 0
    for step in ("first call", "second call"):
        text: list[str] = []

        def draw(text: list[str] = text) -> str:
            text.append(drawing(cluster.process == 0, array))
            return "".join(c for c in text[0].replace(kind, "") if c.isalpha())

        say(cluster, step, draw)
        wanted = [d.id for d in jax.devices()] if cluster.process == 0 else []
        boxes = text[0].count(kind) if text else -1
        cluster.note("drawn", [devices_drawn("".join(text)) == wanted, boxes == len(wanted)])
