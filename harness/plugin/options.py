"""The options of a run, and their transfer from the controller to the xdist workers."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.commandline import limits
from conformance.model.verdicts import Verdict
from conformance.spec import names
from conformance.spec.topology import Topology
from harness.plugin import hosting
from harness.plugin.hosting import hosts_of, processes_of
from harness.running import admission, devices, tiers
from harness.running.fleet import Hosts
from harness.running.runner import Asked
from harness.running.shards import Shard
from harness.targets import platforms
from harness.targets.target import (
    Spec,
    Target,
    TargetError,
    describe,
    expand_all,
    parse_spec,
    provision,
)

if TYPE_CHECKING:
    import pytest

BLOCKS = 6
FEWEST_BLOCKS, MOST_BLOCKS = 2, 1000
MOST_REPEATS = 10_000
FAIL_ON = (Verdict.FLAKY,)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run, with every target provisioned or its absence explained."""

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
        """Serialise to a string that an xdist worker can receive."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def load(cls, text: str) -> Options:
        """Restore what `dump` wrote."""
        data = json.loads(text)
        targets = tuple(
            Asked(one["spec"], _target(one["target"]), one["unavailable"], one["jax"])
            for one in data.pop("targets")
        )
        for key in ("topologies", "implementations", "clauses", "added"):
            data[key] = tuple(data[key])
        if data["hosts"] is not None:
            key_file, names = data["hosts"]["key_file"], data["hosts"]["names"]
            decoded = {"key_file": Path(key_file) if key_file else None, "names": tuple(names)}
            data["hosts"] = Hosts(**data["hosts"] | decoded)
        if data["shard"] is not None:
            data["shard"] = Shard(*(end and tuple(end) for end in data["shard"].values()))
        return cls(targets=targets, **data)


def add(parser: pytest.Parser) -> None:
    """Declare the options, as groups in `pytest --help`."""
    group = parser.getgroup("conformance", "what the cells run on")
    for add_some in (_add_targets, _add_cells, _add_results, _add_runs):
        add_some(group)
    hosting.add(parser.getgroup("conformance hosts", "clusters of several machines"))


def _add_targets(group: pytest.OptionGroup) -> None:
    """Declare what clusters run on."""
    group.addoption(
        "--target",
        action="append",
        default=[],
        metavar="SPEC",
        help="JAX to run on, repeatable: jax==0.9.0 (installed and cached on first use), newest, "
        "nightly (JAX's nightly wheels), all (every release from 0.7.0 on), "
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


def _add_cells(group: pytest.OptionGroup) -> None:
    """Declare which cells run."""
    group.addoption(
        "--topology",
        type=limits.checked(Topology.parse),
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
        help="only this clause, or all that begin with these words of an id or match a pattern "
        "(errors.*.fix-*), repeatable",
    )
    group.addoption(
        "--platform",
        default=names.CPU,
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


def _add_results(group: pytest.OptionGroup) -> None:
    """Declare what a red cell means, and where results go."""
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
    group.addoption(
        "--results",
        metavar="FILE",
        help="write results there, as JSON Lines, from the first cell on; what the file held "
        "before is kept as FILE.bak",
    )
    group.addoption(
        "--overwrite", action="store_true", help="keep nothing of what the file of --results held"
    )
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


def _add_runs(group: pytest.OptionGroup) -> None:
    """Declare how a cell runs."""
    group.addoption(
        "--deadline",
        type=limits.seconds,
        metavar="SECONDS",
        help="after which a case counts as hung (default: the clause's, else 60)",
    )
    group.addoption(
        "--isolated", action="store_true", help="a fresh cluster per cell; same verdicts, slower"
    )
    group.addoption(
        "--repeat",
        type=limits.whole(1, MOST_REPEATS),
        default=1,
        metavar="N",
        help="run each cell N times on fresh clusters; a cell whose verdicts differ is flaky",
    )
    group.addoption(
        "--blocks",
        type=limits.whole(FEWEST_BLOCKS, MOST_BLOCKS, "as a single block shows no spread"),
        default=BLOCKS,
        metavar="N",
        help=f"blocks in which the cells of the time lane take turns (default: {BLOCKS})",
    )


def read(config: pytest.Config, progress: Callable[[str], None]) -> Options:
    """Check the options and provision the targets; TargetError or ValueError say what to do."""
    skip_missing = config.getoption("skip_missing_targets")
    platform = platforms.named(config.getoption("platform"))
    hosts = hosts_of(config, platform, progress)
    topologies = config.getoption("topology")
    if hosts is None:  # what other hosts have, their agents say
        admission.fits(Topology.parse(text).processes for text in topologies)
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
        deadline_s=config.getoption("deadline"),
        repeat=config.getoption("repeat"),
        isolated=config.getoption("isolated"),
        blocks=config.getoption("blocks"),
        run=secrets.token_hex(4),
        tier=config.getoption("tier") or (tiers.FULL if _names_cells(config) else tiers.CORE),
        rerun=_reruns(config, hosts),
        fail_on_flaky=Verdict.FLAKY in config.getoption("fail_on"),
        skip_missing=skip_missing,
        hosts=hosts,
    )


def _reruns(config: pytest.Config, hosts: Hosts | None) -> bool:
    """Return whether red cells are run again.

    Not if the run stops at the first failure, whose result should come at once; nor if hosts are
    divided among test processes, because they are gone when those have ended.
    """
    asked = not config.getoption("no_rerun") and not config.getoption("maxfail")
    divided = hosts is not None and processes_of(config) > 0
    return asked and config.getoption("repeat") == 1 and not divided


def _names_cells(config: pytest.Config) -> bool:
    """Return whether the command line names what to run."""
    by_option = config.getoption("clause") or config.getoption("changed_since")
    return bool(by_option) or any("::" in one and "[" in one for one in config.args)


def _provision(
    texts: Sequence[str],
    packages: Sequence[str],
    extras: Sequence[str],
    skip_missing: bool,
    progress: Callable[[str], None],
) -> tuple[Asked, ...]:
    asked: dict[str, Asked] = {}
    for text in expand_all(texts):
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
    """Return the version of JAX in a target; its Python is asked only if its spec does not say."""
    spec = parse_spec(target.spec)
    return spec.value if spec.kind == "version" else describe(target)["jax"]


def _with_extras(
    spec: Spec,
    extras: Sequence[str],
    progress: Callable[[str], None],
    packages: Sequence[str] = (),
) -> Target:
    """Return the target with those `extras` that this JAX supports; clauses report what they lack.

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
