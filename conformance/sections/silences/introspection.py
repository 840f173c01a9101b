"""Introspection of a mapped function and its stages: pytrees, types, shardings, texts, costs.

Legacy pmap's stages do not answer some questions that jit's stages of the same release answer:
there new pmap must answer as jit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from conformance.sections.silences.answers import (
    CONTROLLED,
    NESTED,
    ONE_PROCESS_ALONE,
    WIDTH,
    answers,
    ask,
    control,
    nested,
)
from conformance.spec.clause import devices
from conformance.spec.columns import Columns
from conformance.spec.expectation import every, in_steps, raises
from conformance.spec.expected import Expectation
from conformance.spec.family import family, table
from conformance.spec.names import LEGACY_PMAP, NEW_PMAP, SHARD_MAP
from conformance.spec.releases import by_release
from conformance.worker.protocols import Cluster, Implementation

TELLS = "pmap-silence.stage-introspection"
ARGS = (np.ones((8, WIDTH), np.float32),) * 2


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a mapped function, its lowered stage `low` or its compiled stage `done`.

    `answer` is legacy pmap's, or the error of both pmaps; `of_jit` is shard_map's, if different.
    """

    key: str
    text: str
    ask: Callable[[Any, Any, Any], Any]
    answer: Expectation
    of_jit: Expectation | None = None
    new: Expectation | None = None


def _has(*words: str) -> Callable[[str], list[bool]]:
    return lambda text: [word in text for word in words]


def _text(value: Any) -> str:
    return str(value)


def _kinds(tree: Any) -> list[str]:
    """Shape and dtype of each leaf, and the tree."""
    leaves, structure = jax.tree.flatten(tree)
    return [*(f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves), str(structure)]


def _shards(shardings: Any) -> list[Any]:
    """The shape of a shard of the rows, and on how many devices, by each sharding."""
    return [
        [list(one.shard_shape((8, WIDTH))), len(one.device_set)]
        for one in jax.tree.leaves(shardings)
    ]


KINDS = [*["float32[8, 3]"] * 2, NESTED]
ABSENT = "has no attribute '{}'"


def absent(name: str) -> Expectation:
    """There is no such attribute."""
    return raises(AttributeError, ABSENT.format(name))


QUESTIONS: Mapping[str, Question] = table(
    Question(
        "in-tree",
        "the lowered stage's `in_tree`",
        lambda f, low, done: _text(low.in_tree),
        answers("PyTreeDef(((*, *), {}))"),
    ),
    Question(
        "compiled-in-tree",
        "the compiled stage's `in_tree`",
        lambda f, low, done: _text(done.in_tree),
        answers("PyTreeDef(((*, *), {}))"),
    ),
    Question(
        "out-tree",
        "the lowered stage's `out_tree`",
        lambda f, low, done: _text(low.out_tree),
        answers(NESTED),
    ),
    Question(
        "compiled-out-tree",
        "the compiled stage's `out_tree`",
        lambda f, low, done: _text(done.out_tree),
        answers(NESTED),
    ),
    Question(
        "in-avals",
        "the lowered stage's `in_avals`",
        lambda f, low, done: [str(one) for one in jax.tree.leaves(low.in_avals)],
        answers(["float32[8,3]"] * 2),
    ),
    Question(
        "args-info",
        "the lowered stage's `args_info`",
        lambda f, low, done: [
            [one.donated, str(one.dtype), list(one.shape)]
            for one in jax.tree.leaves(low.args_info, is_leaf=lambda x: hasattr(x, "donated"))
        ],
        answers([[False, "float32", [8, 3]]] * 2),
    ),
    Question(
        "donated",
        "the lowered stage's `donate_argnums`",
        lambda f, low, done: list(low.donate_argnums),
        answers([]),
    ),
    Question(
        "out-info",
        "the lowered stage's `out_info`",
        lambda f, low, done: _kinds(low.out_info),
        raises(KeyError, "^'global_out_avals'$"),
        answers(KINDS),
        answers(KINDS),
    ),
    Question(
        "compiled-out-info",
        "the compiled stage's `out_info`",
        lambda f, low, done: _kinds(done.out_info),
        absent("out_avals"),
        answers(KINDS),
        answers(KINDS),
    ),
    Question(
        "input-shardings",
        "the compiled stage's `input_shardings`",
        lambda f, low, done: _shards(done.input_shardings),
        absent("_in_shardings"),
        answers([[[1, WIDTH], 8]] * 2),
        answers([[[1, WIDTH], 8]] * 2),
    ),
    Question(
        "output-shardings",
        "the compiled stage's `output_shardings`",
        lambda f, low, done: _shards(done.output_shardings),
        absent("_out_shardings"),
        answers([[[1, WIDTH], 8]] * 2),
        answers([[[1, WIDTH], 8]] * 2),
    ),
    Question(
        "text",
        "the lowered stage's `as_text()`",
        lambda f, low, done: _has("stablehlo.add", "func.func public @main", "HloModule")(
            low.as_text()
        ),
        answers([True, True, False]),
    ),
    Question(
        "text-hlo",
        "the lowered stage's `as_text('hlo')`",
        lambda f, low, done: _has("HloModule", " add(", "stablehlo")(low.as_text("hlo")),
        answers([True, True, False]),
    ),
    Question(
        "text-unknown",
        "the lowered stage's `as_text` with an unknown dialect",
        lambda f, low, done: low.as_text("nosuch"),
        raises(ValueError, "^unknown dialect: nosuch$"),
    ),
    Question(
        "compiled-text",
        "the compiled stage's `as_text()`",
        lambda f, low, done: _has("HloModule", "is_scheduled=true", "f32[1,3]")(done.as_text()),
        answers([True] * 3),
    ),
    Question(
        "ir",
        "the lowered stage's `compiler_ir()`",
        lambda f, low, done: _has("stablehlo.add")(str(low.compiler_ir())),
        answers([True]),
    ),
    Question(
        "cost",
        "the compiled stage's `cost_analysis()`",
        lambda f, low, done: done.cost_analysis()["flops"],
        answers(6.0),
    ),
    Question(
        "memory",
        "the compiled stage's `memory_analysis()`",
        lambda f, low, done: [
            done.memory_analysis().argument_size_in_bytes,
            done.memory_analysis().output_size_in_bytes >= 24,
        ],
        answers([24, True]),
    ),
    Question(
        "executable",
        "the compiled stage's `runtime_executable()`",
        lambda f, low, done: [d.id for d in done.runtime_executable().local_devices()],
        answers(list(range(8))),
    ),
    Question(
        "trace",
        "`trace`",
        lambda f, low, done: _text(f.trace is not None),
        absent("trace"),
        answers("True"),
    ),
    Question(
        "eval-shape",
        "its own `eval_shape`",
        lambda f, low, done: _kinds(f.eval_shape(*ARGS)),
        absent("eval_shape"),
        answers(KINDS),
    ),
    Question(
        "clear-cache",
        "`clear_cache`",
        lambda f, low, done: f.clear_cache(),
        absent("clear_cache"),
        answers(None),
    ),
    Question(
        "jax-eval-shape",
        "`jax.eval_shape` of it",
        lambda f, low, done: _kinds(jax.eval_shape(f, *ARGS)),
        answers(KINDS),
    ),
    Question(
        "jaxpr",
        "`jax.make_jaxpr` of it",
        lambda f, low, done: [str(one) for one in jax.make_jaxpr(f)(*ARGS).out_avals],
        answers(["float32[8,3]"] * 2),
    ),
)
ASKED = "what is asked"
OLDER = {"trace": answers("True")}  # what legacy answers before 0.7.2, where it answers otherwise


def expected_answers(question: Question) -> Columns:
    """Legacy's answer, or the better one where legacy has none."""
    new = question.new or question.answer
    jit = question.of_jit or question.answer
    legacy = in_steps(question.answer, ASKED)
    if question.key in OLDER:
        legacy = by_release("0.7.2", before=in_steps(OLDER[question.key], ASKED), since=legacy)
    return {
        LEGACY_PMAP: every(CONTROLLED, legacy),
        NEW_PMAP: every(CONTROLLED, in_steps(new, ASKED)),
        SHARD_MAP: every(CONTROLLED, in_steps(jit, ASKED)),
    }


@family(
    "silences.tells.{question}",
    question=QUESTIONS,
    claim=TELLS,
    title="Introspection of a mapped function: {question.text}.",
    left_out=ONE_PROCESS_ALONE,
    needs=devices(8),
    expect=expected_answers,
)
def introspect(impl: Implementation, cluster: Cluster, question: Question) -> None:
    """Put a question to a mapped function of two arguments, or to its stages."""
    control(impl, cluster)
    function = impl.map(nested()).function
    lowered = function.lower(*ARGS)
    ask(cluster, ASKED, lambda: question.ask(function, lowered, lowered.compile()))
