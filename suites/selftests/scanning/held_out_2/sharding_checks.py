"""Asserts about where arrays are, in the tests of a library."""
import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jax.sharding import PmapSharding  # finds: pmap-sharding-gone


def is_pmapped(x):
    return isinstance(x.sharding, PmapSharding)  # finds: outputs-in-a-named-sharding


def is_replicated(x):
    return x.sharding.is_fully_replicated


@pytest.fixture
def mapped():
    return jax.pmap(lambda x: x + 1)(np.arange(float(jax.local_device_count())))


def test_output_is_sharded(mapped):
    assert is_pmapped(mapped)
    assert len(mapped.addressable_shards) == jax.local_device_count()


def test_spec(mapped):
    spec = mapped.sharding.sharding_spec  # finds: outputs-in-a-named-sharding
    assert spec is not None


def test_named():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    y = jax.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))
    assert y.sharding.spec == P("x")
    assert not is_replicated(y)
    assert isinstance(y.sharding, NamedSharding)
