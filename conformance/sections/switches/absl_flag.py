"""The flag on a program's command line: its values, and the ways to parse it.

The program calls absl, not JAX: the way in which it passes its command line to absl decides whether
JAX reads the flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.sections.switches import (
    BOTH,
    DEADLINE_S,
    FLAG_FALSE,
    FLAG_TRUE,
    OF_A_PROCESS,
    Value,
    follow,
)
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP
from conformance.worker.protocols import Cluster, Implementation

CLAIM = "migrate-pmap.absl-flag"
PARSING = "migrate-pmap.absl-flag-parsing"

OBEYED = "switches.absl-flag.obeyed"

VALUES: Mapping[str, Value] = table(
    Value("word", OBEYED, FLAG_FALSE, FLAG_TRUE),
    Value("digit", OBEYED, "--jax_pmap_shmap_merge=0"),
    Value("bare", OBEYED, "--nojax_pmap_shmap_merge", "--jax_pmap_shmap_merge"),
    Value("off", "switches.absl-flag.off", "--jax_pmap_shmap_merge=off"),
)


@family(
    "switches.absl-flag.{value}",
    value=VALUES,
    claim=CLAIM,
    title="{value.false}, in a program that calls config_with_absl before app.run.",
    left_out=OF_A_PROCESS,
    expect=lambda value: value.columns,
    deadline_s=DEADLINE_S,
    requires=("absl-py",),
    selects=True,
)
def absl_flag(impl: Implementation, cluster: Cluster, value: Value) -> None:
    """The flag on the command line of a program that calls `config_with_absl`, then `app.run`."""
    follow(cluster, "absl", "config_with_absl", value.setting_for(impl.name))


@dataclass(frozen=True, slots=True)
class Parsing:
    """Another way to parse a command line: a `program` of `child_programs.absl`."""

    key: str
    program: str
    claim: str
    title: str


PARSINGS: Mapping[str, Parsing] = table(
    Parsing(
        "parse-flags-with-absl",
        "parse_flags_with_absl",
        PARSING,
        "The program calls parse_flags_with_absl, and never app.run.",
    ),
    Parsing(
        "flags-by-hand",
        "flags-by-hand",
        PARSING,
        "The program calls config_with_absl, then passes its command line to absl's FLAGS itself.",
    ),
    Parsing(
        "app-run-alone",
        "app-run-alone",
        CLAIM,
        "The program parses its flags with app.run, and calls no JAX function for flags.",
    ),
)


@family(
    "switches.absl-flag.{parsing}",
    parsing=PARSINGS,
    claim="{parsing.claim}",
    title="{parsing.title}",
    left_out=OF_A_PROCESS,
    expect=BOTH,
    deadline_s=DEADLINE_S,
    requires=("absl-py",),
    selects=True,
)
def absl_parsing(impl: Implementation, cluster: Cluster, parsing: Parsing) -> None:
    """The flag on the command line of a program that parses it in another way."""
    flag = FLAG_FALSE if impl.name == LEGACY_PMAP else FLAG_TRUE
    follow(cluster, "absl", parsing.program, flag)
