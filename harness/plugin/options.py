"""The command line of a run, and its way from the controller to the xdist workers."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.catalogue import names
from conformance.catalogue.topology import Topology
from harness.clusters.deadlines import HOSTS_S
from harness.clusters.launchers import here, slurm
from harness.running import devices, shares, tiers
from harness.running.fleet import WAYS, Hosts, address, key_of
from harness.running.runner import Asked
from harness.running.shards import Shard
from harness.targets import platforms
from harness.targets.target import Spec, Target, TargetError, describe, parse_spec, provision

if TYPE_CHECKING:
    import pytest

BLOCKS = 6
FEWEST_BLOCKS = 2
FAIL_ON = (names.FLAKY,)


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
    tier: str = tiers.FULL
    added: tuple[str, ...] = ()  # clauses all of whose cells run beside those of the tier
    rerun: bool = True
    fail_on_flaky: bool = False
    skip_missing: bool = False
    hosts: Hosts | None = None
    shard: Shard | None = None

    def dump(self) -> str:
        """As a string that an xdist worker can be given."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def load(cls, text: str) -> Options:
        """What `dump` wrote."""
        data = json.loads(text)
        targets = tuple(
            Asked(one["spec"], _target(one["target"]), one["unavailable"], one["jax"])
            for one in data.pop("targets")
        )
        for key in ("topologies", "implementations", "clauses", "added"):
            data[key] = tuple(data[key])
        if data["hosts"] is not None:
            key_file, names = data["hosts"]["key_file"], data["hosts"]["names"]
            given = {"key_file": Path(key_file) if key_file else None, "names": tuple(names)}
            data["hosts"] = Hosts(**data["hosts"] | given)
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
        "nightly (JAX's nightly wheels), "
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
        help="a target that cannot be had, or a cell that was lost, fails nothing: it is reported "
        "as not run",
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
    group.addoption(
        "--platform",
        default=platforms.CPU,
        choices=list(platforms.PLATFORMS),
        help="what clusters run on (default: cpu); tpu-compile compiles for TPU, without one",
    )
    group.addoption(
        "--tier",
        choices=tiers.TIERS,
        help="core: every fact once under each implementation; full: every cell (default: core, "
        "or full where --clause, --changed-since or a cell's node id names what to run)",
    )
    group.addoption(
        "--changed-since",
        metavar="REF",
        help="only the clauses whose program or deviation entries changed since this Git revision, "
        "all their cells; with --tier core the core tier as well",
    )
    group.addoption(
        "--no-rerun",
        action="store_true",
        help="a red cell is red at once (default: it is run again, alone, after all others; if the "
        "second run passes, the cell is flaky)",
    )
    group.addoption(
        "--fail-on",
        action="append",
        default=[],
        choices=FAIL_ON,
        help="also fail where a cell is flaky",
    )
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
    _add_hosts(parser.getgroup("conformance hosts", "clusters of several machines"))


def _add_hosts(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--hosts",
        type=int,
        metavar="N",
        help="run on N hosts, on each of which `python -m harness agent` dials in; with -n they "
        "are divided among the test processes",
    )
    group.addoption(
        "--listen",
        default="0.0.0.0:0",
        metavar="HOST:PORT",
        help="where agents dial in (default: all addresses, a free port)",
    )
    group.addoption(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="the key that agents must have too; made where it is not there",
    )
    group.addoption(
        "--launcher",
        choices=sorted(WAYS),
        help="start the agents: " + "; ".join(f"{key}: {one.text}" for key, one in WAYS.items()),
    )
    group.addoption(
        "--host-list", default="", metavar="A,B", help="the hosts by name, in the order of ranks"
    )
    group.addoption(
        "--hosts-within",
        type=float,
        default=HOSTS_S,
        metavar="SECONDS",
        help="how long hosts are waited for (default: %(default)g)",
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
    skip_missing = config.getoption("skip_missing_targets")
    platform = platforms.named(config.getoption("platform"))
    hosts = hosts_of(config, platform, progress)
    topologies = config.getoption("topology")
    if hosts is None:  # what other hosts have, their agents say
        found = devices.present(platform, os.environ)
        devices.required(platform, found)  # before anything is installed for it
        if platform.has_devices and not topologies:
            topologies = devices.topologies(found)
    return Options(
        targets=_provision(
            config.getoption("target") or ["current"],
            platform.packages,
            config.getoption("extra"),
            skip_missing,
            progress,
        ),
        topologies=tuple(dict.fromkeys(topologies)),
        implementations=tuple(dict.fromkeys(config.getoption("implementation") or names.COLUMNS)),
        clauses=tuple(dict.fromkeys(config.getoption("clause"))),
        platform=config.getoption("platform"),
        deadline_s=deadline_s,
        repeat=repeat,
        isolated=config.getoption("isolated"),
        blocks=blocks,
        run=secrets.token_hex(4),
        tier=config.getoption("tier") or (tiers.FULL if _names_cells(config) else tiers.CORE),
        rerun=_reruns(config, hosts),
        fail_on_flaky=names.FLAKY in config.getoption("fail_on"),
        skip_missing=skip_missing,
        hosts=hosts,
    )


def _reruns(config: pytest.Config, hosts: Hosts | None) -> bool:
    """Whether red cells are run again.

    Who stops at the first failure wants to see it now; hosts that are divided among test processes
    are gone when those have ended.
    """
    asked = not config.getoption("no_rerun") and not config.getoption("maxfail")
    divided = hosts is not None and processes_of(config) > 0
    return asked and config.getoption("repeat") == 1 and not divided


def _names_cells(config: pytest.Config) -> bool:
    """Whether the command line says by name what to run."""
    by_option = config.getoption("clause") or config.getoption("changed_since")
    return bool(by_option) or any("::" in one and "[" in one for one in config.args)


def processes_of(config: pytest.Config) -> int:
    """How many test processes `-n` asks for; 0 without it, when this one runs the cells."""
    return len(config.getoption("tx", None) or ())


def hosts_of(
    config: pytest.Config, platform: platforms.Platform, progress: Callable[[str], None]
) -> Hosts | None:
    """What is asked of hosts; ValueError where that cannot be."""
    hosts = _hosts(config)
    if hosts is None:
        return None
    if platform.has_devices and hosts.launcher == here.WAY.key:
        raise ValueError(
            f"--launcher local with --platform {platform.name}: several agents on this machine "
            "would each take all of its devices: leave out --hosts and --launcher"
        )
    if platform.has_devices and not config.getoption("topology"):
        raise ValueError(
            f"--platform {platform.name} with --hosts: what the hosts have is known only when they "
            f"come: say --topology, such as {hosts.count}x4 where each has 4 devices"
        )
    among = processes_of(config)
    if hosts.launcher == slurm.WAY.key and not hosts.names and among > 1:
        hosts = replace(hosts, names=slurm.allocated(os.environ)[: hosts.count])
    if among:
        refused = shares.refusal(hosts, among, platform.name)
        if refused is not None:
            raise ValueError(refused)
        progress(shares.told(hosts, among))
    return hosts


def _hosts(config: pytest.Config) -> Hosts | None:
    count, launcher = config.getoption("hosts"), config.getoption("launcher")
    names = tuple(name for name in config.getoption("host_list").split(",") if name)
    if count is None and names and launcher != "tpu-pod":
        count = len(names)
    if count is None:
        if launcher or config.getoption("key_file"):
            raise ValueError("--launcher and --key-file are about hosts: say how many, --hosts N")
        return None
    if count < 1:
        raise ValueError(f"--hosts {count}: give a whole number from 1 on")
    listen, key_file = config.getoption("listen"), config.getoption("key_file")
    address(listen)
    if launcher is None and (key_file is None or address(listen)[1] == 0):
        raise ValueError(
            "--hosts without --launcher: agents must know where to dial and with which key: give "
            "--listen HOST:PORT and --key-file FILE"
        )
    if key_file is not None:
        key_of(key_file)
    return Hosts(count, listen, key_file, launcher, names, config.getoption("hosts_within"))


def _provision(
    texts: Sequence[str],
    packages: Sequence[str],
    extras: Sequence[str],
    skip_missing: bool,
    progress: Callable[[str], None],
) -> tuple[Asked, ...]:
    asked: dict[str, Asked] = {}
    for text in texts:
        spec = parse_spec(text)
        try:
            target = _with_extras(spec, extras, progress, packages)
        except TargetError as error:
            if not skip_missing:
                raise
            progress(f"{spec} is left out: {error}")
            asked[str(spec)] = Asked(str(spec), None, str(error), spec.value or None)
        else:
            asked[target.spec] = Asked(target.spec, target, jax=_jax(target))
    return tuple(asked.values())


def _jax(target: Target) -> str:
    """The version of JAX in a target; its Python is asked only where its spec does not say."""
    spec = parse_spec(target.spec)
    return spec.value if spec.kind == "version" else describe(target)["jax"]


def _with_extras(
    spec: Spec,
    extras: Sequence[str],
    progress: Callable[[str], None],
    packages: Sequence[str] = (),
) -> Target:
    """The target with those of `extras` that this JAX can have; clauses say what they lack.

    Without its platform's `packages` there is no target.
    """
    target = provision(spec, extras=packages, progress=progress)
    exact = parse_spec(target.spec)

    def having(some: Sequence[str]) -> Target | None:
        try:
            return provision(exact, extras=[*packages, *some], progress=progress)
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
