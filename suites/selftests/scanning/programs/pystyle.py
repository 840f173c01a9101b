import jax
import jax.numpy as jnp
import numpy as np
import pytest

needs_devices = pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")


@pytest.fixture
def stepped():
    fn = jax.pmap(lambda x: (x.sum(), x.max()))
    x = np.arange(16.0).reshape(jax.local_device_count(), -1)
    return x, jax.device_get(fn(x))


def test_sum(stepped):
    x, (s, m) = stepped
    assert s[0] == x[0].sum()
    assert m[-1] == x[-1].max()


@needs_devices
def test_legacy_switch(monkeypatch):
    monkeypatch.setenv("JAX_PMAP_SHMAP_MERGE", "0")  # finds: merge-variable-ignored
    f = jax.pmap(jnp.sin)
    y = f(np.ones(jax.local_device_count()))
    assert y.shape == (jax.local_device_count(),)
    assert y[0] == pytest.approx(np.sin(1.0))  # finds: index-replicates-the-row


def test_docs_mention_switch():
    text = "set JAX_PMAP_SHMAP_MERGE=0, then jax.device_put_replicated works"
    assert "device_put_replicated" in text
