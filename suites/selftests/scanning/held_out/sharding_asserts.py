"""Tests of a library that look at where results are."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture
def stacked():
  return jax.pmap(lambda x: 2 * x)(np.arange(jax.local_device_count()))


def test_is_sharded(stacked):
  out = jax.pmap(lambda x: 2 * x)(np.arange(jax.local_device_count()))
  assert isinstance(out.sharding, jax.sharding.PmapSharding)  # finds: pmap-sharding-gone
  assert len(out.addressable_shards) == jax.local_device_count()
  np.testing.assert_array_equal(out, 2 * np.arange(jax.local_device_count()))
