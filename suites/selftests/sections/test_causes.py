"""Causes: what is refused in their files, where they say what, and how a run of one is judged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from records import cell, clause, deviation, target, unavailable, write

import harness.running.causes as running
from conformance.catalogue.causes import (
    Cause,
    CauseError,
    Shows,
    check,
    command,
    load,
    load_causes,
)
from conformance.spec.names import JAX, LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.worker.jobs import Ended
from reports.analysis.comparing.entries import load_entries
from reports.analysis.effects.known import load_known

GOOD: Mapping[str, str] = {
    "title": "'A headline'",
    "sentence": "'JAX does this.'",
    "kind": "'implementation'",
    "tags": "['jax.pmap']",
    "links": "['https://example.org/1']",
}
SHOWN: Mapping[str, str] = {"implementation": "'new_pmap'", "prints": "'1'"}
PROGRAM = "import json\nimport os.path\n\nimport jax\nimport numpy as np\nfrom jax import lax\n"

Write = Callable[..., Path]


def table(keys: Mapping[str, str | None]) -> str:
    return "".join(f"{key} = {text}\n" for key, text in keys.items() if text is not None)


def shows(**other: str | None) -> str:
    """A `[[shows]]` in TOML; None leaves a key out."""
    return "\n[[shows]]\n" + table({**SHOWN, **other})


def toml(*shown: str, **other: str | None) -> str:
    """A cause in TOML, which shows something somewhere; None leaves a key out."""
    return table({**GOOD, **other}) + "".join(shown or (shows(),))


@pytest.fixture
def make(tmp_path: Path) -> Write:
    """Writes a cause's two files; None leaves the program out."""

    def write(
        text: str, program: str | None = PROGRAM, slug: str = "a-cause", section: str = "errors"
    ) -> Path:
        folder = tmp_path / "conformance" / "sections" / section / "causes"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{slug}.toml"
        file.write_text(text, encoding="utf-8")
        if program is not None:
            file.with_suffix(".py").write_text(program, encoding="utf-8")
        return file

    return write


# Reading


def test_a_cause_is_read_with_its_program(make: Write) -> None:
    found = load(make(toml(shows(jax="'<0.9'", topology="['2x2', '4x2']"), remedies="'errors.b'")))
    assert found == Cause(
        slug="a-cause",
        section="errors",
        title="A headline",
        sentence="JAX does this.",
        kind="implementation",
        tags=("jax.pmap",),
        links=("https://example.org/1",),
        shows=(Shows((NEW_PMAP,), "<0.9", ("2x2", "4x2"), "1"),),
        program=PROGRAM,
        remedies=("errors.b",),
    )
    assert found.file == "conformance/sections/errors/causes/a-cause.py"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "is not valid TOML"),
        (toml(why="'x'"), "unknown key why; remove it"),
        (toml(slug="'x'"), "unknown key slug; remove it"),
        (toml(program="'x'"), "unknown key program; remove it"),
        *((toml(**{key: None}), rf"{key} is missing") for key in GOOD),
        (table(GOOD), "shows is missing"),
        (toml(title="' '"), "title must be a text"),
        (toml(sentence="3"), "sentence must be a text"),
        (toml(kind="''"), "kind must be a text"),
        (toml(kind="'bug'"), "kind 'bug' is none of implementation, documentation, platform"),
        (toml(tags="[]"), "tags must not be empty"),
        (toml(links="[]"), "links must not be empty"),
        (toml(links="['']"), "links must be texts in a list"),
        (toml(remedies="3"), "remedies must be texts in a list"),
        (toml(edit="3", remedies="['errors.b']"), "edit must be a text"),
        (toml(edit="'Do it.'"), "edit describes the first remedy, and there is none: add remedies"),
        (toml(part_of="''"), "part_of must be a text"),
        (toml(requires="[3]"), "requires must be texts in a list"),
        (toml(compared="'yes'"), "write compared = true, or leave it out"),
        (toml(scanned="'yes'"), "write scanned = true, or leave it out"),
        (toml(scanned="true"), r"scanned needs a \[\[find\]\] with an effect"),
        (table({**GOOD, "shows": "[]"}), r"add \[\[shows\]\]: what the program prints"),
        (table({**GOOD, "shows": "'1'"}), r"add \[\[shows\]\]: what the program prints"),
        (table({**GOOD, "shows": "['1']"}), r"shows must be written \[\[shows\]\]"),
        (toml(shows(version="'0.9'")), "unknown key version; remove it"),
        (toml(shows(implementation=None)), "implementation is missing"),
        (toml(shows(implementation="[]")), "implementation must not be empty"),
        (toml(shows(implementation="'pmap'")), "no implementation is called pmap"),
        (toml(shows(implementation="['jax', 'new_pmap']")), "under 'jax' alone"),
        (toml(shows(topology="'eight'")), "topology 'eight' is not PROCESSESxDEVICES"),
        (toml(shows(jax="0.9")), "jax must be a text"),
        (toml(shows(prints="1")), "prints must be a text"),
        (toml(shows(jax="'0.8 to 0.9'")), "Invalid specifier"),
        (toml(shows(prints=None)), "needs prints, raises or ends"),
        (toml(shows(prints="''")), "needs prints, raises or ends"),
        (toml(shows(ends="'stops'")), "ends is a signal"),
        (toml(shows(ends="'exit 0'")), "ends is a signal"),
        (toml(shows(ends="'SIGSEGV'", raises="'ValueError'")), "needs no raises"),
    ],
)
def test_a_mistake_in_a_cause_is_refused(make: Write, text: str, said: str) -> None:
    with pytest.raises(CauseError, match=said) as caught:
        load(make(text))
    assert "a-cause.toml" in str(caught.value).split()[0]


@pytest.mark.parametrize("ends", ["SIGSEGV", "SIGABRT", "hangs", "exit 1", "exit 17"])
def test_a_program_may_end_in_its_own_way(make: Write, ends: str) -> None:
    (one,) = load(make(toml(shows(prints=None, ends=f"'{ends}'")))).shows
    assert one.ends == ends


@pytest.mark.parametrize(
    "line",
    [
        "import flax",
        "import conformance.catalogue",
        "from absl import app",
        "from . import other",
        "def f():\n    import jaxtyping",
        "import jax; import flax",
        "import jax, \\\n    flax",
        "if jax: import flax",
    ],
)
def test_a_program_is_plain_jax(make: Write, line: str) -> None:
    with pytest.raises(CauseError, match=r"a-cause\.py: imports"):
        load(make(toml(), f"{PROGRAM}\n{line}\n"))


def test_a_program_may_import_what_it_requires(make: Write) -> None:
    assert load(make(toml(requires="['absl-py']"), "from absl import app\n")).requires
    assert load(make(toml(requires="['flax']"), "import flax.nnx\n")).requires == ("flax",)
    with pytest.raises(CauseError, match="imports flax"):
        load(make(toml(requires="['absl-py']"), "import flax\n"))


def test_the_two_files_of_a_cause_belong_together(make: Write) -> None:
    with pytest.raises(CauseError, match=r"add a-cause\.py"):
        load(make(toml(), None))
    with pytest.raises(CauseError, match="name it in lower-case words"):
        load(make(toml(), slug="A_cause"))


def test_all_causes_are_found_by_their_slugs(make: Write, tmp_path: Path) -> None:
    make(toml())
    make(toml(), slug="another", section="rank")
    found = load_causes(tmp_path / "conformance" / "sections")
    assert {slug: one.section for slug, one in found.items()} == {
        "a-cause": "errors",
        "another": "rank",
    }


def test_no_two_causes_have_one_name(make: Write, tmp_path: Path) -> None:
    make(toml())
    make(toml(), section="rank")
    with pytest.raises(CauseError, match=r"a-cause.*errors"):
        load_causes(tmp_path / "conformance" / "sections")


def test_a_program_without_its_words_is_refused(make: Write, tmp_path: Path) -> None:
    make(toml()).with_name("left-over.py").write_text(PROGRAM)
    with pytest.raises(CauseError, match=r"left-over\.py: there is no left-over\.toml"):
        load_causes(tmp_path / "conformance" / "sections")


def test_the_causes_there_are_can_be_read() -> None:
    assert load_causes()


# Where it shows


@pytest.mark.parametrize(
    ("place", "here"),
    [
        ((NEW_PMAP, "0.9.0", "1x8"), True),
        ((NEW_PMAP, "0.9.0", "2x2"), True),
        ((SHARD_MAP, "0.9.0", "1x8"), False),
        ((NEW_PMAP, "0.9.1", "1x8"), False),
        ((NEW_PMAP, "0.7.2", "1x8"), False),
        ((NEW_PMAP, "0.9.0.dev20251101", "1x8"), True),
        ((NEW_PMAP, "0.9.0", "4x2"), False),
    ],
)
def test_what_is_shown_is_shown_somewhere(place: tuple[str, str, str], here: bool) -> None:
    one = Shows((LEGACY_PMAP, NEW_PMAP), ">=0.8.0,<0.9.1", ("1x8", "2x2"), "1")
    assert one.here(*place) is here


def test_a_program_is_started_as_a_user_would() -> None:
    assert command(Shows((LEGACY_PMAP, NEW_PMAP)), LEGACY_PMAP) == (
        "JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES=8 JAX_PMAP_SHMAP_MERGE=0 python program.py"
    )
    assert command(Shows((JAX,), topology=("1x2",)), JAX, "a.py") == (
        "JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES=2 python a.py"
    )
    assert command(Shows((NEW_PMAP,), topology=("2x4",)), NEW_PMAP, "a.py") == (
        "for i in 0 1; do JAX_PLATFORMS=cpu JAX_NUM_CPU_DEVICES=4 JAX_PMAP_SHMAP_MERGE=1 "
        "python a.py localhost:12345 2 $i & done; wait"
    )


def test_causes_and_those_that_name_them_agree(make: Write) -> None:
    causes = {"a-cause": load(make(toml(remedies="['errors.b']")))}
    named = {"a-cause": ["errors.a"]}
    check(causes, ["errors.a", "errors.b"], named)
    with pytest.raises(CauseError, match=r"^cause a-cause: .*errors\.b"):
        check(causes, ["errors.a"], named)
    with pytest.raises(CauseError, match=r"^cause a-cause: no clause and"):
        check(causes, ["errors.a", "errors.b"], {})
    with pytest.raises(CauseError, match=r"^some\.toml, entry 2: .*other"):
        check(causes, ["errors.b"], named | {"other": ["some.toml, entry 2", "errors.a"]})


def test_a_part_is_of_a_cause_that_is_whole(make: Write) -> None:
    whole = load(make(toml(), slug="whole"))
    part = load(make(toml(part_of="'whole'"), slug="part"))
    named = {slug: ["errors.a"] for slug in ("whole", "part", "piece")}
    check({"whole": whole, "part": part}, [], {slug: named[slug] for slug in ("whole", "part")})
    for slug, of, said in (
        ("part", "gone", "no cause"),
        ("part", "part", "itself"),
        ("piece", "part", "a part as well"),
    ):
        wrong = load(make(toml(part_of=f"'{of}'"), slug=slug))
        causes = {"whole": whole, "part": part, slug: wrong}
        with pytest.raises(CauseError, match=f"^cause {slug}: part_of {of}, .*{said}"):
            check(causes, [], {one: named[one] for one in causes})


def test_a_cause_is_judged_by_clauses_or_found_by_comparing(make: Write) -> None:
    causes = {"a-cause": load(make(toml(compared="true")))}
    check(causes, ["errors.a"], {})
    with pytest.raises(CauseError, match=r"errors\.a .*compared"):
        check(causes, ["errors.a"], {"a-cause": ["errors.a"]})


def test_a_cause_that_a_scan_alone_finds_is_named_by_nothing(make: Write) -> None:
    found = f"{shows()}\n[[find]]\nevent = 'name'\nname = 'jax.pmap'\neffect = 'warning'\n"
    causes = {"a-cause": load(make(toml(found, scanned="true")))}
    check(causes, ["errors.a"], {})
    with pytest.raises(CauseError, match=r"errors\.a .*scanned"):
        check(causes, ["errors.a"], {"a-cause": ["errors.a"]})


def test_what_is_found_by_comparing_is_named_by_an_entry_of_a_comparison() -> None:
    told = {entry.cause for entry in (*load_entries(), *load_known()) if entry.cause}
    assert {one.slug for one in load_causes().values() if one.compared} <= told


# Judging a run

TRACEBACK = """Traceback (most recent call last):
  File "a.py", line 3, in <module>
    jax.pmap(f)(x)
ValueError: incompatible devices: [0, 1]
  second line of the message
For simplicity, JAX has removed its internal frames.
"""
CHAINED = f"""{TRACEBACK}
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 5, in <module>
    raise
jax.errors.JaxRuntimeError: INTERNAL: it broke
E1121 08:00:00 coordination_service.cc:12] a line that a library logged
"""


@pytest.mark.parametrize(
    ("err", "said"),
    [
        (TRACEBACK, "ValueError: incompatible devices: [0, 1]"),
        (CHAINED, "jax.errors.JaxRuntimeError: INTERNAL: it broke"),
        ("  File 'a.py'\n    assert x\nAssertionError\n", "AssertionError"),
        ("one line\nFatal: the last\n\n", "Fatal: the last"),
        ("", ""),
    ],
)
def test_the_last_exception_is_found(err: str, said: str) -> None:
    assert running.last(err) == said


FINE = Ended(0, "[0, 2]\n1 of 2\n", "")
BROKEN = Ended(1, "", TRACEBACK)


@pytest.mark.parametrize(
    ("shown", "ended", "said"),
    [
        ({"prints": "[0, 2]\n1 of 2"}, FINE, ""),
        ({"prints": "[0,  2] 1 of 2"}, FINE, ""),
        ({"prints": "[0, ...]..."}, FINE, ""),
        ({"prints": "[0, 4]..."}, FINE, r"printed '\[0, 2\]\\n1 of 2' in place of"),
        ({"prints": "[0, 2]"}, FINE, "printed"),
        ({"prints": "[0, 2]..."}, BROKEN, "ended with exit 1 in place of exit 0: ValueError: inc"),
        ({"raises": "ValueError: incompatible devices: ..."}, BROKEN, ""),
        ({"raises": "TypeError: ..."}, BROKEN, "raised 'ValueError: .*' in place of 'TypeError"),
        ({"raises": "ValueError: ..."}, FINE, "ended with exit 0 in place of exit 1"),
        ({"raises": "ValueError: ...", "prints": "1"}, BROKEN, "printed '' in place of '1'"),
        ({"ends": "SIGSEGV"}, Ended(-11, "", ""), ""),
        ({"ends": "SIGSEGV"}, Ended(-6, "", ""), "ended with SIGABRT in place of SIGSEGV"),
        ({"ends": "SIGSEGV", "prints": "1"}, Ended(-11, "", ""), "printed"),
        ({"ends": "hangs"}, Ended(None, "", ""), ""),
        ({"ends": "hangs"}, FINE, "ended with exit 0 in place of hangs"),
        ({"ends": "exit 3"}, Ended(3, "", ""), ""),
        ({"ends": "exit 3"}, Ended(1, "", ""), "ended with exit 1 in place of exit 3"),
    ],
)
def test_a_run_is_held_against_what_is_said(shown: Any, ended: Ended, said: str) -> None:
    found = running.wrong(Shows((NEW_PMAP,), **shown), [ended])
    if said:
        assert pytest.raises(AssertionError, match=said).matches(AssertionError(found)), found
    else:
        assert found == ""


def test_of_several_processes_those_are_judged_that_are_meant() -> None:
    two = [FINE, BROKEN]
    said = running.wrong(Shows((NEW_PMAP,), prints="[0, 2]..."), two)
    assert said.startswith("process 1: ")
    assert "exit 1" in said
    assert running.wrong(Shows((NEW_PMAP,), prints="[0, 2]...", process=0), two) == ""
    assert running.wrong(Shows((NEW_PMAP,), raises="ValueError...", process=1), two) == ""
    assert running.wrong(Shows((NEW_PMAP,), raises="ValueError...", process=0), two)


@pytest.mark.parametrize(
    ("some", "said"),
    [
        ({"0.7.2", "0.8.0", "0.9.0", "0.12.0.1"}, "0.7.2 to 0.9.0, 0.12.0.1 (of 5 that were run)"),
        ({"0.8.0", "0.10.2"}, "0.8.0, 0.10.2 (of 5 that were run)"),
        ({"0.10.2", "0.12.0.1"}, "0.10.2 to 0.12.0.1 (of 5 that were run)"),
    ],
)
def test_versions_are_said_in_ranges(some: set[str], said: str) -> None:
    assert running.ranges(some, ["0.7.2", "0.8.0", "0.9.0", "0.10.2", "0.12.0.1"]) == said


# Results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Cells that name a cause, by entry or by clause, and some that do not show one."""
    excused = {"verdict": "known deviation", "deviation": deviation(cause="a-cause")}
    records = [
        *(target("0.8.0"), target("0.9.0"), target("0.10.0")),
        unavailable("jax==0.12.0.1", "no Python"),
        clause("errors.a"),
        clause("errors.b", cause="another"),
        cell("errors.a", target="jax==0.8.0"),
        *(cell("errors.a", target=f"jax=={v}", **excused) for v in ("0.9.0", "0.10.0")),
        cell("errors.a", "not run", target="jax==0.12.0.1"),
        cell("errors.b", topology="1x8"),
        cell("errors.b", "deviates", target="jax==0.10.0", topology="1x8"),
    ]
    return write(tmp_path / "results.jsonl", records)


def test_results_say_where_a_cause_shows(results: Path) -> None:
    with results.open("ab") as file:
        file.write(json.dumps(cell("errors.b", topology="2x2")).encode()[:-1])  # torn
    found = running.seen([results])
    assert found.shown == {
        "a-cause": {(NEW_PMAP, "4x2"): {"0.9.0", "0.10.0"}},
        "another": {(NEW_PMAP, "1x8"): {"0.9.0"}},
    }
    assert found.ran == {
        *((NEW_PMAP, "4x2", jax) for jax in ("0.8.0", "0.9.0", "0.10.0")),
        (NEW_PMAP, "1x8", "0.9.0"),
    }


def test_causes_are_listed_with_their_versions(make: Write, results: Path) -> None:
    causes = {slug: load(make(toml(), slug=slug)) for slug in ("a-cause", "unseen")}
    lines = list(running.listed(causes, {"a-cause": ["errors.a", "entry 1"]}, [results]))
    at = [number for number, line in enumerate(lines) if re.match(r"(  )?\S", line)]
    assert [lines[number] for number in at] == [
        "errors:",
        "  a-cause: A headline",
        "  unseen: A headline",
        "2 causes",
    ]
    seen, unseen = "\n".join(lines[at[1] : at[2]]), "\n".join(lines[at[2] :])
    one = causes["a-cause"]
    for part in (one.sentence, one.kind, *one.links):
        assert part in seen
        assert part in unseen
    assert [re.findall(r"named by (\d)", part) for part in (seen, unseen)] == [["2"], ["0"]]
    ran = running.ranges({"0.9.0", "0.10.0"}, ["0.8.0", "0.9.0", "0.10.0"])
    assert f"new_pmap on 4x2: {ran}" in seen
    assert len(list(running.listed(causes, {}, []))) < len(lines)


# Running

SWITCH = """
import os

print([os.environ.get(f"JAX_{name}") for name in ("PMAP_SHMAP_MERGE", "NUM_CPU_DEVICES")])
print("PYTHONPATH" in os.environ)
"""


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are looked for in the temporary folder."""
    monkeypatch.setattr(running, "__file__", str(tmp_path / "conformance" / "commands" / "c.py"))


@pytest.mark.usefixtures("at")
def test_a_program_is_run_where_it_shows_something(make: Write) -> None:
    text = toml(
        shows(prints='''"['1', '8']\\nFalse"'''),
        shows(implementation="'legacy_pmap'", prints='''"['1', '8']..."''', topology="'1x2'"),
        shows(implementation="'jax'", prints="'never'", jax="'<0.1'"),
    )
    causes = {slug: load(make(text, SWITCH, slug)) for slug in ("a-cause", "b")}
    said: list[str] = []
    done = running.run(causes, ["current"], ["a-"], say=said.append)
    assert [(one.cause, one.implementation, one.topology) for one in done] == [
        ("a-cause", NEW_PMAP, "1x8"),
        ("a-cause", LEGACY_PMAP, "1x2"),
    ]
    assert done[0].wrong == ""
    assert "['0', '2']" in done[1].wrong
    assert [line.split()[:2] for line in said[:2]] == [["shown", "a-cause"], ["WRONG", "a-cause"]]
    for line, place in zip(said, (("new_pmap", "1x8,"), ("legacy_pmap", "1x2,")), strict=True):
        assert set(place) < set(line.split())
    record = done[1].record()
    assert record["processes"] == [{"end": "exit 0", "out": "['0', '2']\nFalse\n", "err": ""}]
    assert record["wrong"] == done[1].wrong


@pytest.mark.usefixtures("at")
def test_a_program_may_be_run_where_nothing_is_said(make: Write) -> None:
    causes = {"a-cause": load(make(toml(shows(jax="'<0.1'")), SWITCH))}
    said: list[str] = []
    assert running.run(causes, ["current"], [], say=said.append) == []
    (one,) = running.run(causes, ["current"], [], everywhere=True, say=said.append)
    assert (one.wrong, one.ended[0].end) == ("", "exit 0")
    assert "a-cause" in said[0]
    assert not said[0].startswith(("shown", "WRONG"))


@pytest.mark.usefixtures("at")
def test_a_program_that_shows_the_same_where_nothing_is_said_is_wrong(make: Write) -> None:
    """Then the bound is wrong; on another topology nothing is said of it."""
    same = "\"['1', '8']\\nFalse\""
    causes = {"a-cause": load(make(toml(shows(jax="'<0.1'", prints=same)), SWITCH))}
    (one,) = running.run(causes, ["current"], [], everywhere=True, say=lambda _: None)
    assert "<0.1" in one.wrong


@pytest.mark.usefixtures("at")
def test_legacy_pmap_is_run_nowhere_without_its_switch(make: Write) -> None:
    causes = {"a-cause": load(make(toml(shows(implementation="'legacy_pmap'", jax="'<0.1'"))))}
    assert running.run(causes, ["current"], [], everywhere=True, say=lambda _: None) == []


@pytest.mark.usefixtures("at")
def test_a_program_that_requires_more_is_not_run(make: Write) -> None:
    causes = {"a-cause": load(make(toml(requires="['absl-py']"), SWITCH))}
    said: list[str] = []
    assert running.run(causes, ["current"], [], say=said.append) == []
    assert said[0].startswith("not run a-cause")
    assert said[0].endswith("--extra absl-py")


def test_what_is_no_cause_cannot_be_run(make: Write) -> None:
    with pytest.raises(ValueError, match=r"has the name b\b"):
        running.run({"a-cause": load(make(toml()))}, ["current"], ["b"])
