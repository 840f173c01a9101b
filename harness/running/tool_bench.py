"""Time the command line tools, each as a process of its own: `pmap-conformance dev bench`.

A first call, which is not counted, fills the file caches. The aims are for an idle machine with two
cores.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PUBLISHED = "reports/published/matrix.jsonl.xz"
CALLS = 3

_CLAUSE = "rank.argmax.no-axis.1d"
_SUITES = ("suites/", "--ignore=suites/selftests", "-p", "no:cacheprovider", "-q")
_SIDES = ("--from", "legacy_pmap@0.9.0", "--to", "new_pmap@0.12.0.1")


@dataclass(frozen=True, slots=True)
class Tool:
    """A command's words, and its aim in seconds.

    `module` is what Python runs. A tool that recomputes without a cache has no aim.
    """

    words: tuple[str, ...]
    aim_s: float | None
    module: str = "harness.commandline"

    @property
    def reads_published(self) -> bool:
        """Return whether the command needs the published results, which only a checkout has."""
        return PUBLISHED in self.words

    @property
    def name(self) -> str:
        """The command as a user types it."""
        program = "pmap-conformance" if self.module == "harness.commandline" else self.module
        return " ".join((program, *self.words))


TOOLS = (
    Tool(("--help",), 0.3),
    Tool(("run", "--help"), 0.3),
    Tool(("results", "summary", "--help"), 0.3),
    Tool(("agent", "--help"), 0.3),
    Tool(("list", "claims"), 1.0),
    Tool(("show", _CLAUSE), 1.0),
    Tool(("targets", "list"), 1.0),
    Tool((*_SUITES, "--collect-only"), 4.0, "pytest"),
    Tool((*_SUITES, "--clause", _CLAUSE, "--target", "current"), 5.0, "pytest"),
    Tool(("results", "summary", PUBLISHED), 3.0),
    Tool(("report", "upgrade", PUBLISHED, *_SIDES), 3.0),
    Tool(("results", "summary", PUBLISHED, "--no-cache"), None),
    Tool(("report", "upgrade", PUBLISHED, *_SIDES, "--no-cache"), None),
)


def main() -> None:
    """Print a line for each tool: the median of its calls, and its aim."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"command line tools, load of the machine {load}")
    for tool in TOOLS:
        if tool.reads_published and not (ROOT / PUBLISHED).is_file():
            continue
        called(tool)
        print(line(tool, [called(tool) for _ in range(CALLS)]), flush=True)


def called(tool: Tool) -> float:
    """Return the seconds that a call takes; CalledProcessError if the command fails."""
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", tool.module, *tool.words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - began


def line(tool: Tool, seconds: Sequence[float]) -> str:
    """Format a tool's line."""
    median, least, most = statistics.median(seconds), min(seconds), max(seconds)
    aim = "no aim" if tool.aim_s is None else f"aim {tool.aim_s:g} s"
    above = "   above" if tool.aim_s is not None and median > tool.aim_s else ""
    spread = f"({least:.2f} to {most:.2f}, n={len(seconds)})"
    return f"  median {median:5.2f} s   {spread}; {aim}{above}   {tool.name}"
