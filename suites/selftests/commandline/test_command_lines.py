"""Command lines on the project's pages: every option exists, and what they ask of hosts can be."""

from __future__ import annotations

import argparse
import configparser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import documented
import pytest

from conformance.worker import agent
from harness.clusters.launchers import kubernetes
from harness.commandline.command import UsageError
from harness.commandline.main import COMMANDS, Command, main
from harness.plugin import hosting, options
from harness.targets.platforms import PLATFORMS

PAGES = [documented.name(page) for page in documented.pages(generated=False)]
TOX = "tox.ini"
A_VENDORS = "mychip"  # a platform that a page tells how to add
# What pytest and its plugins have of themselves.
PYTESTS_OWN = ("-k", "-m", "-n", "--benchmark-json", "--benchmark-compare")
SWITCHES = ("-x", "--pyargs", "--pmap-conformance", "--long")  # these take no value
MANIFEST = ("pmap-conformance", "manifest")
AGENTS = (("pmap-conformance", "agent"), ("python", "-m", "conformance.worker.agent"))


class Words(argparse.ArgumentParser):
    """pytest's parser as far as options are added to it; what is wrong is an error, not an end."""

    def getgroup(self, *_: str) -> Words:
        return self

    def addoption(self, *words: str, **more: Any) -> None:
        self.add_argument(*words, **more)

    def error(self, message: str) -> Any:
        raise ValueError(message)


def _of(page: str, *program: str) -> list[list[str]]:
    """The words that follow a program on a page; `tox.ini` is a page of commands alone."""
    if page != TOX:
        return documented.calls(documented.PROJECT / page, *program)
    text = (documented.PROJECT / page).read_text(encoding="utf-8")
    read = configparser.ConfigParser(interpolation=None)
    read.read_string(text)
    for name, targets in read["published"].items():
        text = text.replace(f"{{[published]{name}}}", targets.strip())
    lines = documented.words_of(text)
    return [words[len(program) :] for words in lines if tuple(words[: len(program)]) == program]


def _on_pages(*program: str) -> list[list[str]]:
    return [words for page in PAGES for words in _of(page, *program)]


def _pytest_words(words: list[str]) -> argparse.Namespace:
    parser = Words(add_help=False, allow_abbrev=False)
    options.add(parser)
    for name in PYTESTS_OWN:
        parser.add_argument(name, dest=f"own_{name.strip('-')}")
    for name in SWITCHES:
        parser.add_argument(name, action="store_true")
    parser.add_argument("paths", nargs="*")
    return parser.parse_intermixed_args(["cpu" if one == A_VENDORS else one for one in words])


@pytest.mark.parametrize("page", PAGES)
def test_what_pytest_is_given_exists(page: str) -> None:
    for words in _of(page, "pytest"):
        paths = _pytest_words(words).paths
        assert paths, words
        for path in paths:
            at_home = path.startswith("suites/") and "{" not in path
            assert not at_home or (documented.PROJECT / path).exists(), words


def test_pages_call_pytest() -> None:
    assert len(_on_pages("pytest")) > 40


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


def test_what_agents_and_manifests_are_given_exists() -> None:
    manifest = Words(add_help=False, allow_abbrev=False)
    kubernetes.add(manifest)
    printed = [manifest.parse_args(words) for words in _on_pages(*MANIFEST) if words]
    assert printed
    for one in printed:
        assert "JobSet" in kubernetes.printed(one)
    agent.add(options := Words(add_help=False, allow_abbrev=False))
    known = set(options._option_string_actions)
    started = [words for program in AGENTS for words in _on_pages(*program)]
    assert started
    for words in started:
        assert {word for word in words if word.startswith("--")} <= known, words


def _command(words: list[str]) -> Command | None:
    return next((one for one in COMMANDS if one.words == tuple(words[: len(one.words)])), None)


def _check(found: Command, words: list[str]) -> None:
    """Parse the words of a command; of `run` those after `--` are pytest's."""
    end = words.index("--") if "--" in words else len(words)
    problem = ""
    try:
        found.parser().parse_intermixed_args(words[len(found.words) : end])
    except UsageError as error:
        problem = str(error)
    # What a text only names is no whole command; what is not there is wrong anywhere.
    assert not problem or "are required" in problem, words
    if found.name == "run":
        _pytest_words(words[end + 1 :])


@pytest.mark.parametrize("page", [*PAGES, TOX])
def test_what_our_command_is_given_exists(page: str) -> None:
    for words in _of(page, "pmap-conformance"):
        if words and words[0] != "--help":
            found = _command(words)
            assert found is not None, words
            _check(found, words)


def test_every_command_but_those_for_developers_is_on_a_page() -> None:
    shown = [_command(words) for words in _on_pages("pmap-conformance")]
    left = {one.name for one in COMMANDS} - {one.name for one in shown if one}
    assert left <= {"list deviations", "results durations", "targets add", "dev freeze"}


def test_jobs_of_tox_on_pages_exist_with_what_they_are_given() -> None:
    known = configparser.ConfigParser(interpolation=None)
    known.read(documented.PROJECT / TOX)
    every = _on_pages("tox", "run", "-e")
    assert {words[0] for words in every} >= {"matrix", "test", "publish", "lint"}
    for job, *words in every:
        commands = known[f"testenv:{job}"]["commands"]
        assert not words or words[0] == "--", words
        assert not words or "{posargs}" in commands, words
        if "results merge" in commands:
            merge = next(one for one in COMMANDS if one.name == "results merge")
            _check(merge, ["results", "merge", *words[1:]])
        else:
            _pytest_words(words[1:])


# They read what is there, and write nothing.
READERS = (
    *("list cells", "list claims", "list clauses", "show", "causes list", "targets list"),
    *("report upgrade", "results summary"),
)


def _complete(found: Command, words: list[str]) -> bool:
    """Return whether all named files exist: no placeholder, and no file that a run has to make."""
    own = words[len(found.words) :]
    try:
        found.parser().parse_intermixed_args(own)
    except UsageError:
        return False
    return not any(one.isupper() or one.startswith("build/") for one in own) and all(
        (documented.PROJECT / one).exists() for one in own if one.endswith((".jsonl", ".xz"))
    )


def _read_only() -> list[Any]:
    every = {tuple(words): words for words in _on_pages("pmap-conformance")}.values()
    found = [(one, words) for words in every if (one := _command(words)) is not None]
    return [
        pytest.param(words, id=" ".join(words))
        for one, words in found
        if one.name in READERS and len(words) >= len(one.words) and _complete(one, words)
    ]


@pytest.mark.long
@pytest.mark.parametrize("words", _read_only())
def test_commands_that_only_read_run_as_they_are_written(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(documented.PROJECT)
    assert main(words) == 0
    assert capsys.readouterr().out


def test_commands_that_only_read_are_on_pages() -> None:
    shown = {one.name for found in _read_only() if (one := _command(found.values[0])) is not None}
    assert shown == set(READERS) - {"results summary"}


@pytest.mark.parametrize("words", ["--hosts 2 --laucher ssh", "--topologies 1x8", "--hosts two"])
def test_what_does_not_exist_is_found(words: str) -> None:
    with pytest.raises(ValueError, match=r"unrecognized|give a whole number"):
        _pytest_words(["suites/", *words.split()])
