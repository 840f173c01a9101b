"""`--changed-since`: the clauses that an edit touches, and no others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.catalogue.dependencies import touched
from conformance.catalogue.loading import load
from conformance.catalogue.modules import module_of
from harness.plugin import changed

CATALOGUE = load()
FORMS = "conformance.sections.indexing.forms"
ACCESSES = "conformance.sections.indexing.accesses"
BODIES = "conformance.worker.bodies"


def edited(*modules: str, edit: Callable[[str], str] = lambda text: text) -> set[str]:
    """The clauses that differ where each module's text was `edit` of today's."""

    def old(name: str) -> str:
        return edit("\n".join(module_of(name).lines))

    return touched(CATALOGUE.clauses.values(), modules, old)


def replaced(now: str, then: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert now in text
        return text.replace(now, then)

    return edit


def test_what_is_not_edited_touches_nothing() -> None:
    assert edited(FORMS, ACCESSES, BODIES) == set()


def test_a_comment_or_a_line_break_touches_nothing() -> None:
    assert edited(FORMS, edit=lambda text: f"{text}\n\n# the end\n") == set()


def test_a_row_touches_its_own_clauses_alone() -> None:
    row = 'Form("one", "`x[0:1]`", lambda x: x[0:1], sort="slice")'
    found = edited(FORMS, edit=replaced(row, row.replace("lambda x: x[0:1]", "lambda x: x[:1]")))
    assert found
    assert {id for id in found if CATALOGUE.clauses[id].parameters.get("form") != "one"} == set()


def test_a_helper_touches_what_uses_it_and_not_all() -> None:
    found = edited(BODIES, edit=replaced("return lambda x: x * 2", "return lambda x: 2 * x"))
    assert 100 < len(found) < len(CATALOGUE.clauses) / 2


def test_a_module_that_is_new_touches_all_its_clauses() -> None:
    found = touched(CATALOGUE.clauses.values(), [ACCESSES], lambda _: None)
    mine = {id for id, one in CATALOGUE.clauses.items() if one.probe.__module__ == ACCESSES}
    assert mine
    assert mine <= found


def test_a_revision_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"--changed-since no-such-revision: .*no-such-revision"):
        changed.clauses(CATALOGUE, "no-such-revision", lambda _: None)


def test_an_entry_touches_the_clauses_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a repository of its own, as this one's history is nobody's to rely on."""
    section = tmp_path / "conformance" / "sections" / "donation"
    section.mkdir(parents=True)
    file = section / "reuse.toml"
    entry = (changed.ROOT / "conformance/sections/donation/reuse.toml").read_text("utf-8")
    first, second, *_ = entry.split("[[deviation]]\n")[1:]
    file.write_text(f"[[deviation]]\n{first}", encoding="utf-8")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "an entry"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    said: list[str] = []
    assert changed.clauses(CATALOGUE, "HEAD", said.append) == ()
    file.write_text(f"[[deviation]]\n{first}[[deviation]]\n{second}", encoding="utf-8")
    assert set(changed.clauses(CATALOGUE, "HEAD", said.append)) == {
        id for id in CATALOGUE.clauses if f'"{id}"' in second
    }
    assert said[-1].startswith("6 clauses ")
