"""Which errors leave a worker as it was, so that it may run another case."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from records import raised, returned

from conformance.spec.observation import OUTSIDE
from conformance.worker.plain import FLAG
from conformance.worker.unharmed import settings, unharmed

SAME = ({"jax_enable_x64": False}, (None,), True)
OTHER = ({"jax_enable_x64": True}, (None,), True)


def harmless(*steps: Any) -> bool:
    return unharmed(steps, SAME, SAME)


@pytest.mark.parametrize("phase", ["construct", "arguments", "trace", "lower"])
def test_an_early_error_of_python_code_does_no_harm(phase: str) -> None:
    assert harmless(returned(), raised(phase=phase, bases=["Exception"]))


# A launch that the runtime refuses has an unknown phase if no frame of JAX is below it: after one
# of `jax.jit` on JAX 0.9.0 each process hung in its next legacy pmap.
@pytest.mark.parametrize("phase", ["compile", "execute", "fetch", "unknown"])
def test_an_error_after_the_runtime_was_reached_does(phase: str) -> None:
    assert not harmless(raised(phase=phase))


def test_an_error_with_the_words_of_the_runtime_does() -> None:
    refused = "INVALID_ARGUMENT: Buffer passed to Execute() as argument 0 to replica 0 is on device"
    assert not harmless(raised("ValueError", refused, phase="arguments"))


def test_one_harmful_error_is_enough() -> None:
    assert not harmless(raised(), raised(phase="execute"))


@pytest.mark.parametrize(
    ("type", "bases"),
    [
        ("JaxRuntimeError", ["RuntimeError", "Exception"]),
        ("XlaRuntimeError", ["RuntimeError", "Exception"]),
        ("RuntimeError", ["Exception"]),
        ("MemoryError", ["Exception"]),
    ],
)
def test_an_error_of_the_runtime_does(type: str, bases: list[str]) -> None:
    assert not harmless(raised(type, phase="arguments", bases=bases))


def test_a_subclass_of_a_python_error_does_not() -> None:
    assert harmless(raised("IndivisibleError", bases=["ValueError", "Exception"]))
    assert harmless(raised("NotImplementedError", bases=["RuntimeError", "Exception"]))


def test_what_was_handed_to_the_runtime_does() -> None:
    frames = ["api.py:device_put", "pxla.py:batched_device_put"]
    assert not harmless(raised(phase="arguments", frames=frames))


def test_an_error_outside_any_step_does() -> None:
    assert not harmless(raised(name=OUTSIDE))


def test_changed_settings_do_after_an_error() -> None:
    assert not unharmed([raised()], SAME, OTHER)
    assert unharmed([returned()], SAME, OTHER)


def test_unknown_settings_do_after_an_error() -> None:
    assert not unharmed([raised()], (), ())


def test_settings_are_the_same_after_a_trace_that_raised() -> None:
    before = settings()
    with pytest.raises(NameError):
        jax.make_jaxpr(lambda x: jax.numpy.sum(x, axis="no axis"))(1.0)
    assert before
    assert settings() == before


def test_settings_differ_within_a_context_and_after_an_update() -> None:
    before = settings()
    with jax.default_matmul_precision("float32"):
        assert settings() != before
    assert settings() == before
    jax.config.update("jax_numpy_rank_promotion", "warn")
    try:
        assert settings() != before
    finally:
        jax.config.update("jax_numpy_rank_promotion", "allow")
    assert settings() == before


def test_settings_differ_within_a_trace() -> None:
    before, seen = settings(), []

    def traced(x: Any) -> Any:
        seen.append(settings())
        return x

    jax.make_jaxpr(traced)(1.0)
    assert seen[0] != before


def test_the_switch_that_each_case_sets_does_not_count() -> None:
    assert FLAG not in settings()[0]
