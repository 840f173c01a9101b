"""Wrong inputs of the commands on a user's own code, with what each of them is answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

SIDES = ("--from", "legacy_pmap@0.7.2", "--to", "new_pmap@0.12.0.1")
ONE = ("--target", "current", "--topology", "1x2")


@dataclass(frozen=True, slots=True)
class Wrong:
    """A command line that cannot be run, and a part of the line that says why."""

    words: tuple[str, ...]
    says: str


def _all(command: str, *some: tuple[str, tuple[str, ...]]) -> list[Wrong]:
    return [Wrong((command, *words), says) for says, words in some]


WRONG = (
    *_all(
        "scan",
        ("there is no such file or folder", ("nowhere", *SIDES)),
        ("no Python file, script or requirements file", ("empty", *SIDES)),
        ("name the version", ("good.py",)),
        ("--from", ("good.py", "--from", "0.9.0", "--to", SIDES[3])),
        ("--to", ("good.py", "--from", SIDES[1], "--to", "new_pmap@99.0.0")),
        ("old_pmap", ("good.py", "--from", "old_pmap@0.9.0", "--to", SIDES[3])),
        ("--fail-on awful", ("good.py", *SIDES, "--fail-on", "awful")),
        ("--ignore nothing", ("good.py", *SIDES, "--ignore", "nothing")),
        ("--jobs", ("good.py", *SIDES, "--jobs", "0")),
        ("pyproject.toml", ("configured", *SIDES)),
        ("empty", ("good.py", *SIDES, "-o", "empty")),
    ),
    *_all(
        "compare",
        ("write module:function", ("good.py", *ONE)),
        ("nowhere.py: no such file", ("nowhere.py:f", *ONE)),
        ("nobody", ("good.py:nobody", "--args", "f32[n]", *ONE)),
        ("no_such_module", ("no_such_module:f", "--args", "f32[n]", *ONE)),
        ("--args", ("good.py:body", "--args", "f32(4)", *ONE)),
        ("no dtype f99", ("good.py:body", "--args", "f99[n]", *ONE)),
        ("--in-axes", ("good.py:body", "--args", "f32[n]", "--in-axes", "x", *ONE)),
        ("has 3 rows", ("good.py:body", "--args", "f32[3]", *ONE)),
        (
            "'2by2' is not PROCESSESxDEVICES",
            ("good.py:body", "--args", "f32[n]", "--topology", "2by2"),
        ),
        ("no_pmap", ("good.py:body", "--args", "f32[n]", "--implementation", "no_pmap", *ONE)),
        ("add --mapped", ("good.py:body", "--args", "f32[n]", "--against", "good.py:body", *ONE)),
        ("ValueError: no data", ("good.py:body", "--inputs", "good.py:raises", *ONE)),
    ),
    *_all(
        "bisect",
        ("name a function", ()),
        ("no clause has the id 'nothing'", ("--clause", "nothing")),
        ("a clause has its own arguments", ("--clause", "switches.default", "--args", "f32[n]")),
        ("write module:function", ("good.py",)),
        ("nowhere.py: no such file", ("nowhere.py:f",)),
        ("--field colour", ("good.py:body", "--args", "f32[n]", "--field", "colour")),
        ("is not older", ("good.py:body", "--args", "f32[n]", "--from", "0.9.0", "--to", "0.8.0")),
        ("is no release", ("good.py:body", "--args", "f32[n]", "--from", "current")),
        (
            "'0x0' is not PROCESSESxDEVICES",
            ("good.py:body", "--args", "f32[n]", "--topology", "0x0"),
        ),
        ("no_pmap", ("good.py:body", "--args", "f32[n]", "--implementation", "no_pmap")),
    ),
    *_all(
        "launch",
        ("SCRIPT", ()),
        ("nowhere.py", ("nowhere.py",)),
        ("a folder", ("empty",)),
        ("no module is called", ("-m", "no_such_module")),
        ("is not PROCESSESxDEVICES", ("good.py", "--topology", "two")),
        ("at most 64 processes", ("good.py", "--topology", "1000x1")),
        ("is not a target", ("good.py", "--target", "jax>=0.9")),
        ("--platform", ("good.py", "--platform", "abacus")),
        ("--deadline", ("good.py", "--deadline", "soon")),
        ("--grace", ("good.py", "--grace", "-1")),
        ("not a requirement", ("good.py", "--extra", "==")),
        ("good.py/logs", ("good.py", "--log-dir", "good.py/logs")),
    ),
)


def write_files(folder: Path) -> None:
    """Write the files that the command lines name."""
    (folder / "empty").mkdir()
    (folder / "configured").mkdir()
    (folder / "configured" / "pyproject.toml").write_text("[tool.pmap-conformance\n")
    (folder / "configured" / "a.py").write_text("import jax\n")
    (folder / "broken.ipynb").write_text(json.dumps([]))
    (folder / "good.py").write_text(
        "def body(x):\n    return x\n\n\ndef raises():\n    raise ValueError('no data')\n"
    )
