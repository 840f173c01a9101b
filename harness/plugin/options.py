"""The command line of a run, and its way from the controller to the xdist workers."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.catalogue import names
from conformance.catalogue.topology import Topology
from harness.running.runner import Asked
from harness.running.shards import Shard
from harness.targets.target import Spec, Target, TargetError, parse_spec, provision

if TYPE_CHECKING:
    import pytest

BLOCKS = 6
FEWEST_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, with every target provisioned or its absence explained."""

    targets: tuple[Asked, ...]
    topologies: tuple[str, ...]
    implementations: tuple[str, ...]
    clauses: tuple[str, ...]
    platform: str
    deadline_s: float | None
    repeat: int
    isolated: bool
    blocks: int
    run: str
    shard: Shard | None = None

    def dump(self) -> str:
        """As a string that an xdist worker can be given."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def load(cls, text: str) -> Options:
        """What `dump` wrote."""
        data = json.loads(text)
        targets = tuple(
            Asked(one["spec"], _target(one["target"]), one["unavailable"])
            for one in data.pop("targets")
        )
        for key in ("topologies", "implementations", "clauses"):
            data[key] = tuple(data[key])
        if data["shard"] is not None:
            data["shard"] = Shard(*(end and tuple(end) for end in data["shard"].values()))
        return cls(targets=targets, **data)


def add(parser: pytest.Parser) -> None:
    """The options, in a group of their own in `pytest --help`."""
    group = parser.getgroup("conformance", "what the cells run on")
    group.addoption(
        "--target",
        action="append",
        default=[],
        metavar="SPEC",
        help="JAX to run on, repeatable: jax==0.9.0 (installed and cached on first use), newest, "
        "current (default: this environment's), or the path of a Python interpreter",
    )
    group.addoption(
        "--extra",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="install this package in the targets that can have it, repeatable: flax, equinox",
    )
    group.addoption(
        "--skip-missing-targets",
        action="store_true",
        help="a target that cannot be had is reported as not run, and the others go on",
    )
    group.addoption(
        "--topology",
        action="append",
        default=[],
        metavar="NxD",
        help="processes x devices per process, repeatable: 1x8, 2x2, 4x2 (default: each clause's)",
    )
    group.addoption(
        "--implementation",
        action="append",
        default=[],
        choices=names.COLUMNS,
        help="only this implementation, repeatable; jax is what maps nothing",
    )
    group.addoption(
        "--clause",
        action="append",
        default=[],
        metavar="ID",
        help="only this clause, or all that begin with these words of an id, repeatable",
    )
    group.addoption("--platform", default="cpu", help="JAX platform of the clusters (default: cpu)")
    group.addoption("--results", metavar="FILE", help="write results there, as JSON Lines")
    group.addoption(
        "--resume",
        action="append",
        default=[],
        metavar="FILE",
        help="do not run what this results file (.jsonl or .jsonl.xz) has of the same program on "
        "the same target: judge it anew and carry it over, repeatable",
    )
    group.addoption(
        "--shard",
        metavar="K/N",
        help="only the Kth of N parts of the cells, the same for everybody: parts are run anywhere "
        "and their results files read together",
    )
    group.addoption(
        "--durations-of",
        metavar="FILE",
        help="a results file by which the parts of --shard take equally long",
    )
    group.addoption(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="after which a case counts as hung (default: the clause's, else 60)",
    )
    group.addoption(
        "--isolated", action="store_true", help="a fresh cluster per cell; same verdicts, slower"
    )
    group.addoption(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="run each cell N times on fresh clusters; a cell whose verdicts differ is flaky",
    )
    group.addoption(
        "--blocks",
        type=int,
        default=BLOCKS,
        metavar="N",
        help=f"blocks in which the entrants of the time lane take turns (default: {BLOCKS})",
    )


def read(config: pytest.Config, progress: Callable[[str], None]) -> Options:
    """Check the options and provision the targets. TargetError or ValueError say what to do."""
    for text in config.getoption("topology"):
        Topology.parse(text)
    deadline_s, repeat = config.getoption("deadline"), config.getoption("repeat")
    if deadline_s is not None and deadline_s <= 0:
        raise ValueError(f"--deadline {deadline_s:g}: give a number of seconds above 0")
    if repeat < 1:
        raise ValueError(f"--repeat {repeat}: give a whole number from 1 on")
    blocks = config.getoption("blocks")
    if blocks < FEWEST_BLOCKS:
        raise ValueError(
            f"--blocks {blocks}: give a whole number from {FEWEST_BLOCKS} on, as a single block "
            "shows no spread"
        )
    return Options(
        targets=_provision(
            config.getoption("target") or ["current"],
            config.getoption("extra"),
            config.getoption("skip_missing_targets"),
            progress,
        ),
        topologies=tuple(dict.fromkeys(config.getoption("topology"))),
        implementations=tuple(dict.fromkeys(config.getoption("implementation") or names.COLUMNS)),
        clauses=tuple(dict.fromkeys(config.getoption("clause"))),
        platform=config.getoption("platform"),
        deadline_s=deadline_s,
        repeat=repeat,
        isolated=config.getoption("isolated"),
        blocks=blocks,
        run=secrets.token_hex(4),
    )


def _provision(
    texts: Sequence[str],
    extras: Sequence[str],
    skip_missing: bool,
    progress: Callable[[str], None],
) -> tuple[Asked, ...]:
    asked: dict[str, Asked] = {}
    for text in texts:
        spec = parse_spec(text)
        try:
            target = _with_extras(spec, extras, progress)
        except TargetError as error:
            if not skip_missing:
                raise
            progress(f"{spec} is left out: {error}")
            asked[str(spec)] = Asked(str(spec), None, str(error))
        else:
            asked[target.spec] = Asked(target.spec, target)
    return tuple(asked.values())


def _with_extras(spec: Spec, extras: Sequence[str], progress: Callable[[str], None]) -> Target:
    """The target with those of `extras` that this JAX can have; clauses say what they lack."""
    target = provision(spec, progress=progress)
    exact = parse_spec(target.spec)

    def having(some: Sequence[str]) -> Target | None:
        try:
            return provision(exact, extras=some, progress=progress)
        except TargetError as error:
            progress(f"{exact}: no {', '.join(some)} ({str(error).splitlines()[0]})")
            return None

    if not extras:
        return target
    whole = having(extras)
    if whole is not None or len(extras) == 1:
        return whole or target
    kept = [one for one in extras if having([one]) is not None]
    return (having(kept) if kept else None) or target


def _target(data: dict[str, Any] | None) -> Target | None:
    if data is None:
        return None
    environment = data["environment"]
    return Target(
        data["spec"],
        Path(data["python"]),
        tuple(data["extras"]),
        Path(environment) if environment else None,
    )
