"""Numbers and addresses from a command line: what is out of bounds is refused at once, in a line.

The wrong texts are drawn with a seed: another one draws others (`CONFORMANCE_SEED=N`).
"""

from __future__ import annotations

import argparse
import math
import os
import random
import string
from collections.abc import Callable
from typing import Any

import pytest

from conformance.commandline import limits
from harness.commandline.main import COMMANDS
from harness.plugin import options
from harness.running import admission, shards

SEED = int(os.environ.get("CONFORMANCE_SEED", "25"))
# One seed in seconds; the others with the self-tests that take long.
SEEDS = [SEED, *(pytest.param(SEED + n, marks=pytest.mark.long) for n in range(1, 20))]
CASES = 400
HUGE = "1" + "0" * 23
ODD = (
    "nan",
    "inf",
    "-inf",
    "1e999",
    "-1",
    "1_0",
    "٣",
    "0x10",
    "",
    " ",
    "1 ",
    "--",
    "\0",
    "9" * 5000,
)


class Words(argparse.ArgumentParser):
    """pytest's parser as far as options are added to it; what is wrong is an error, not an end."""

    def getgroup(self, *_: str) -> Words:
        return self

    def addoption(self, *words: str, **more: Any) -> None:
        self.add_argument(*words, **more)

    def error(self, message: str) -> Any:
        raise ValueError(message)


def parser(command: str) -> argparse.ArgumentParser:
    if command == "pytest":
        made = Words(add_help=False, allow_abbrev=False)
        options.add(made)  # type: ignore[arg-type]
        return made
    return next(one for one in COMMANDS if one.name == command).parser()


PARSERS = ("pytest", *(one.name for one in COMMANDS))


@pytest.mark.parametrize("command", PARSERS)
def test_every_number_is_bounded(command: str) -> None:
    every = parser(command)._actions
    assert every
    assert [one.option_strings for one in every if one.type in (int, float)] == []


REFUSED = [
    *(("pytest", f"--deadline={text}") for text in ("nan", "inf", "-inf", "0", "-1", "1e9", "x")),
    *(("pytest", f"--hosts-within={text}") for text in ("nan", "inf", "-1", "1e999")),
    *(("pytest", f"--repeat={text}") for text in (HUGE, "0", "-1", "1.5", "nan")),
    *(("pytest", f"--blocks={text}") for text in (HUGE, "1", "")),
    *(("pytest", f"--hosts={text}") for text in (HUGE, "0", "two")),
    *(("pytest", f"--listen={text}") for text in ("127.0.0.1:99999", "7070", ":1", "h:", "h:-1")),
    *(("pytest", f"--topology={text}") for text in ("8", "0x1", "1x0", f"{HUGE}x1", "1x8x1")),
    *(("agent", f"--patience={text}") for text in ("nan", "inf", "-1")),
    *(("agent", f"--controller={text}") for text in ("127.0.0.1:99999", "h", "h:p", "a b:1")),
    *(("agent", f"--rank={text}") for text in ("-1", "1e3", HUGE)),
    *(("manifest", f"--hosts={text}") for text in ("0", "-3", HUGE)),
    *(("results strength", f"X --fail-on=below={text}") for text in ("nan", "1.1", "-0.1", "inf")),
    *(("results strength", f"X --fail-on={text}") for text in ("red", "0.9")),
    *(("results strength", f"X --sample={text}") for text in ("0", "-1", HUGE)),
    *(("results strength", f"X --weakest={text}") for text in ("-1", "1e3", HUGE)),
]


@pytest.mark.parametrize(("command", "words"), REFUSED, ids=lambda one: str(one)[:48])
def test_what_no_option_can_mean_is_refused_in_one_line(
    command: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = words.rpartition("--")[2].partition("=")[0]
    with pytest.raises((SystemExit, ValueError)) as ended:
        parser(command).parse_intermixed_args([*words.split(" ")[:-1], words.split(" ")[-1]])
    if isinstance(ended.value, SystemExit):
        assert ended.value.code == 2
        message = capsys.readouterr().err.splitlines()[-1]
    else:
        message = str(ended.value)
    assert "\n" not in message
    assert f"argument --{name}: " in message
    assert "give a" in message or "write" in message
    assert len(message) < 300


ACCEPTED: list[tuple[Callable[[str], Any], str, Any]] = [
    (limits.seconds, "0.5", 0.5),
    (limits.seconds, "3600", 3600.0),
    (limits.seconds, str(limits.MOST_SECONDS), float(limits.MOST_SECONDS)),
    (limits.patience, "0", 0.0),
    (limits.whole(1, 9), "1", 1),
    (limits.whole(1, 9), "9", 9),
    (limits.share, "0", 0.0),
    (limits.share, "1", 1.0),
    (limits.address, "n0.example:0", "n0.example:0"),
    (limits.address, "10.0.0.1:65535", "10.0.0.1:65535"),
]


@pytest.mark.parametrize(("kind", "text", "value"), ACCEPTED)
def test_what_is_within_bounds_is_what_was_written(
    kind: Callable[[str], Any], text: str, value: Any
) -> None:
    assert kind(text) == value


def drawn(random_: random.Random) -> str:
    """A text that a number may be, or nearly."""
    made = random_.choice(
        [
            lambda: random_.choice(ODD),
            lambda: str(random_.uniform(-1e6, 1e6)),
            lambda: str(random_.randint(-(10 ** random_.randint(0, 30)), 10**30)),
            lambda: f"{random_.choice(ODD)}:{random_.choice([*ODD, '7070', '70700'])}",
            lambda: "".join(random_.choices(string.printable, k=random_.randint(1, 12))),
        ]
    )
    return made()


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_written_is_within_bounds_or_refused(seed: int) -> None:
    random_ = random.Random(seed)
    taken = refused = 0
    for _ in range(CASES):
        text = drawn(random_)
        for kind in (limits.seconds, limits.patience, limits.share, limits.whole(0, 10**6)):
            try:
                value = kind(text)
            except argparse.ArgumentTypeError as error:
                refused += 1
                said = str(error)
            else:
                said = ""
                taken += 1
                assert math.isfinite(value), text
                assert 0 <= value <= 10**6, text
            assert "\n" not in said, text
            assert len(said) < 300, text
        try:
            host, port = limits.parse_address(text)
        except ValueError:
            refused += 1
        else:
            assert host
            assert 0 <= port <= limits.MOST_PORT
    assert taken > CASES / 20
    assert refused > CASES


def test_a_cluster_that_this_machine_never_takes_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "process_capacity", lambda: 16)
    admission.fits([])
    admission.fits([1, 16])
    with pytest.raises(ValueError, match=r"^64 processes .*\(16, "):
        admission.fits([1, 64])


@pytest.mark.parametrize("text", ["0/3", "4/3", f"1/{HUGE}", "1/100001", "1/٣", "a/b", "1/2/3"])
def test_a_part_of_the_cells_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"^--shard .*: "):
        shards.parse(text)
