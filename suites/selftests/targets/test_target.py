"""Tests how targets are named, found, built, reused and handed to workers.

None needs a network: a shell script that speaks uv's words stands in for uv, and another for the
Python of the environment it builds.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest
from processes import HANGS_S

from harness.targets import environments, interpreters, nightly, target
from harness.targets.interpreters import Interpreter
from harness.targets.platforms import PLATFORMS
from harness.targets.target import Spec, Target, TargetError

NIGHT = "0.12.1.dev20261122"
REPOSITORY = Path(target.__file__).resolve().parents[2]

PACKAGES = "${4%/bin/python}/lib/python3.12/site-packages"  # as the shell script of uv writes it
OLDER = Interpreter(Path("/pythons/3.11"), (3, 11, 7))
NEWER = Interpreter(Path("/pythons/3.13"), (3, 13, 0))

# What uv 0.5 and 0.13 print, in the layout of either.
UNKNOWN = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of jax==0.9.0 and you require jax==0.9.0, we can conclude that
         your requirements are unsatisfiable.
"""
NEEDS_PYTHON = """\
  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because the current Python version (3.11.7) does not satisfy Python>=3.12 and jax==0.9.0
      depends on Python>=3.12, we can conclude that jax==0.9.0 cannot be used.
      And because you require jax==0.9.0, we can conclude that your requirements are unsatisfiable.
"""
NO_WHEEL = """\
error: No solution found when resolving dependencies
  cause: Because jaxlib==0.9.0 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you
         require jaxlib==0.9.0, we can conclude that your requirements are unsatisfiable.
"""
UNREACHABLE = """\
error: Failed to fetch: https://index.invalid/simple/jax/
  cause: error sending request for url (https://index.invalid/simple/jax/)
  cause: client error (Connect)
"""
OFFLINE = """\
error: No solution found when resolving dependencies
  cause: Because jax was not found in the cache and you require jax==0.9.0, we can conclude that
         your requirements are unsatisfiable.

hint: Packages were unavailable because the network was disabled.
"""
NO_SUCH_EXTRA = """\
error: No solution found when resolving dependencies
  cause: Because flax was not found in the package registry and you require flax, we can conclude
         that your requirements are unsatisfiable.
"""


def write_script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]), "utf-8")
    path.chmod(0o755)
    return path


def python_that_says(path: Path, **answer: object) -> Path:
    """A script that answers every program as a Python of this description would."""
    facts = {"version": [3, 12, 4], "python": "3.12.4", "machine": "abacus", "packages": {}}
    base = {"implementation": "cpython", "final": True, "threaded": False, "base": str(path)}
    return write_script(path, f"echo {shlex.quote(json.dumps({**facts, **base, **answer}))}")


@dataclass(slots=True)
class Machine:
    """A machine with an empty cache, in `folder`; `messages` are those of the progress."""

    folder: Path
    messages: list[str] = field(default_factory=list)

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def log(self) -> Path:
        """The file of the calls of uv."""
        return self.folder / "uv.log"

    def uv(
        self,
        *,
        refusals: dict[str, str] | None = None,
        jaxlib: bool = True,
        newest: str = "",
        resolve_error: str = "",
        install_s: float = 0,
    ) -> Path:
        """A uv that refuses the given minor versions of Python with the given words."""
        versions = {"jax": "'$version'", **({"jaxlib": "'$version'"} if jaxlib else {})}
        python = python_that_says(self.folder / "template", packages=versions)
        python.write_text(python.read_text("utf-8").replace("""'"'"'""", ""), "utf-8")
        refused = [
            f"*-py{minor}-*) cat >&2 <<'END'\n{words}\nEND\nexit 1;;"
            for minor, words in (refusals or {}).items()
        ]
        return write_script(
            self.folder / "uv",
            f'echo "$*" >> {shlex.quote(str(self.log))}',
            'case "$1 $2" in',
            '"venv "*) mkdir -p "$5/bin";;',
            '"pip install") case "$4" in',
            *refused,
            "esac",
            f"sleep {install_s}",
            'version="${5#jax==}"',
            f'sed "s/[$]version/$version/g" {shlex.quote(str(python))} > "$4"',
            'chmod +x "$4"',
            *(f'mkdir -p "{PACKAGES}/{name}-$version.dist-info"' for name in versions),
            ";;",
            f"\"pip compile\") cat >&2 <<'END'\n{resolve_error}\nEND",
            f'test -z "{newest}" && exit 1',
            f'echo "jax=={newest}"; echo "jaxlib=={newest}";;',
            '*) echo "unexpected: $*" >&2; exit 2;;',
            "esac",
        )

    def no_uv(self) -> Path:
        return write_script(self.folder / "no-uv", f"echo called >> {self.log}", "exit 1")

    def calls(self, command: str = "") -> list[str]:
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(command)]

    def provision(
        self, spec: str = "jax==0.9.0", *, uv: Path, extras: tuple[str, ...] = ()
    ) -> Target:
        return target.provision(
            spec,
            cache=self.cache,
            extras=extras,
            progress=self.messages.append,
            uv=uv,
            pythons=[OLDER, NEWER],
        )

    def refusal(self, spec: str = "jax==0.9.0", *, uv: Path, extras: tuple[str, ...] = ()) -> str:
        with pytest.raises(TargetError) as caught:
            self.provision(spec, uv=uv, extras=extras)
        return str(caught.value)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path.resolve())


@pytest.mark.parametrize(
    ("text", "spec", "canonical"),
    [
        ("current", Spec("current"), "current"),
        (" newest ", Spec("newest"), "newest"),
        ("jax==0.9.0", Spec("version", "0.9.0"), "jax==0.9.0"),
        ("jax == 0.9.0", Spec("version", "0.9.0"), "jax==0.9.0"),
        ("0.9.0", Spec("version", "0.9.0"), "jax==0.9.0"),
        ("0.9", Spec("version", "0.9.0"), "jax==0.9.0"),
        ("nightly", Spec("nightly"), "nightly"),
        ("jax==0.12.1.dev20261122", Spec("version", NIGHT), f"jax=={NIGHT}"),
        ("0.12.0.1", Spec("version", "0.12.0.1"), "jax==0.12.0.1"),
        (
            "0.9+Flax==0.12.0",
            Spec("version", "0.9.0", ("flax==0.12.0",)),
            "jax==0.9.0+flax==0.12.0",
        ),
        (
            "jax==0.9.0 + optax==0.2.7 + flax==0.12.0",
            Spec("version", "0.9.0", ("flax==0.12.0", "optax==0.2.7")),
            "jax==0.9.0+flax==0.12.0+optax==0.2.7",
        ),
        ("newest+flax==0.12.0", Spec("newest", "", ("flax==0.12.0",)), "newest+flax==0.12.0"),
        ("/env/a+b==1/python", Spec("interpreter", "/env/a+b==1/python"), "/env/a+b==1/python"),
        ("/env/bin/python", Spec("interpreter", "/env/bin/python"), "/env/bin/python"),
        ("/env/x/../python", Spec("interpreter", "/env/python"), "/env/python"),
    ],
)
def test_reads(text: str, spec: Spec, canonical: str) -> None:
    assert target.parse_spec(text) == spec
    assert str(spec) == canonical


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "write current, newest"),
        ("python3.12", "the path of a Python interpreter"),
        ("9", "write current, newest"),
        ("0.9.0rc1", "write current, newest"),
        ("1.2.3.4.5", "write current, newest"),
        ("jax", "one exact version"),
        ("jax=0.9.2", "two equals signs: jax==0.9.2"),
        ("jax>=0.9.0", "one exact version"),
        ("jax==0.9.0.dev", "one exact version"),
        ("jax==0.9.0rc1", "one exact version"),
        ("jax==0.9.0+flax", "one exact version"),
        ("jax==0.9.0+flax>=0.12", "one exact version"),
        ("current+flax==0.12.0", "nothing can be installed"),
    ],
)
def test_refuses(text: str, advice: str) -> None:
    with pytest.raises(TargetError, match=advice) as caught:
        target.parse_spec(text)
    assert repr(text) in str(caught.value)


def test_a_link_is_not_followed() -> None:
    spec = target.parse_spec(os.path.relpath(sys.executable))
    assert spec.value == sys.executable


def find(machine: Machine, *, uv: Path | None = None) -> dict[tuple[int, int], Path]:
    environ = {
        "PATH": f"{machine.folder / 'shims'}:{machine.folder / 'bin'}",
        "HOME": str(machine.folder),
    }
    own = python_that_says(machine.folder / "own" / "python3.11", version=[3, 11, 2])
    with mock.patch.object(interpreters, "own_interpreter", return_value=own):
        found = interpreters.find(environ, uv=uv)
    assert found[0].path == own
    return {one.minor: one.path for one in found}


def test_a_refusing_shim_is_passed_over_for_a_link_that_works(machine: Machine) -> None:
    write_script(machine.folder / "shims" / "python3.12", "echo not installed >&2", "exit 127")
    write_script(machine.folder / "shims" / "python3.13", "exit 127")
    real = python_that_says(machine.folder / "opt" / "python3.12")
    (machine.folder / "bin").mkdir()
    (machine.folder / "bin" / "python3.12").symlink_to(real)
    assert find(machine)[3, 12] == real
    assert (3, 13) not in find(machine)


def test_a_shim_that_works_is_seen_through(machine: Machine) -> None:
    real = machine.folder / "opt" / "python3.12"
    python_that_says(machine.folder / "shims" / "python", base=str(real))
    assert find(machine)[3, 12] == real


def test_pyenv_is_looked_at_and_the_highest_patch_wins(machine: Machine) -> None:
    versions = machine.folder / ".pyenv" / "versions"
    python_that_says(machine.folder / "bin" / "python3.12", version=[3, 12, 4])
    python_that_says(versions / "3.12.1" / "bin" / "python", version=[3, 12, 1])
    newer = python_that_says(versions / "3.12.9" / "bin" / "python", version=[3, 12, 9])
    assert find(machine)[3, 12] == newer


def test_the_controllers_own_wins_over_a_higher_patch(machine: Machine) -> None:
    python_that_says(machine.folder / "bin" / "python3.11", version=[3, 11, 9])
    assert find(machine)[3, 11] == machine.folder / "own" / "python3.11"


def test_uv_is_asked_for_those_it_manages(machine: Machine) -> None:
    managed = python_that_says(machine.folder / "managed" / "python3.13", version=[3, 13, 1])
    listed = json.dumps([{"path": str(managed)}, {"path": str(machine.folder / "gone")}])
    uv = write_script(machine.folder / "uv", f"echo {shlex.quote(listed)}")
    assert find(machine, uv=uv)[3, 13] == managed
    assert (3, 13) not in find(machine, uv=machine.no_uv())


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("too_old", {"version": [3, 10, 13]}),
        ("too_new", {"version": [3, 14, 0]}),
        ("another_implementation", {"implementation": "pypy"}),
        ("a_prerelease", {"final": False}),
        ("free_threaded", {"threaded": True}),
        ("another_shape", {"version": "3.12"}),
    ],
)
def test_not_usable(machine: Machine, case: str, answer: dict[str, object]) -> None:
    python_that_says(machine.folder / "bin" / "python3", **answer)
    assert list(find(machine)) == [(3, 11)]


def test_this_machine_has_the_one_that_runs_this(machine: Machine) -> None:
    first = interpreters.find()[0]
    assert first.version == sys.version_info[:3]
    assert first.path == interpreters.own_interpreter().resolve()


def test_builds_once_and_then_needs_no_uv(machine: Machine) -> None:
    built = machine.provision(uv=machine.uv())
    assert built.spec == "jax==0.9.0"
    assert built.environment == built.python.parent.parent
    assert "jax-0.9.0-py3.11-" in str(built.environment)
    assert len(machine.messages) == 1
    assert {"jax==0.9.0", "3.11"} < set(machine.messages[0].split())
    machine.log.unlink()
    assert machine.provision(uv=machine.no_uv()) == built
    assert machine.calls() == []
    assert len(machine.messages) == 1


def test_reuse_takes_no_lock_so_that_a_cache_may_be_read_only(machine: Machine) -> None:
    machine.provision(uv=machine.uv())
    for lock in (machine.cache / "targets").glob(".jax-*.lock"):
        lock.unlink()
    machine.provision(uv=machine.no_uv())
    assert list((machine.cache / "targets").glob(".jax-*.lock")) == []


def test_an_unfinished_environment_is_built_again(machine: Machine) -> None:
    built = machine.provision(uv=machine.uv())
    assert built.environment is not None
    (built.environment / environments.MARKER).unlink()
    (built.environment / "leftover").touch()
    assert machine.provision(uv=machine.uv()) == built
    assert len(machine.calls("venv")) == 2
    assert not (built.environment / "leftover").exists()


def test_an_environment_whose_python_is_gone_is_built_again(machine: Machine) -> None:
    built = machine.provision(uv=machine.uv())
    built.python.unlink()
    assert target.cached(machine.cache) == []
    assert machine.provision(uv=machine.uv()) == built
    assert len(machine.calls("venv")) == 2


def test_an_environment_that_lost_its_jax_is_built_again(machine: Machine) -> None:
    built = machine.provision(uv=machine.uv())
    assert built.environment is not None
    (packages,) = built.environment.glob("lib/*/site-packages")
    (packages / "jax-0.9.0.dist-info").rename(packages / "jax-0.8.0.dist-info")
    assert target.cached(machine.cache) == []
    python_that_says(built.python, packages={"jax": "0.8.0", "jaxlib": "0.8.0"})
    machine.provision(uv=machine.uv())
    assert len(machine.calls("venv")) == 2


def test_extras_are_installed_and_make_another_environment(machine: Machine) -> None:
    plain = machine.provision(uv=machine.uv())
    rich = machine.provision(uv=machine.uv(), extras=("Flax", "equinox>=0.11", "flax"))
    assert rich.extras == ("equinox>=0.11", "flax")
    assert rich.python != plain.python
    assert "jax==0.9.0 equinox>=0.11 flax" in machine.calls("pip install")[1]
    assert machine.provision(uv=machine.no_uv(), extras=("flax", "equinox>=0.11")) == rich
    assert machine.provision(uv=machine.no_uv()) == plain


def test_an_extra_that_is_no_requirement_is_refused(machine: Machine) -> None:
    assert "'--pre'" in machine.refusal(uv=machine.uv(), extras=("--pre",))
    assert machine.calls("pip install") == []


@pytest.mark.parametrize(("case", "words"), [("python", NEEDS_PYTHON), ("wheel", NO_WHEEL)])
def test_tries_the_next_python(machine: Machine, case: str, words: str) -> None:
    built = machine.provision(uv=machine.uv(refusals={"3.11": words}))
    assert "-py3.13-" in str(built.environment)
    assert [path.name for path in (machine.cache / "targets").glob("jax-*-py3.11-*")] == []
    assert {"jax==0.9.0", "3.13"} < set(re.findall(r"[^ :,]+", machine.messages[-1]))
    assert machine.provision(uv=machine.no_uv()) == built


def test_says_which_python_is_needed(machine: Machine) -> None:
    uv = machine.uv(refusals={"3.11": NEEDS_PYTHON, "3.13": NEEDS_PYTHON})
    said = machine.refusal(uv=uv)
    for part in ("jax==0.9.0", "Python>=3.12", "3.11.7", "`pyenv install 3.12`"):
        assert part in said


def test_says_that_there_is_no_wheel(machine: Machine) -> None:
    said = machine.refusal(uv=machine.uv(refusals={"3.11": NO_WHEEL, "3.13": NO_WHEEL}))
    assert "jaxlib==0.9.0 has no wheels" in said  # uv's own words
    assert "jax==0.9.0" in said.replace("jaxlib==0.9.0", "")


def test_an_environment_that_lost_its_jaxlib_is_not_listed(machine: Machine) -> None:
    built = machine.provision(uv=machine.uv())
    assert target.cached(machine.cache) == [built]
    assert built.environment is not None
    (jaxlib,) = built.environment.glob("lib/*/site-packages/jaxlib-*")
    jaxlib.rmdir()
    assert target.cached(machine.cache) == []


def test_a_jax_without_jaxlib_does_not_count(machine: Machine) -> None:
    said = machine.refusal(uv=machine.uv(jaxlib=False))
    assert "without a jaxlib" in said
    assert len(machine.calls("pip install")) == 2
    assert target.cached(machine.cache) == []


def test_an_unknown_version_is_not_tried_on_every_python(machine: Machine) -> None:
    said = machine.refusal(uv=machine.uv(refusals={"3.11": UNKNOWN}))
    assert "no jax==0.9.0" in said
    assert "pyenv" not in said
    assert len(machine.calls("pip install")) == 1


def test_an_unknown_extra_is_not_blamed_on_python(machine: Machine) -> None:
    said = machine.refusal(uv=machine.uv(refusals={"3.11": NO_SUCH_EXTRA}), extras=("flax",))
    assert "jax==0.9.0 with flax" in said
    assert "flax was not found" in said  # uv's own words
    assert len(machine.calls("pip install")) == 1


@pytest.mark.parametrize(("case", "words"), [("unreachable", UNREACHABLE), ("offline", OFFLINE)])
def test_without_an_index_says_what_the_cache_has(machine: Machine, case: str, words: str) -> None:
    assert "nothing yet" in machine.refusal(uv=machine.uv(refusals={"3.11": words}))
    machine.provision("jax==0.8.0", uv=machine.uv())
    machine.provision("jax==0.10.0", uv=machine.uv())
    said = machine.refusal(uv=machine.uv(refusals={"3.11": words}))
    assert "no network" in said
    assert "jax==0.8.0, jax==0.10.0" in said


def test_no_python_at_all(machine: Machine) -> None:
    with pytest.raises(TargetError, match="No usable Python"):
        target.provision("0.9.0", cache=machine.cache, uv=machine.uv(), pythons=[])


def test_a_cache_that_cannot_be_written(machine: Machine) -> None:
    machine.cache.write_text("a file", "utf-8")
    assert "Set PMAP_CONFORMANCE_CACHE" in machine.refusal(uv=machine.uv())
    assert "Set PMAP_CONFORMANCE_CACHE" in machine.refusal("newest", uv=machine.uv(newest="1.0.0"))
    with pytest.raises(TargetError, match="Set PMAP_CONFORMANCE_CACHE"):
        target.worker_path(machine.cache)


def test_two_processes_build_it_once(machine: Machine) -> None:
    uv = machine.uv(install_s=1)
    program = (
        "import sys; from pathlib import Path\n"
        "from harness.targets import interpreters, target\n"
        "python = interpreters.Interpreter(Path('/pythons/3.11'), (3, 11, 7))\n"
        "print(target.provision('0.9.0', cache=Path(sys.argv[1]), uv=Path(sys.argv[2]),"
        " pythons=[python]).python)"
    )
    with ThreadPoolExecutor(2) as pool:
        printed = list(
            pool.map(
                lambda _: (
                    subprocess.run(
                        [sys.executable, "-c", program, str(machine.cache), str(uv)],
                        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                        capture_output=True,
                        text=True,
                        timeout=HANGS_S,
                        check=True,
                    ).stdout
                ),
                range(2),
            )
        )
    assert len(machine.calls("venv")) == 1
    assert printed[0] == printed[1]
    assert Path(printed[0].strip()).exists()


def newest(machine: Machine, uv: Path) -> str:
    return target.resolve_newest(cache=machine.cache, uv=uv, pythons=[OLDER, NEWER])


def test_is_asked_for_the_newest_python(machine: Machine) -> None:
    assert newest(machine, machine.uv(newest="0.12.0.1")) == "jax==0.12.0.1"
    assert f"--python {NEWER.path}" in machine.calls()[0]
    built = machine.provision("newest", uv=machine.uv(newest="0.12.0.1"))
    assert built.spec == "jax==0.12.0.1"


def test_without_an_index_is_the_newest_of_the_cache(machine: Machine) -> None:
    for version in ("0.9.2", "0.10.0"):
        machine.provision(version, uv=machine.uv())
    machine.provision("0.11.0", uv=machine.uv(), extras=("flax",))
    uv = machine.uv(resolve_error=UNREACHABLE)
    assert newest(machine, uv) == "jax==0.10.0"
    assert machine.provision("newest", uv=uv, extras=("flax",)).spec == "jax==0.11.0"
    specs = [one.spec for one in target.cached(machine.cache)]
    assert specs == ["jax==0.9.2", "jax==0.10.0", "jax==0.11.0"]


def test_without_an_index_and_a_cache_is_refused(machine: Machine) -> None:
    with pytest.raises(TargetError, match=r"^newest .*no network"):
        newest(machine, machine.uv(resolve_error=UNREACHABLE))


def test_any_other_failure_is_not_hidden_by_the_cache(machine: Machine) -> None:
    machine.provision(uv=machine.uv())
    with pytest.raises(TargetError, match="disk full"):
        newest(machine, machine.uv(resolve_error="error: disk full"))


@pytest.fixture
def public(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine on which no mirror is named."""
    monkeypatch.delenv(nightly.INDEX_VARIABLE, raising=False)
    return machine


def test_is_resolved_on_jaxs_own_index_and_recorded_by_its_date(public: Machine) -> None:
    built = public.provision("nightly", uv=public.uv(newest=NIGHT), extras=("flax",))
    assert built.spec == f"jax=={NIGHT}"
    (resolving,) = public.calls("pip compile")
    (installing,) = public.calls("pip install")
    told = f"--index {nightly.INDEX} --prerelease allow"
    assert told in resolving
    assert f"jax=={NIGHT} flax {told}" in installing


def test_a_night_is_installed_from_there_and_then_reused(public: Machine) -> None:
    built = public.provision(f"jax=={NIGHT}", uv=public.uv())
    assert nightly.INDEX in public.calls("pip install")[0]
    assert public.provision(f"jax=={NIGHT}", uv=public.no_uv()) == built


def test_a_release_is_never_taken_from_there(public: Machine) -> None:
    public.provision("0.9.0", uv=public.uv())
    public.provision("newest", uv=public.uv(newest="0.12.0.1"))
    assert not [line for line in public.calls() if "--index" in line]


def test_another_index_may_be_named(public: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(nightly.INDEX_VARIABLE, "https://mirror.invalid/simple/")
    public.provision("nightly", uv=public.uv(newest=NIGHT))
    every = [*public.calls("pip compile"), *public.calls("pip install")]
    assert len(every) == 2
    assert all("--index https://mirror.invalid/simple/" in line for line in every)
    assert not any(nightly.INDEX in line for line in every)


@pytest.mark.parametrize(
    ("case", "instead"), [("nothing is kept", "none yet"), ("a night is kept", f"jax=={NIGHT}")]
)
def test_an_index_that_does_not_answer_is_named(public: Machine, case: str, instead: str) -> None:
    if NIGHT in instead:
        public.provision(f"jax=={NIGHT}", uv=public.uv())
    said = public.refusal("nightly", uv=public.uv(resolve_error=UNREACHABLE))
    assert "nightly" in said
    for part in (str(NEWER), nightly.INDEX, nightly.INDEX_VARIABLE, instead, "Failed to fetch"):
        assert part in said


def test_an_index_without_nightly_wheels_is_told(public: Machine) -> None:
    said = public.refusal("nightly", uv=public.uv(newest="0.12.0.1"))
    assert "no nightly" in said
    assert "jax==0.12.0.1" in said


def test_a_night_of_the_cache_is_not_the_newest_release(public: Machine) -> None:
    public.provision(f"jax=={NIGHT}", uv=public.uv())
    public.provision("0.12.0.1", uv=public.uv())
    uv = public.uv(resolve_error=UNREACHABLE)
    assert public.provision("newest", uv=uv).spec == "jax==0.12.0.1"


def test_current_is_the_controllers_own(machine: Machine) -> None:
    current = target.provision("current", uv=machine.no_uv())
    assert current == Target("current", Path(sys.executable))
    described = target.describe(current)
    assert set(described) == {"jax", "jaxlib", "numpy", "python", "machine"}
    assert described["python"].split(".")[:2] == [str(n) for n in sys.version_info[:2]]
    assert machine.calls() == []


def test_a_path_with_jax_is_taken_as_it_is(machine: Machine) -> None:
    packages = {"jax": "0.9.1", "jaxlib": "0.9.1", "numpy": "2.0", "flax": "0.12.6"}
    python = python_that_says(machine.folder / "python", packages=packages)
    found = target.provision(str(python), extras=("flax>=0.12",), uv=machine.no_uv())
    assert found == Target(str(python), python, ("flax>=0.12",))
    assert target.describe(found) == {**packages, "python": "3.12.4", "machine": "abacus"}


@pytest.mark.parametrize(
    ("case", "packages", "extras", "message"),
    [
        ("no_jax", {}, (), "has no jax, jaxlib: install it with"),
        ("no_jaxlib", {"jax": "0.9.1"}, (), "has no jaxlib: install it with"),
        ("no_extra", {"jax": "1", "jaxlib": "1"}, ("flax",), "has no flax: install it with"),
        (
            "old_extra",
            {"jax": "1", "jaxlib": "1", "flax": "0.11"},
            ("flax>=0.12",),
            "has no flax>=0.12: install it with",
        ),
    ],
)
def test_what_is_missing(
    machine: Machine, case: str, packages: dict[str, str], extras: tuple[str, ...], message: str
) -> None:
    python = python_that_says(machine.folder / "python", packages=packages)
    with pytest.raises(TargetError, match=message):
        target.provision(str(python), extras=extras)


@pytest.mark.parametrize(
    ("case", "version", "text"), [("old", [3, 10, 13], "3.10.13"), ("new", [3, 14, 0], "3.14.0")]
)
def test_out_of_range(machine: Machine, case: str, version: list[int], text: str) -> None:
    python = python_that_says(machine.folder / "python", version=version, python=text)
    with pytest.raises(TargetError, match=f"Python {re.escape(text)}, "):
        target.provision(str(python))


@pytest.mark.parametrize(
    ("case", "lines", "reason"),
    [
        ("fails", ["echo no >&2", "exit 3"], "exit status 3: no"),
        ("prints", ["echo hello"], "it printed 'hello"),
        ("other_json", ["echo '{}'"], "it answered {}"),
    ],
)
def test_not_a_python(machine: Machine, case: str, lines: list[str], reason: str) -> None:
    path = write_script(machine.folder / "python", *lines)
    with pytest.raises(TargetError, match=re.escape(str(path))) as caught:
        target.provision(str(path))
    assert reason in str(caught.value)


def test_no_such_file(machine: Machine) -> None:
    with pytest.raises(TargetError, match="No such file"):
        target.provision(str(machine.folder / "missing"))


def test_the_path_holds_the_two_packages_alone(machine: Machine) -> None:
    folder = target.worker_path(machine.cache)
    assert sorted(os.listdir(folder)) == ["conformance", "harness"]
    assert (folder / "harness" / "targets" / "target.py").samefile(target.__file__)
    assert target.worker_path(machine.cache) == folder


def test_the_path_holds_the_package_of_a_catalogue_too(machine: Machine) -> None:
    folder = target.worker_path(machine.cache, ["faulty.faults", "conformance.sections.errors"])
    assert sorted(os.listdir(folder)) == ["conformance", "faulty", "harness"]
    assert target.worker_path(machine.cache, ["conformance.sections"]) != folder


def test_processes_that_make_it_at_once_agree(machine: Machine) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: target.worker_path(machine.cache), range(32)))
    assert len(folders) == 1
    assert os.listdir(machine.cache / "workers") == [folders.pop().name]


def checkout(machine: Machine, name: str, text: str) -> Path:
    for package in target.WORKER_PACKAGES:
        (machine.folder / name / package).mkdir(parents=True, exist_ok=True)
        (machine.folder / name / package / "__init__.py").write_text(text, "utf-8")
    with mock.patch.object(target, "_package", lambda package: machine.folder / name / package):
        return target.worker_path(machine.cache)


def test_two_checkouts_do_not_clash(machine: Machine) -> None:
    one, other = checkout(machine, "one", "1"), checkout(machine, "other", "2")
    assert one != other
    assert (one / "harness" / "__init__.py").read_text("utf-8") == "1"
    assert (other / "harness" / "__init__.py").read_text("utf-8") == "2"


def test_where_links_fail_copies_follow_the_source(machine: Machine) -> None:
    with mock.patch.object(Path, "symlink_to", side_effect=OSError("no links here")):
        before = checkout(machine, "one", "1")
        again = checkout(machine, "one", "1")
        after = checkout(machine, "one", "2")
    assert before == again
    assert not (after / "harness").is_symlink()
    assert (before / "harness" / "__init__.py").read_text("utf-8") == "1"
    assert (after / "harness" / "__init__.py").read_text("utf-8") == "2"


def test_the_environment_is_cleaned(machine: Machine) -> None:
    names = ["PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE"]
    names += ["JAX_PLATFORMS", "JAX_PMAP_SHMAP_MERGE", "XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL"]
    names += ["PYTEST_ADDOPTS", "VIRTUAL_ENV"]
    dirty = dict.fromkeys(names, "dirty")
    kept = {"HOME": "/home", "PATH": "/bin", "JAXON": "1", "XLA_PYTHON_CLIENT_ALLOCATOR": "x"}
    clean = target.worker_environment(
        Target("current", Path(sys.executable)), {**kept, **dirty}, cache=machine.cache
    )
    made = {
        "PYTHONPATH": str(target.worker_path(machine.cache)),
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "JAX_PLATFORMS": "cpu",
    }
    assert clean == {**kept, **made}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cuda12", {"JAX_PLATFORMS": "cuda", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
        ("tpu", {"JAX_PLATFORMS": "tpu"}),
        ("tpu-compile", {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}),
    ],
)
def test_the_platform_is_the_one_named(machine: Machine, name: str, said: dict[str, str]) -> None:
    current = Target("current", Path(sys.executable))
    environment = target.worker_environment(
        current, {}, platform=PLATFORMS[name], cache=machine.cache
    )
    assert said.items() <= environment.items()


def test_another_python_finds_the_packages_and_no_site_packages(machine: Machine) -> None:
    bare = interpreters.own_interpreter()
    program = "import conformance, harness, sys; print(harness.__path__[0], *sys.path, sep='\\n')"
    environment = target.worker_environment(Target("", bare), os.environ, cache=machine.cache)
    printed = subprocess.run(
        [str(bare), "-S", "-c", program],
        env=environment,
        cwd=machine.folder,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=True,
    ).stdout.splitlines()
    assert printed[0] == str(target.worker_path(machine.cache) / "harness")
    assert printed[1] == str(target.worker_path(machine.cache))
    assert str(REPOSITORY) not in printed[1:]
    assert str(machine.folder) not in printed[1:]


@pytest.mark.parametrize(
    ("case", "environ", "folder"),
    [
        ("named", {"PMAP_CONFORMANCE_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ("shared", {"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/pmap-conformance"),
        ("home", {"HOME": "/h"}, "/h/.cache/pmap-conformance"),
    ],
)
def test_is_where(case: str, environ: dict[str, str], folder: str) -> None:
    with mock.patch.dict(os.environ, environ, clear=True):
        assert target.default_cache() == Path(folder)
