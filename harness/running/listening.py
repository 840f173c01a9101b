"""Choose the interface on which agents connect: the one that their hosts reach, and no other."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from conformance.commandline.limits import parse_address
from harness.clusters.launchers import here, mpi, slurm
from harness.clusters.launchers.starting import Way

LOOPBACK = "127.0.0.1"
EVERY = "0.0.0.0"
ANY_PORT = 9  # no packet is sent to it
ELSEWHERE = "192.0.2.1"  # an address of no network, so the way to it is the default route


def default(way: Way | None, names: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return `HOST:PORT` with a free port, for a launcher's agents on the hosts `names`."""
    return f"{interface(way, names, environment)}:0"


def interface(way: Way | None, names: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the address of this machine that a launcher's hosts reach.

    It follows from the routes to the hosts if their names are known, else from this machine's own
    address; all interfaces only if no single one is known.
    """
    if way is None or way is here.WAY:
        return LOOPBACK
    found = [towards(one.rpartition("@")[2]) for one in names or _allocated(way, environment)]
    if not found or None in found:
        return own()
    others = {one for one in found if one is not None} - {LOOPBACK}
    return (others or {LOOPBACK}).pop() if len(others) < 2 else EVERY


def towards(host: str) -> str | None:
    """Return the address from which this machine reaches a host; None without a route.

    Nothing is sent: connecting a datagram socket only looks up the route.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect((host, ANY_PORT))
            return str(route.getsockname()[0])
    except (OSError, UnicodeError):
        return None


def own() -> str:
    """Return the address of this machine's host name, or else of its default route."""
    for host in (socket.getfqdn(), ELSEWHERE):
        found = towards(host)
        # The route to an own address starts there. Some systems give their name one of loopback.
        if found is not None and not found.startswith("127."):
            return found
    return EVERY


def reached_by(listen: str, way: Way) -> str:
    """Return the address at which launched agents reach this machine."""
    host, _ = parse_address(listen)
    if host != EVERY:
        return host
    return LOOPBACK if way is here.WAY else socket.getfqdn()


def _allocated(way: Way, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the nodes of a Slurm allocation, which mpirun uses as well; empty if unknown."""
    try:
        return slurm.allocated(environment) if way in (slurm.WAY, mpi.WAY) else ()
    except ValueError:
        return ()
