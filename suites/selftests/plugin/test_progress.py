"""A run reports what it waits for while it waits, although pytest captures the output of items."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import ENDS_S, FAULTS_ALONE, HANGS_S, gone, new_mark, running_pytest

CONFTEST = """
def pytest_runtest_call(item):
    print("kept, as the item passes")
    item.config.pluginmanager.getplugin("conformance-session")._session.progress("1 of 2 hosts")
"""
SUITE = "def test_first():\n    pass\n\ndef test_second():\n    pass\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "conformance: 1 of 2 hosts"),
        (("-n", "1"), "conformance: gw0: 1 of 2 hosts"),
        (("--capture=sys",), "conformance: 1 of 2 hosts"),
        (("-n", "1", "--capture=sys"), "conformance: gw0: 1 of 2 hosts"),
    ],
    ids=["alone", "divided", "alone, sys", "divided, sys"],
)
def test_progress_is_seen_though_the_item_passes(
    tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    (tmp_path / "conftest.py").write_text(FAULTS_ALONE + CONFTEST)
    (tmp_path / "test_plain.py").write_text(SUITE)
    mark = new_mark()
    options = ["-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "harness.plugin"]
    with running_pytest([*options, *words, "test_plain.py"], tmp_path, mark) as process:
        status = process.wait(HANGS_S)
        assert gone(mark, ENDS_S)
    told = (tmp_path / "pytest.log").read_text()
    assert status == pytest.ExitCode.OK, told
    assert told.count(line) == 2
    if not words:  # xdist's terminal is another process's
        assert told.splitlines().count(line) == 2
    assert "kept" not in told
