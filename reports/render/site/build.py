"""Collect the pages of the site, render them and write them; nothing is fetched.

A page is written by the process that rendered it, because all pages are too large to send. The same
results give the same bytes, so that sites can be stored and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from conformance.model.verdicts import Verdict
from reports.analysis.effects.effect import DIFFERENCES, Effect
from reports.analysis.effects.pairs import Effects
from reports.analysis.effects.rewrites import rewrites
from reports.analysis.errors.messages import recorded_messages
from reports.render.site import (
    causes,
    cost,
    downloads,
    gradients,
    guide,
    inside,
    jitted,
    known,
    libraries,
    lookup,
    matrix,
    platforms,
    removed,
    statements,
    subjects,
    targets,
    unknown,
    upgrades,
    user_reports,
)
from reports.render.site import clauses as clause_pages
from reports.render.site.marks import Mark
from reports.render.site.memory import notes
from reports.render.site.names import implementation_words, safe_name, section_words
from reports.render.site.page import MOST_BYTES, Asset, Page, Pages, template_text
from reports.render.site.parallel import AT_ONCE, WORTH, batches, in_parallel
from reports.render.site.shared_lines import FILES, Lines, add
from reports.render.site.shared_lines import files as files_of_lines
from reports.render.site.text import (
    bare_quotes,
    code_marked,
    effect_css,
    effect_words,
    parted,
    plain,
    worded,
)
from reports.render.site.write import SiteError, put, write
from reports.render.text.summary import printable
from reports.store.collecting import paused_collector
from reports.store.order import short_implementation
from reports.store.results import Results

T = TypeVar("T")

__all__ = ["PAGES", "SiteError", "build", "environment", "render", "too_large"]

# What makes pages: each takes the results with their effects, and yields its own pages.
PAGES: tuple[Pages, ...] = (
    upgrades.pages,
    statements.pages,
    subjects.pages,
    matrix.pages,
    causes.pages,
    known.pages,
    removed.pages,
    user_reports.pages,
    libraries.pages,
    jitted.pages,
    inside.pages,
    gradients.pages,
    unknown.pages,
    platforms.pages,
    cost.pages,
    lookup.pages,
    targets.pages,
    downloads.pages,
    clause_pages.pages,
    guide.pages,
)

# The ways on, in the order of the questions that readers come with; shown where the page is there.
NAVIGATION = (
    ("Upgrade", "index.html"),
    ("Known issues", "causes.html"),
    ("Error messages", "errors.html"),
    ("Documentation errors", "errata.html"),
    ("Performance and memory", "cost.html"),
    ("Compatibility table", "matrix.html"),
    ("Coverage", "unknown.html"),
    ("Download", "targets.html"),
    ("Docs", "docs.html"),
)
_UNDER = {
    "upgrade": "index.html",
    "clauses": "matrix.html",
    "data": "targets.html",
    "documents": "errata.html",
    "documents.html": "errata.html",
    "claims": "errata.html",
    "subjects": "causes.html",
    "versions": "causes.html",
    "versions.html": "causes.html",
    "hazards.html": "causes.html",
    "libraries.html": "causes.html",
    "jit.html": "cost.html",
    "gradients.html": "causes.html",
    "inside.html": "causes.html",
    "removed": "causes.html",
    "removed.html": "causes.html",
    "user-reports.html": "causes.html",
    "times.html": "cost.html",
    "causes-legacy.html": "causes.html",
    "causes-shard_map.html": "causes.html",
}

# What a page may load: files of the site, over HTTP by 'self' and from the disk by `file:`, where
# not every browser counts files as of one origin. Nothing runs that stands in the page itself. It
# is on each page, so it is short.
POLICY = "; ".join(
    (
        "default-src 'self' file:",
        "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)

LICENSE = "Apache License 2.0"

_ASSETS = ("style.css",)
_TEMPLATES = "j2"  # how their names end


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page shows around its content: navigation, and the runs of the results."""

    navigation: tuple[tuple[str, str], ...]
    measured: str
    license: str = LICENSE
    repository: str = ""


def build(results: Results, directory: Path, repository: str = "") -> int:
    """Write the site of `results` into `directory`; return the number of pages. SiteError if it
    fails.
    """
    with paused_collector():
        rendered = _renderer(results, repository)

        def fill(new: Path) -> Iterator[str]:
            lines: dict[str, str] = {}
            for names, more in _of_batches(partial(_put, rendered, new), rendered):
                add(lines, more)
                yield from names
            for path, text in files_of_lines(lines):
                yield put(new, path, text)

        return sum(name.endswith(".html") for name in write(fill, directory))


def too_large(directory: Path) -> Iterator[tuple[str, int]]:
    """Yield the pages of a site that have more than MOST_BYTES bytes, with their size."""
    for page in sorted(directory.rglob("*.html")):
        size = page.stat().st_size
        if size > MOST_BYTES:
            yield page.relative_to(directory).as_posix(), size


def render(results: Results, repository: str = "") -> dict[str, str]:
    """Return the text of every file of the site, by its path."""
    rendered = _renderer(results, repository)
    site, lines = dict[str, str](), dict[str, str]()
    for some, more in _of_batches(partial(_texts, rendered), rendered):
        site.update(some)
        add(lines, more)
    return {**site, **dict(files_of_lines(lines))}


def _of_batches(do: Callable[[int], T], rendered: Renderer) -> Iterator[T]:
    return in_parallel(do, len(rendered.batches), worth=WORTH // AT_ONCE, at_once=1)


def _put(rendered: Renderer, folder: Path, batch: int) -> tuple[list[str], dict[str, str]]:
    """Write the pages of a batch; return their names, and the lines that they share with others."""
    names = [put(folder, *rendered(number)) for number in rendered.batches[batch]]
    return names, rendered.lines.taken()


def _texts(rendered: Renderer, batch: int) -> tuple[dict[str, str], dict[str, str]]:
    some = dict(rendered(number) for number in rendered.batches[batch])
    return some, rendered.lines.taken()


def _renderer(results: Results, repository: str) -> Renderer:
    effects = asked(results)
    assets = (Asset(name, partial(template_text, name)) for name in _ASSETS)
    made = (*assets, *(one for pages in PAGES for one in pages(effects)))
    return Renderer(_frame(results, made, repository), made)


def asked(results: Results) -> Effects:
    """Return the effects of the results, and everything that pages read from their cells."""
    effects = Effects(results, recorded_messages, notes)
    cells = (run.cell for one in results.outcomes.values() for run in one.runs[-1:])
    effects.once.ask(cells, in_parallel)
    return effects


class Renderer:
    """Renders pages by number; `batches` are the numbers that one process renders together."""

    def __init__(self, frame: Frame, made: Sequence[Page | Asset]) -> None:
        self.frame, self.made = frame, made
        self.batches = batches([one.batch for one in made])
        self.lines = Lines()
        self.env = environment()
        self.env.globals.update(lines=self.lines, line_files=FILES)
        for template in self.env.list_templates([_TEMPLATES]):
            self.env.get_template(template)  # compiled here, not once more in each process

    def __call__(self, number: int) -> tuple[str, str]:
        """Return the path and the text of one page."""
        one = self.made[number]
        if isinstance(one, Asset):
            return one.path, printable(one.text)
        text = self.env.get_template(f"{one.template}.html.j2").render(
            page=one.view,
            root=one.root,
            title=one.title,
            description=one.description,
            frame=self.frame,
            here=_way(one.path),
        )
        return one.path, bare_quotes(printable(text))


class _Environment(Environment):
    """Templates of records, whose `one.title` is an attribute and never a key: half the cost."""

    getattr = staticmethod(getattr)  # type: ignore[assignment]


class _Compiled(BytecodeCache):
    """The compiled templates of this process: a second site's need no compilation."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


def environment() -> Environment:
    """Return the templates, all with escaping."""
    env = _Environment(
        loader=PackageLoader("reports.render.site"),
        bytecode_cache=_COMPILED,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    env.globals.update(policy=POLICY, verdicts=tuple(Verdict), marks=tuple(Mark))
    of_issues = sorted((*DIFFERENCES, Effect.OTHER_OUTPUT), key=lambda effect: effect.rank)
    env.globals.update(effects=DIFFERENCES, of_issues=of_issues, prelude=rewrites().prelude.strip())
    env.filters.update(
        zip=zip,
        plain=plain,
        parted=parted,
        worded=worded,
        prose=lambda text: Markup(code_marked(text)),
        implementation=implementation_words,
        short=short_implementation,
        safe_name=safe_name,
        section_words=section_words,
        effect_css=effect_css,
        effect_words=effect_words,
    )
    env.tests["web_link"] = lambda text: text.startswith("https://")
    return env


def _frame(results: Results, made: Sequence[Page | Asset], repository: str) -> Frame:
    paths = {one.path for one in made}
    days = sorted({target.started[:10] for target in results.targets if target.started})
    labels = [results.labels[t.key] for t in results.targets if not t.unavailable]
    newest = [one.removeprefix("jax ") for one in labels[1:][-1:]]
    main, *others = [one.upper() for one in results.platforms] or [""]
    summary = (
        f"{main}, in part {', '.join(others)}" if others else main,
        " to ".join([*labels[:1], *newest]),
        f"up to {days[-1]}" if days else "",
    )
    return Frame(
        navigation=tuple((word, path) for word, path in NAVIGATION if path in paths),
        measured=" · ".join(filter(None, summary)),
        repository=repository,
    )


def _way(path: str) -> str:
    """Return the navigation entry of a page."""
    folder, _, rest = path.partition("/")
    return _UNDER.get(folder, f"{folder}.html" if rest else path)
