"""Hosts under `-n`: each test process has its own, whoever starts their agents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from divided import (
    GONE_S,
    HOSTS,
    TOPOLOGIES,
    WITHIN_S,
    arguments,
    log_of,
    run,
    verdicts,
)
from processes import (
    FAULTS,
    FAULTS_ALONE,
    MARK,
    SUITE,
    end,
    gone,
    marked,
    new_mark,
    running_pytest,
    until,
)

from conformance.worker.channel import KEY_VARIABLE
from conformance.worker.ports import ReservedPort
from conformance.worker.zygote import CATALOGUE_VARIABLE
from harness.running.fleet import key_of
from harness.targets.target import provision, worker_environment

pytestmark = pytest.mark.long

AGENT = "conformance.worker.agent"  # the module that an agent's command runs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE)
    (tmp_path / "test_cells.py").write_text(SUITE)
    return tmp_path


def dialled(mark: str) -> dict[str, set[str]]:
    """The agents by the address that they serve: the pid of each that is no worker."""
    found: dict[str, set[str]] = {}
    for process in marked(mark):
        with suppress(psutil.Error):
            words = process.cmdline()
            parent = process.parent()
            if AGENT in words and (parent is None or AGENT not in parent.cmdline()):
                address = words[words.index("--controller") + 1]
                found.setdefault(address, set()).add(str(process.pid))
    return found


def test_launched_hosts_are_divided_and_give_the_same_verdicts(folder: Path) -> None:
    expected = run(folder, "home.jsonl")
    assert len(expected) == 3 * len(TOPOLOGIES)
    mark, seen = new_mark(), dict[str, set[str]]()
    words = ["-n", "2", "--hosts", str(HOSTS), "--launcher", "local"]
    environment = {"PMAP_CONFORMANCE_CACHE": str(folder / "cache")}

    def divided() -> bool:
        for address, pids in dialled(mark).items():
            seen.setdefault(address, set()).update(pids)
        return len(seen) == 2 and all(len(pids) >= 2 for pids in seen.values())

    with running_pytest(arguments(folder, "n.jsonl", *words), folder, mark, environment) as process:
        assert until(lambda: divided() or process.poll() is not None, WITHIN_S)
        assert process.wait(WITHIN_S) == pytest.ExitCode.TESTS_FAILED, log_of(folder)
        assert gone(mark, GONE_S)
    assert divided(), (seen, log_of(folder))
    assert verdicts(folder / "n.jsonl") == expected
    said = log_of(folder)
    assert "4 hosts divided among -n 2: 2 + 2" in said
    for process in ("gw0", "gw1"):
        assert re.search(rf"conformance: {process}: host .+; 2 of 2 are connected", said), said


@contextmanager
def agents(port: int, key: Path, mark: str) -> Iterator[Sequence[subprocess.Popen[bytes]]]:
    """One agent per host, all with the same words; their job says their rank."""
    words = [sys.executable, "-m", AGENT, "--controller", f"127.0.0.1:{port}"]
    variables = {
        **worker_environment(provision("current"), os.environ, catalogue=[FAULTS]),
        CATALOGUE_VARIABLE: FAULTS,
        KEY_VARIABLE: key_of(key),
        MARK: mark,
    }
    running = [
        subprocess.Popen(words, env={**variables, "JOB_COMPLETION_INDEX": str(rank)})
        for rank in range(HOSTS)
    ]
    try:
        yield running
    finally:
        for one in running:
            one.kill()
            one.wait()


def test_agents_that_dial_one_address_are_divided_by_their_ranks(folder: Path) -> None:
    free = ReservedPort()
    free.close()
    key, mark = folder / "key", new_mark()
    words = ["-n", "2", "--hosts", str(HOSTS), "--listen", f"127.0.0.1:{free.port}"]
    key_of(key)
    try:
        with agents(free.port, key, mark) as started:
            found = run(folder, "hand.jsonl", *words, "--key-file", str(key))
            assert until(lambda: all(one.poll() == 0 for one in started), GONE_S)
        assert gone(mark, GONE_S)
    finally:
        end(mark)
    assert {clause: verdict for (clause, _), verdict in found.items()} == {
        "faults.none": "conforms",
        "faults.wrong-value": "deviates",
        "faults.exits": "crashed",
    }
    assert all(f"(rank {rank}) at 127.0.0.1" in log_of(folder) for rank in range(HOSTS))
