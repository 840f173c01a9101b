"""`jax.config.update` of the option: the time of the update relative to the mapped function."""

from __future__ import annotations

from conformance.sections.switches import (
    BOTH,
    DEADLINE_S,
    NO_SWITCH,
    OF_A_PROCESS,
    VARIABLE,
    follow,
    ran,
)
from conformance.spec.defaults import Defaults
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.worker.protocols import Cluster, Implementation

OTHER = {LEGACY_PMAP: NEW_PMAP, NEW_PMAP: LEGACY_PMAP}
# The option's value for each implementation.
OPTION = {LEGACY_PMAP: "False", NEW_PMAP: "True"}

CONSTRUCTION = "switches.config-update.at-construction"

DEFAULTS = Defaults(left_out=OF_A_PROCESS, deadline_s=DEADLINE_S, selects=True)


@DEFAULTS.clause(
    "switches.config-update.before-construction",
    claim="migrate-pmap.config-update",
    fact=CONSTRUCTION,
    expect=BOTH,
)
def before_construction(impl: Implementation, cluster: Cluster) -> None:
    """`config.update` is called before `jax.pmap(f)`."""
    follow(cluster, "session", OPTION[impl.name], "map", "call", "call")


@DEFAULTS.clause(
    "switches.config-update.over-environment", claim="migrate-pmap.config-update", expect=BOTH
)
def over_environment(impl: Implementation, cluster: Cluster) -> None:
    """`config.update` in a process whose environment variable has the opposite value."""
    opposite = {VARIABLE: OPTION[OTHER[impl.name]]}
    words = (OPTION[impl.name], "map", "call", "call")
    follow(cluster, "session", *words, environment=opposite)


@DEFAULTS.clause(
    "switches.config-update.before-first-call",
    claim="migrate-pmap.switch-before-first-call",
    expect=BOTH,
)
def before_first_call(impl: Implementation, cluster: Cluster) -> None:
    """`config.update` is called after `jax.pmap(f)`, and before the mapped function's first
    call.
    """
    opposite = OPTION[OTHER[impl.name]]
    follow(cluster, "session", opposite, "map", OPTION[impl.name], "call", "call")


@DEFAULTS.clause(
    "switches.config-update.after-first-call",
    claim="migrate-pmap.switch-before-construction",
    expect=BOTH,
)
def after_first_call(impl: Implementation, cluster: Cluster) -> None:
    """A mapped function that was already called is not changed by the option, and is called
    again.
    """
    opposite = OPTION[OTHER[impl.name]]
    follow(cluster, "session", OPTION[impl.name], "map", "call", opposite, "call")


@DEFAULTS.clause(
    "switches.config-update.toggled",
    claim="migrate-pmap.switch-before-construction",
    fact=CONSTRUCTION,
    expect={
        LEGACY_PMAP: ran(*(LEGACY_PMAP, LEGACY_PMAP, NEW_PMAP, NEW_PMAP) * 2),
        NEW_PMAP: ran(*(NEW_PMAP, NEW_PMAP, LEGACY_PMAP, LEGACY_PMAP) * 2),
        SHARD_MAP: NO_SWITCH,
    },
)
def toggled(impl: Implementation, cluster: Cluster) -> None:
    """One function is mapped four times in one process, and the option is changed each time."""
    mine = (OPTION[impl.name], "map", "call", "call")
    other = (OPTION[OTHER[impl.name]], "map", "call", "call")
    follow(cluster, "session", *mine, *other, *mine, *other)
