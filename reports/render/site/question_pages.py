"""The pages that answer a question of a user, and the words in which it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from reports.analysis.gradients import taken
from reports.render.site import (
    gradients,
    guide,
    inside,
    jitted,
    libraries,
    platforms,
    removed,
    user_reports,
)
from reports.render.site.names import Link
from reports.store.results import Results


def _always(results: Results) -> bool:
    return True


def _has_plain_jit(results: Results) -> bool:
    return any(one in results.clauses for one in jitted.plain_jits())


class QuestionPage(NamedTuple):
    """A page, the words that people type for it, what it says, and whether results have it.

    `asked` is its question on the first page; a page without one is reached in another way.
    """

    title: str
    href: str
    tags: str
    text: str
    there: Callable[[Results], object] = _always
    asked: str = ""


_PAGES = (
    QuestionPage(
        "Upgrade: choose from and to",
        "index.html",
        "upgrade · migrate · migration · default · which pmap · legacy · timeline · home",
        "Which pmap is the default in which version of JAX, and what an upgrade changes.",
    ),
    QuestionPage(
        "Upgrade guide",
        "docs/upgrade.html",
        "upgrade guide · step by step · how to upgrade · edits · migration guide · port",
        "The edits of an upgrade in their order, each as a program with its output.",
        lambda results: guide.documents(),
        asked="Which edits, step by step?",
    ),
    QuestionPage(
        "Crashes, hangs and wrong values",
        "hazards.html",
        "crash · crashes · segfault · segmentation fault · abort · core dumped · hang · hangs · "
        "stuck · deadlock · freeze · wrong · wrong numbers · wrong values · wrong results · silent",
        "Silent failures, and failures that end the job.",
        asked="What crashes, hangs or gives wrong values?",
    ),
    QuestionPage(
        "Which version is safest",
        "versions.html",
        "safest · safe · safest version · best version · recommended version · which version · "
        "which version is safest · which version should i use · stable · pin",
        "Per version and implementation, how many known issues an ordinary program meets.",
        lambda results: results.targets,
        asked="Which version is safest?",
    ),
    QuestionPage(
        gradients.TITLE,
        gradients.PAGE,
        "gradient · gradients · grad · psum · pmean · loss · factor · too large · too small · "
        "gradient of psum · gradient of pmean · times the devices · check_vma · data parallel",
        "By which factor a gradient is wrong, in the body and around the map.",
        taken,
        asked="Are my gradients right?",
    ),
    QuestionPage(
        "Run it yourself: laptop, GPU, TPU, own plug-in",
        "docs/run-it-yourself.html",
        "run it yourself · gpu · cuda · tpu · rocm · plugin · plug-in · pjrt · accelerator · "
        "metal · own hardware · hand in results",
        "How to run the tests on a GPU, a TPU or a plug-in, and how the results come in here.",
        lambda results: guide.documents(),
        asked="How do I run the tests on my GPU, TPU or plugin?",
    ),
    QuestionPage(
        platforms.TITLE,
        platforms.PAGE,
        "gpu · gpus · cuda · nvidia · tpu · accelerator · on gpu · h100 · h200 · platform · "
        "does it hold on gpu",
        "The tests that ran on another platform than the rest, beside their results there.",
        platforms.there,
        asked="Is it the same on a GPU?",
    ),
    QuestionPage(
        inside.TITLE,
        inside.PAGE,
        "pmap under jit · pmap inside jit · jit of pmap · pmap under vmap · vmap of pmap · "
        "pmap in grad · pmap in scan · jit · vmap · grad · scan · checkpoint · one process · "
        "single process · vmap single process · pmap under jit one process · nested",
        "Whether pmap works inside jit, vmap, grad, scan, while, cond and checkpoint: by version, "
        "with one process and with several.",
        inside.there,
        asked="Does pmap work inside jit, vmap, grad or scan?",
    ),
    QuestionPage(
        "Performance and memory",
        "cost.html",
        "cost · slow · slower · slowdown · performance · regression · speed · time · timing · "
        "benchmark · overhead · latency · bytes · memory · peak memory · out of memory · oom",
        "What legacy pmap, new pmap and shard_map cost, by version.",
        lambda results: results.timings,
    ),
    QuestionPage(
        "Documentation errors",
        "errata.html",
        "errata · erratum · documentation · docs · guide · wrong documentation · outdated"
        " · migrate_pmap · migrate_pmap wrong · migrate_pmap errors"
        " · false statements · migration guide · documentation errors · patch · corrections",
        "Claims of JAX's documents that do not hold, with what holds instead.",
        lambda results: results.claims and results.targets,
    ),
    QuestionPage(
        "Coverage: what was not run",
        "unknown.html",
        "unknown · not run · not measured · missing · coverage · gpu · cuda · tpu · rocm · platform"
        " · plugin · metal · accelerator",
        "Claims without a test, and topologies and platforms that were not run.",
    ),
    QuestionPage(
        "My import fails: names that JAX removed",
        removed.PAGE,
        "removed · import · imports · ImportError · AttributeError · ModuleNotFoundError · "
        "cannot import name · has no attribute · no module named · my import fails · deprecated",
        "Public names of JAX that went away, since when, and what JAX says of a replacement.",
        asked="My import fails: what was removed?",
    ),
    QuestionPage(
        "User reports",
        user_reports.PAGE,
        "user reports · reports · github issues · bug reports · tracker · reported",
        "What users reported to public trackers, what shows it, and where it is still so.",
        lambda results: results.targets,
    ),
    QuestionPage(
        "Libraries and JAX: which versions work together",
        libraries.PAGE,
        "libraries · library · flax · optax · orbax · orbax-checkpoint · equinox · chex · haiku · "
        "dm-haiku · compatible · compatibility · which version of flax · chex.fake_pmap",
        "Which version of a library installs beside a JAX, and what its functions do there.",
        asked="Which flax or optax fits my JAX?",
    ),
    QuestionPage(
        "pmap, shard_map and plain jit",
        jitted.PAGE,
        "jit · jax.jit · plain jit · NamedSharding · replace pmap by jit · pjit · "
        "in_shardings · out_shardings · pmap or jit · jit instead of pmap",
        "The same programs as pmap, as shard_map and as plain jit: values, communication, "
        "memory, time.",
        _has_plain_jit,
        asked="Should I use plain jit instead?",
    ),
)


def asked(results: Results) -> tuple[Link, ...]:
    """Return the questions of the first page that a site of these results answers."""
    there = (page for page in _PAGES if page.asked and page.there(results))
    return tuple(Link(page.asked, page.href) for page in there)


def question_pages(results: Results) -> Iterator[QuestionPage]:
    """Yield the pages of a site of these results, the first page first."""
    yield from (page for page in _PAGES if page.there(results))
    packages = sorted({name for one in results.targets for name in one.packages})
    yield QuestionPage(
        "Download: results, environments, versions of libraries",
        "targets.html",
        " · ".join(("download", "data", "json", "environment", "provenance", "libraries")),
        f"JAX, jaxlib, NumPy, Python; {', '.join(packages)}",
    )
