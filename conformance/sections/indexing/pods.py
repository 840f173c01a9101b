"""Communication of an access to a global array by pod size: compiled for TPU, and not run.

The clauses of this section test on eight devices whether an access communicates more than it needs;
on a thousand the same program may communicate a hundred times as much. These figures stand beside
them, for the forms that are one program each. A pmap's output is on one process's devices, whatever
the number of others, so its figure is that of one host, and only global arrays are measured here.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from conformance.sections.indexing import INTEGERS, Form
from conformance.sections.indexing.forms import FORMS
from conformance.spec import hlo
from conformance.spec.names import SHARD_MAP
from conformance.worker.elsewhere import described

# Of v5p, whose slices go on where those of v5e end, at 256 chips.
SLICES = (
    "v5p:2x2x2",
    "v5p:2x2x4",
    "v5p:2x4x4",
    "v5p:4x4x4",
    "v5p:4x4x8",
    "v5p:4x8x8",
    "v5p:8x8x8",
    "v5p:8x8x16",
)
ROW = (256, 1024)  # 1 MiB of float32

# By clause; forms that return an array per row are not compiled for a pod.
FIGURES: Mapping[str, Form] = {
    f"indexing.{family}.{form.key}": form
    for family, forms in (("integer", INTEGERS), ("access", FORMS))
    for form in forms.values()
    if form.jitted and form.sort != "unstack"
}


def grown(clause: str, form: Form, slices: Iterable[str] = SLICES) -> dict[str, Any]:
    """A form's record: the clause that it stands beside, and a point for each size of pod."""
    return {
        "kind": "growth",
        "clause": clause,
        "text": form.text,
        "implementation": SHARD_MAP,
        "row": 4 * math.prod(ROW),
        "points": [point(form, one, described(one)) for one in slices],
    }


def point(form: Form, slice: str, chips: Sequence[Any]) -> dict[str, Any]:
    """Return the bytes that one access communicates to each chip, and the bytes of its input and
    result.
    """
    spec = jax.sharding.PartitionSpec("i")
    lies = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(chips), ("i",)), spec)
    array = jax.ShapeDtypeStruct((len(chips), *ROW), np.float32, sharding=lies)
    lowered = jax.jit(form.use).lower(array, *form.arguments)
    found = hlo.collectives(lowered.compile().as_text())
    results = jax.tree.leaves(lowered.out_info)
    return {
        "slice": slice,
        "chips": len(chips),
        "collectives": dict(Counter(one.operation for one in found)),
        "bytes": sum(one.bytes for one in found),
        "result": sum(math.prod(one.shape) * one.dtype.itemsize for one in results),
        "array": math.prod(array.shape) * array.dtype.itemsize,
    }


def all_grown() -> Iterator[dict[str, Any]]:
    """The record of each form."""
    return (grown(clause, form) for clause, form in FIGURES.items())


def main(file: str) -> None:
    """Write every record to a file, as standard output is libtpu's as well."""
    with Path(file).open("w", encoding="utf-8") as stream:
        told = {"chip": described(SLICES[0])[0].device_kind}
        for record in all_grown():
            print(json.dumps(record | told), file=stream, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
