"""Writes the static site: one matrix, one page per clause, no script and nothing from elsewhere.

It is written to be kept and compared: the same results give the same bytes. Only files that an
earlier report wrote are replaced or removed, so that a wrong directory costs nothing.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.reading.results import Results
from reports.reading.verdicts import Verdict
from reports.site import causes
from reports.site.memory import memory_page
from reports.site.pages import clause_file, clause_page, index_page
from reports.summary import printable

MARK = "pmap-conformance report"  # in every file that this module writes
_MARK_WITHIN_BYTES = 512


class SiteError(Exception):
    """The site cannot be written; the message says where and why."""


def build(results: Results, directory: Path) -> int:
    """Write the site of `results` into `directory`; the number of pages. SiteError if it cannot."""
    pages = render(results)
    try:
        _write(pages, directory)
    except OSError as error:
        raise SiteError(f"{error.filename or directory}: {error.strerror}") from None
    return sum(name.endswith(".html") for name in pages)


def render(results: Results) -> dict[str, str]:
    """The text of every file of the site, by its path in the directory."""
    env = environment()
    clause = env.get_template("clause.html.j2")
    pages = {
        f"clauses/{clause_file(c.clause)}": clause.render(page=clause_page(results, c))
        for c in results.clauses.values()
    }
    # The matrix comes last: whoever finds it finds the pages that it leads to.
    pages["style.css"] = _style()
    if results.causes:
        pages[causes.PAGE] = env.get_template("causes.html.j2").render(
            page=causes.causes_page(results)
        )
    memory = memory_page(results)
    if memory.tables:
        pages["memory.html"] = env.get_template("memory.html.j2").render(page=memory)
    pages["index.html"] = env.get_template("index.html.j2").render(
        page=index_page(results), memory=bool(memory.tables), causes=len(results.causes)
    )
    return {name: printable(text) for name, text in pages.items()}


def _style() -> str:
    return (
        resources.files("reports.site").joinpath("templates/style.css").read_text(encoding="utf-8")
    )


def environment() -> Environment:
    """The templates, with escaping on for all of them."""
    env = Environment(
        loader=PackageLoader("reports.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.globals.update(mark=MARK, verdicts=tuple(Verdict))
    env.filters.update(zip=zip, cause_anchor=causes.anchor)
    env.tests["web_link"] = lambda text: text.startswith("https://")
    return env


def _write(pages: dict[str, str], directory: Path) -> None:
    for name in pages:
        path = directory / name
        if path.exists() and not _ours(path):
            raise SiteError(f"{path}: not written by a report; choose another directory")
    (directory / "clauses").mkdir(parents=True, exist_ok=True)
    for path in (directory / "clauses").glob("*.html"):
        if f"clauses/{path.name}" not in pages and _ours(path):
            path.unlink()
    for name, text in pages.items():
        (directory / name).write_text(text, encoding="utf-8", newline="\n")


def _ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MARK.encode() in file.read(_MARK_WITHIN_BYTES)
