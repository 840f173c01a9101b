"""`reports nightly`: what became worse comes first, whatever else there is, in a text that fits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from records import cell, claim, clause, target, write

from harness.commandline.main import main
from reports.analysis.comparing.changes import compare
from reports.render.text.nightly import MOST_CHARACTERS, as_issue
from reports.store.results import load

MANY = 1500


def nights(tmp_path: Path, *pairs: tuple[str, str], reason: str = "so") -> tuple[Path, Path]:
    """Two nights' results of as many clauses as there are pairs of verdicts."""
    ids = [f"errors.n{number}" for number, _ in enumerate(pairs)]
    claims = [claim(f"migrate-pmap.{id}") for id in ids]
    clauses = [clause(id, claim=f"migrate-pmap.{id}") for id in ids]
    old, new = (
        write(
            tmp_path / f"{night}.jsonl",
            [
                target() | {"run": f"run-{night}"},
                *claims,
                *clauses,
                *(
                    cell(id, pair[night], reason=f"{reason} {id}")
                    for id, pair in zip(ids, pairs, strict=True)
                ),
            ],
        )
        for night in (0, 1)
    )
    return old, new


def issue(old: Path, new: Path) -> str:
    results = load([new])
    return as_issue(compare(load([old]), results), results)


def test_what_became_worse_comes_before_what_became_better(tmp_path: Path) -> None:
    text = issue(*nights(tmp_path, ("deviates", "conforms"), ("conforms", "crashed")))
    assert text.startswith("**1 ")
    worse, better = text.index("## Worse than"), text.index("## Better than")
    assert worse < better
    (line,) = re.findall(r".*errors\.n1 .*", text[worse:better])
    for part in ("new\\_pmap", "4x2", "0.9.0", "conforms → crashed"):
        assert part in line
    assert re.search(r"\b1 \w+ is red, 0 ", text)
    assert "run-1" in text


def test_a_quiet_night_says_so_and_no_more(tmp_path: Path) -> None:
    text = issue(*nights(tmp_path, ("conforms", "conforms")))
    assert text.startswith("**Nothing became worse.**\n")
    assert "##" not in text


def test_however_much_changed_it_fits_and_the_rest_is_counted(tmp_path: Path) -> None:
    pairs = [("deviates", "conforms")] * MANY + [("conforms", "hung")]
    text = issue(*nights(tmp_path, *pairs, reason="as long as reasons are " * 12))
    assert len(text) < MOST_CHARACTERS + 200
    assert f"errors.n{MANY} " in text
    assert "more parts" in text
    # Even where regressions alone do not fit.
    text = issue(*nights(tmp_path, *[("conforms", "hung")] * MANY, reason="long " * 40))
    assert len(text) < MOST_CHARACTERS + 200
    assert text.startswith(f"**{MANY} ")


def test_what_a_message_says_is_no_markup(tmp_path: Path) -> None:
    text = issue(*nights(tmp_path, ("conforms", "deviates"), reason="<img src=x> `a` [b](c) @all"))
    lines = [line for line in text.splitlines() if "img" in line]
    code = [line for line in lines if line.startswith("    <img")]
    assert len(code) == 2
    (heading,) = (line for line in lines if line not in code)
    (inline,) = (one for one in MarkdownIt().parse(heading) if one.children)
    assert {one.type for one in inline.children or ()} <= {"text", "text_special"}
    shown = "".join(one.content for one in inline.children or ())
    assert "<img src=x> `a` [b](c) @\N{WORD JOINER}all" in shown


@pytest.mark.parametrize(("pair", "status"), [(("conforms", "hung"), 1), (("hung", "conforms"), 0)])
def test_the_exit_status_tells_whether_anything_became_worse(
    pair: tuple[str, str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = nights(tmp_path, pair)
    assert main(["report", "nightly", str(old), str(new)]) == status
    assert capsys.readouterr().out.startswith("**")
