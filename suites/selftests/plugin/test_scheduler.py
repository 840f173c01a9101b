"""Test processes that die, at whatever moment: what they had to run is run, and never for ever."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from processes import FAULTS_ALONE, HANGS_S, outside_pytest

from harness.plugin.hooks import pytest_xdist_auto_num_workers
from harness.plugin.scheduler import ClusterScheduling

ITEMS = [f"suites/test_x.py::test_x[errors.{name}-new_pmap-2x2-current]" for name in "abcd"]
ITEMS += [f"suites/test_x.py::test_x[errors.{name}-new_pmap-4x2-current]" for name in "abcd"]

SMALL = [
    f"suites/test_x.py::test_x[errors.{name}-new_pmap-{topology}-current]"
    for topology in ("1x8", "2x1", "2x2", "4x2")
    for name in "ab"
]


class Node:
    """A test process, as far as a scheduler sees it."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Run:
    """A scheduler of two test processes, driven as xdist drives it."""

    def __init__(self, items: Sequence[str] = ITEMS) -> None:
        self.items = list(items)
        config: Any = SimpleNamespace(
            getvalue=lambda _: ["popen", "popen"],
            option=SimpleNamespace(loadscopereorder=False),
        )
        self.scheduler = ClusterScheduling(config, SimpleNamespace(loadscopesched=lambda *_: None))
        self.finished: list[str] = []

    def add(self, name: str) -> Node:
        node = Node(name)
        self.scheduler.add_node(node)
        return node

    def collected(self, node: Node) -> None:
        self.scheduler.add_node_collection(node, self.items)
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()

    def finish(self, node: Node, count: int = len(ITEMS)) -> None:
        """Let a test process run as many of its items as that.

        It runs one when it knows the next, or that there is none.
        """
        for _ in range(count):
            if self.scheduler.tests_finished:
                for one in self.scheduler.nodes:
                    one.shutdown()
            if len(node.given) < (1 if node.shutting_down else 2):
                return
            index = node.given.pop(0)
            self.finished.append(self.items[index])
            self.scheduler.mark_test_complete(node, index)


def test_nobody_dies() -> None:
    run = Run()
    a, b = run.add("a"), run.add("b")
    run.collected(a)
    run.collected(b)
    run.finish(a)
    run.finish(b)
    assert sorted(run.finished) == sorted(ITEMS)


@pytest.mark.parametrize("had_collected", [False, True])
def test_one_that_dies_while_it_starts_is_replaced(had_collected: bool) -> None:
    run = Run()
    a, b = run.add("a"), run.add("b")
    if had_collected:
        run.collected(a)
    assert run.scheduler.remove_node(a) is None
    c = run.add("c")
    run.collected(b)
    run.collected(c)
    run.finish(b)
    run.finish(c)
    assert sorted(run.finished) == sorted(ITEMS)


def test_one_that_dies_before_its_predecessors_successor_has_collected() -> None:
    run = Run()
    a, b = run.add("a"), run.add("b")
    run.collected(a)
    run.collected(b)
    first = run.scheduler.remove_node(a)
    c = run.add("c")
    second = run.scheduler.remove_node(b)
    assert {first, second} == {ITEMS[0], ITEMS[4]}
    assert not c.given
    run.collected(c)
    d = run.add("d")
    run.collected(d)
    run.finish(c)
    run.finish(d)
    assert sorted(run.finished) == sorted(ITEMS)


def test_what_kills_its_test_process_each_time_is_run_twice() -> None:
    run = Run()
    a, b = run.add("a"), run.add("b")
    run.collected(a)
    run.collected(b)
    run.finish(b)
    run.finish(a, 1)
    victim = ITEMS[a.given[0]]
    died = []
    node = a
    for name in "cd":
        died.append(run.scheduler.remove_node(node))
        node = run.add(name)
        run.collected(node)
    assert died == [victim, victim]
    run.finish(node)
    assert sorted([*run.finished, victim]) == sorted(ITEMS)


def test_what_has_a_verdict_is_not_run_again() -> None:
    run = Run()
    a, b = run.add("a"), run.add("b")
    run.collected(a)
    run.collected(b)
    run.finish(b)
    run.finish(a, 1)
    victim = ITEMS[a.given[0]]
    run.scheduler.judged = victim.__eq__
    assert run.scheduler.remove_node(a) == victim
    c = run.add("c")
    run.collected(c)
    run.finish(c)
    assert sorted([*run.finished, victim]) == sorted(ITEMS)


def test_one_that_has_run_all_it_was_given_dies_of_nothing() -> None:
    run = Run()
    a, b = run.add("a"), run.add("b")
    run.collected(a)
    run.collected(b)
    run.finish(a)
    assert run.scheduler.remove_node(a) is None


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_one_that_dies_late_leaves_the_rest_to_its_successor(done: int) -> None:
    run = Run(SMALL)
    a, b = run.add("a"), run.add("b")
    run.collected(a)
    run.collected(b)
    run.finish(a, done)
    victim = run.scheduler.remove_node(a)
    assert victim is not None
    run.finish(b)
    c = run.add("c")
    run.collected(c)
    assert SMALL.index(victim) in c.given
    run.finish(c)
    assert sorted(run.finished) == sorted(SMALL)


def test_cells_that_wait_come_first_and_each_process_keeps_its_cluster() -> None:
    cells = [f"suites/test_x.py::test_x[errors.c{n}-new_pmap-1x8-current]" for n in range(400)]
    cells += [f"suites/test_x.py::test_x[errors.d{n}-new_pmap-4x2-current]" for n in range(100)]
    waiting = "suites/test_x.py::test_x[errors.w-new_pmap-4x2-current]"
    run = Run([*cells, waiting])
    run.scheduler.waits = lambda cell: cell.clause == "errors.w"
    run.scheduler.seconds = lambda cell: 1.0 if cell.topology == "4x2" else 0.1
    a, b = run.add("a"), run.add("b")
    run.collected(a)
    run.collected(b)
    assert a.given[0] == run.items.index(waiting)
    kinds = []
    for node in (a, b):
        topologies = [run.items[index].split("-")[2] for index in node.given if index < 500]
        assert len(set(topologies)) == 1
        kinds.append(topologies[0])
    assert sorted(kinds) == ["1x8", "4x2"]
    while len(run.finished) < len(run.items):
        run.finish(a, 10)
        run.finish(b, 10)
    assert sorted(run.finished) == sorted(run.items)
    of_several = [at for at, item in enumerate(run.finished) if "-4x2-" in item]
    assert max(of_several) < len(run.finished) - 40, "both end with what is left of the other"


def _run(folder: Path, *words: str) -> str:
    """Run pytest on the only test of a folder, which passes; return its output."""
    (folder / "conftest.py").write_text(FAULTS_ALONE, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=outside_pytest(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_auto_is_a_test_process_more_than_cores(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n", encoding="utf-8")
    printed = _run(tmp_path, "-n", "auto", "-p", "harness.plugin")
    assert f"{pytest_xdist_auto_num_workers()} workers [1 item]" in printed


def test_a_test_process_does_not_warn_that_nothing_is_timed_in_it(tmp_path: Path) -> None:
    test = "def test_timed(benchmark): benchmark(lambda: None)\n"
    (tmp_path / "test_timed.py").write_text(test, encoding="utf-8")
    warning = "PytestBenchmarkWarning: Benchmarks are automatically disabled"
    assert warning in _run(tmp_path, "-n", "1")
    assert warning not in _run(tmp_path, "-n", "1", "-p", "harness.plugin")
