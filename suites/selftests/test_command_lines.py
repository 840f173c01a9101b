"""Command lines on the project's pages: every option exists, and what they ask of hosts can be."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.clusters import agent
from harness.clusters.launchers import kubernetes
from harness.commandline.command import UsageError
from harness.commandline.main import COMMANDS, Command
from harness.plugin import hosting, options
from harness.targets.platforms import PLATFORMS

PROJECT = Path(__file__).parents[2]
PAGES = ("README.md", "harness/clusters/launchers/README.md")
# What pytest and its plugins have of themselves.
PYTESTS_OWN = ("-k", "-m", "-n", "--benchmark-json", "--benchmark-compare")
MANIFEST = ("pmap-conformance", "manifest")
AGENTS = (("pmap-conformance", "agent"), ("python", "-m", "harness.clusters.agent"))
SHOWN = re.compile(r"^ {4,}(?=\S)(?:-? ?run: )?(.+)$", re.MULTILINE)


class Words(argparse.ArgumentParser):
    """pytest's parser as far as options are added to it; what is wrong is an error, not an end."""

    def getgroup(self, *_: str) -> Words:
        return self

    def addoption(self, *words: str, **more: Any) -> None:
        self.add_argument(*words, **more)

    def error(self, message: str) -> Any:
        raise ValueError(message)


def _commands(page: str) -> Iterator[list[str]]:
    text = (PROJECT / page).read_text().replace("\\\n", " ")
    for shown in SHOWN.findall(text):
        line = re.sub(r"\$\(\(.*?\)\)|\$\{\{.*?\}\}", "1", shown)
        line = re.sub(r"\$\w+", "1", line).split("|")[0]
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a word of several lines
            words = line.replace("'", " ").split()
        yield [part for word in words for part in (word.split() if " " in word else [word])]


def _of(page: str, *program: str) -> list[list[str]]:
    """The words that follow a program on a page, wherever in a line it stands."""
    found = []
    for words in _commands(page):
        for at in range(len(words)):
            if tuple(words[at : at + len(program)]) == program:
                found.append(words[at + len(program) :])
    return found


def _pytest_words(words: list[str]) -> argparse.Namespace:
    parser = Words(add_help=False, allow_abbrev=False)
    options.add(parser)
    for name in PYTESTS_OWN:
        parser.add_argument(name, dest=f"own_{name.strip('-')}")
    parser.add_argument("paths", nargs="*")
    end = next((at for at, word in enumerate(words) if word in ("||", "&&")), len(words))
    return parser.parse_intermixed_args(words[:end])


@pytest.mark.parametrize("page", PAGES)
def test_what_pytest_is_given_exists(page: str) -> None:
    every = _of(page, "pytest")
    assert len(every) > 5
    for words in every:
        assert _pytest_words(words).paths, words


def test_what_is_asked_of_hosts_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hosting.slurm, "allocated", lambda _: ("a", "b", "c", "d"))
    asked = 0
    for page in PAGES:
        for words in _of(page, "pytest"):
            chosen = _pytest_words(words)
            if chosen.hosts is None and not chosen.host_list:
                continue
            asked += 1
            tx = ["popen"] * int(chosen.own_n or 0)
            if chosen.key_file is not None:
                chosen.key_file = tmp_path / "key"
            given = {**vars(chosen), "tx": tx}
            config: Any = SimpleNamespace(getoption=lambda name, _=None, of=given: of[name])
            assert hosting.hosts_of(config, PLATFORMS[chosen.platform], lambda _: None), words
    assert asked > 10


@pytest.mark.parametrize("page", PAGES)
def test_what_agents_and_manifests_are_given_exists(page: str) -> None:
    manifest = Words(add_help=False, allow_abbrev=False)
    kubernetes.add(manifest)
    printed = [manifest.parse_args(words) for words in _of(page, *MANIFEST)]
    assert printed
    for one in printed:
        assert "JobSet" in kubernetes.printed(one)
    agent.add(options := Words(add_help=False, allow_abbrev=False))
    known = set(options._option_string_actions)
    started = [words for program in AGENTS for words in _of(page, *program)]
    assert started
    for words in started:
        assert {word for word in words if word.startswith("--")} <= known, words


def _command(words: list[str]) -> Command | None:
    return next((one for one in COMMANDS if one.words == tuple(words[: len(one.words)])), None)


@pytest.mark.parametrize("page", [*PAGES, "tox.ini"])
def test_what_our_command_is_given_exists(page: str) -> None:
    every = [words for words in _of(page, "pmap-conformance") if words and "--help" not in words]
    assert every
    for words in every:
        found = _command(words)
        assert found is not None, words
        own = words[len(found.words) : words.index("--") if "--" in words else None]
        problem = ""
        try:
            found.parser().parse_intermixed_args(own)
        except UsageError as error:
            problem = str(error)
        # What a text only names is no whole command; what is not there is wrong anywhere.
        assert not problem or "are required" in problem, words


def test_every_command_but_those_for_developers_is_on_a_page() -> None:
    shown = [_command(words) for page in PAGES for words in _of(page, "pmap-conformance")]
    left = {one.name for one in COMMANDS} - {one.name for one in shown if one}
    assert left <= {
        "list clauses",
        "list deviations",
        "results durations",
        "targets add",
        "dev readme",
        "dev changes",
        "dev freeze",
    }


@pytest.mark.parametrize("words", ["--hosts 2 --laucher ssh", "--topologies 1x8", "--hosts two"])
def test_what_does_not_exist_is_found(words: str) -> None:
    with pytest.raises(ValueError, match=r"unrecognized|give a whole number"):
        _pytest_words(["suites/", *words.split()])
