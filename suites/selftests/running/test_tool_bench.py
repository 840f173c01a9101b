"""The table of the command line tools' times; no test says how long one may take."""

from __future__ import annotations

import re
import subprocess

import pytest

from harness.running import tool_bench
from harness.running.tool_bench import TOOLS, Tool, called, line


def test_a_line_says_the_median_beside_the_aim() -> None:
    tool = Tool(("report", "--help"), 0.3)
    said = line(tool, [0.5, 0.1, 0.2])
    assert re.findall(r"\d\.\d+|n=\d", said) == ["0.20", "0.10", "0.50", "n=3", "0.3"]
    assert said.endswith("pmap-conformance report --help")
    assert [" above " in line(tool, [0.5, median, 0.2]) for median in (0.1, 0.4)] == [False, True]
    assert " above " not in line(Tool(tool.words, None), [9.0])


def test_a_command_that_fails_is_no_time() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        called(Tool(("no-such-command",), None))


def test_every_tool_is_called_and_has_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Tool] = []

    def noted(tool: Tool) -> float:
        calls.append(tool)
        return 1.0

    monkeypatch.setattr(tool_bench, "called", noted)
    tool_bench.main()
    assert [calls.count(tool) for tool in TOOLS] == [1 + tool_bench.CALLS] * len(TOOLS)
    told = capsys.readouterr().out.splitlines()[1:]
    assert [text.rpartition("   ")[2] for text in told] == [one.name for one in TOOLS]


def test_without_the_published_results_what_reads_them_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool_bench, "called", lambda tool: 1.0)
    monkeypatch.setattr(tool_bench, "ROOT", tmp_path)
    tool_bench.main()
    told = capsys.readouterr().out
    assert "pmap-conformance --help" in told
    assert tool_bench.PUBLISHED not in told
