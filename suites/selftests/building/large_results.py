"""A results file as large as one likes, and what a site of it costs: time, and memory at the peak.

`python suites/selftests/building/large_results.py 100000` writes that many cells of twelve
versions and builds their site, in processes of their own as a user would; nothing is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from records import (
    FIRST,
    SECOND,
    Record,
    cause,
    cell,
    claim,
    clause,
    deviation,
    finding,
    observation,
    raised,
    sample_step,
    target,
)

from conformance.spec.names import IMPLEMENTATIONS

VERSIONS = tuple(f"0.{minor}.{patch}" for minor in range(7, 13) for patch in (0, 2))
CELLS_OF_A_CLAUSE = len(VERSIONS) * len(IMPLEMENTATIONS)
SECTIONS, GROUPS, CLAIMS, CAUSES = 13, 20, 300, 190
ANOTHER_EVERY = 4  # versions, after which a program does something else
_KIB_PER_MIB = 1024


def records(cells: int) -> Iterator[Record]:
    """At least as many cells, of clauses that were each run everywhere, with what they need."""
    clauses = [
        clause(
            f"s{n % SECTIONS}.g{n % GROUPS}.number-{n}",
            claim=f"migrate-pmap.claim-{n % CLAIMS}",
            topologies=["4x2"],
            expected=dict.fromkeys(IMPLEMENTATIONS, "returns the model's value"),
        )
        for n in range(-(-cells // CELLS_OF_A_CLAUSE))
    ]
    yield from (target(jax) for jax in VERSIONS)
    yield from (claim(f"migrate-pmap.claim-{n}") for n in range(CLAIMS))
    yield from (cause(f"cause-{n}") for n in range(CAUSES))
    yield from clauses
    for (n, one), (at, jax), implementation in product(
        enumerate(clauses), enumerate(VERSIONS), IMPLEMENTATIONS
    ):
        kind = (n + at // ANOTHER_EVERY) * len(implementation)
        place = {"target": f"jax=={jax}", "implementation": implementation}
        yield cell(one["clause"], **place | _ended(kind, n, at))


def _ended(kind: int, number: int, version: int) -> dict[str, Any]:
    """Return the end of a cell: mostly conforming, sometimes with a known cause, another value or
    an error.
    """
    step = sample_step() if kind % 5 else raised(message=f"no such thing as {kind % 50}")
    observations = [
        observation(step | {"name": FIRST}, step | {"name": SECOND}, process=process)
        | {"jax": VERSIONS[version], "seconds": 0.1 + number / 1e5 + version / 1e7}
        for process in range(4)
    ]
    if kind % 5:
        return {"observations": observations}
    return {
        "verdict": "known deviation",
        "observations": observations,
        "deviation": deviation() | {"cause": f"cause-{kind % CAUSES}"},
        "findings": [finding(code="value", step=FIRST)],
        "reason": f"raised ValueError: no such thing as {kind % 50}",
    }


def write(file: Path, cells: int) -> int:
    """Write the records; how many of them are cells."""
    written = 0
    with file.open("w", encoding="utf-8") as stream:
        for one in records(cells):
            written += one["kind"] == "cell"
            stream.write(json.dumps(one) + "\n")
    return written


def measured(file: Path, site: Path) -> tuple[float, float, float]:
    """Seconds by the wall and of all cores, and MiB of the largest process, of a site's build.

    Linux counts what a process held before it became another program, its parent's memory, as its
    own: so the build's parent is a small process, not whoever asks.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as small:
        return small.submit(_measured, file, site).result()


def _measured(file: Path, site: Path) -> tuple[float, float, float]:
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "harness.commandline",
        "report",
        "site",
        str(file),
        "-o",
        str(site),
    ]
    building = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(building.pid, 0)  # its own and its children's, and no other's
    wall = time.perf_counter() - began
    building.returncode = os.waitstatus_to_exitcode(status)
    if building.returncode:
        raise subprocess.CalledProcessError(building.returncode, command)
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / _KIB_PER_MIB


def main() -> None:
    """Write, build, and say what it took."""
    with tempfile.TemporaryDirectory() as folder:
        file, site = Path(folder, "large.jsonl"), Path(folder, "site")
        cells = write(file, int(sys.argv[1]))
        wall, cpu, peak = measured(file, site)
        print(
            f"{cells} cells, {file.stat().st_size / 1e6:.0f} MB: {wall:.1f} s, "
            f"{cpu:.1f} s of all cores, {peak:.0f} MiB at the peak of one process"
        )


if __name__ == "__main__":
    main()
