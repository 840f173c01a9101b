"""The order of agents that connected, and whether they can form one cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.commandline.counting import counted
from conformance.spec.names import CPU
from conformance.worker.agent import MOST_RANK

MOST_CHARACTERS = 200  # of a word of a hello
WORDS = ("host", "address", "python", "jax", "jaxlib", "sources", "platform")


@dataclass(frozen=True, slots=True)
class Hello:
    """A host's description of itself (`machine.described`)."""

    host: str
    address: str
    rank: int | None
    python: str
    jax: str
    jaxlib: str
    sources: str
    platform: str = CPU
    devices: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __str__(self) -> str:
        return self.host if self.rank is None else f"{self.host} (rank {self.rank})"

    @property
    def text(self) -> str:
        """Return the description as one line."""
        has = ", ".join(f"{kind} {','.join(ids)}" for kind, ids in self.devices)
        found = f"{self.platform}{f' ({has})' if has else ''}"
        return f"{self} at {self.address}: jax {self.jax}, Python {self.python}, {found}"

    def has(self, platform: str) -> tuple[str, ...]:
        """Return the ids of the host's devices of a platform."""
        return dict(self.devices).get(platform, ())


def parse(message: Mapping[str, Any]) -> Hello:
    """Parse an agent's hello; ValueError if it is invalid."""
    try:
        rank = message["rank"]
        if not (rank is None or (type(rank) is int and 0 <= rank <= MOST_RANK)):
            raise ValueError(f"rank {rank}")
        return Hello(
            rank=rank,
            devices=tuple(
                (_short(kind), tuple(map(_short, ids)))
                for kind, ids in dict(message["devices"]).items()
            ),
            **{name: _short(message[name]) for name in WORDS},
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        host = str(message.get("host", "without a name"))[:MOST_CHARACTERS]
        record = str(message)[:MOST_CHARACTERS]
        raise ValueError(f"host {host} is no agent of this run: it sent {record}") from error


def _short(value: Any) -> str:
    """Return a word of a hello; ValueError if it is too long to display."""
    if len(text := str(value)) > MOST_CHARACTERS:
        raise ValueError(f"{len(text)} characters")
    return text


def order(hello: Hello) -> tuple[bool, int, str, str]:
    """Sort key of hosts: by the job's rank; hosts without a rank by their names."""
    return hello.rank is None, hello.rank or 0, hello.host, hello.address


def spread(processes: int, hosts: int) -> list[int]:
    """Return the host of each process: one each, or neighbouring processes share a host."""
    used = min(processes, hosts)
    return [process * used // processes for process in range(processes)]


def disagreement(some: Sequence[Hello], sources: str, devices: str | None = None) -> str | None:
    """Return why hosts cannot form one cluster of a controller with `sources`; None if they can.

    `devices` is the platform whose devices they must have, None if the platform has no devices.
    """
    other = [one for one in some if one.sources != sources]
    if other:
        return (
            f"{_names(other)} {_has(other)} another state of this project than the controller: "
            "install the same one everywhere"
        )
    for what in ("jax", "jaxlib"):
        versions = Counter(getattr(one, what) for one in some)
        if len(versions) > 1:
            common = versions.most_common(1)[0][0]
            odd = [one for one in some if getattr(one, what) != common]
            differing = ", ".join(f"{one} has {what} {getattr(one, what)}" for one in odd)
            return f"{differing}, the others have {common}: install the same one everywhere"
    idle = [one for one in some if devices is not None and one.platform != devices]
    if idle:
        has = ", ".join(f"{len(one.has(str(devices)))} on {one}" for one in idle)
        return (
            f"{_names(idle)} cannot compute on {devices} ({devices} devices: {has}): start the "
            f"agent where such a device is seen, with a Python that has jax[{devices}]"
        )
    ranks = Counter(one.rank for one in some)
    if None in ranks and len(ranks) > 1:
        without = [one for one in some if one.rank is None]
        return (
            f"{_names(without)} {_has(without)} no rank, the others have: start all by one "
            "launcher, or all with --rank"
        )
    twice = [rank for rank, count in ranks.items() if rank is not None and count > 1]
    if twice:
        same = [one for one in some if one.rank == twice[0]]
        return f"{' and '.join(one.host for one in same)} both have rank {twice[0]}: give each one"
    return None


def missing(some: Sequence[Hello], count: int, names: Sequence[str] = (), first: int = 0) -> str:
    """List by rank which of `count` hosts are absent; `first` is the lowest rank.

    Also by name, if `names` has a name for each host.
    """
    ranks = {one.rank for one in some}
    absent = [rank for rank in range(first, first + count) if rank not in ranks]
    if None in ranks or count - len(some) != len(absent):
        return f"{count - len(some)} of {counted(count, 'host')}"
    if len(names) == count:
        return ", ".join(f"{names[rank - first]} (rank {rank})" for rank in absent)
    return f"rank{'' if len(absent) == 1 else 's'} {', '.join(map(str, absent))}"


def _names(some: Sequence[Hello]) -> str:
    return ", ".join(map(str, some))


def _has(some: Sequence[Hello]) -> str:
    return "has" if len(some) == 1 else "have"
