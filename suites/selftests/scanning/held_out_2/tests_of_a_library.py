"""unittest of parallel helpers."""
import unittest

import jax
import jax.numpy as jnp
import numpy as np


class PmapTest(unittest.TestCase):
    def setUp(self):
        self.n = jax.local_device_count()
        self.f = jax.pmap(lambda x: x * 2)
        self.x = np.arange(self.n, dtype=np.float32)

    def test_values(self):
        np.testing.assert_allclose(self.f(self.x), 2 * self.x)

    def test_first(self):
        out = self.f(self.x)
        self.assertEqual(out[0], 0)  # finds: index-replicates-the-row

    def test_last_of_host(self):
        out = np.asarray(self.f(self.x))
        self.assertEqual(out[-1], 2 * (self.n - 1))

    def test_psum(self):
        out = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(self.x)
        for value in out:  # finds: iteration-goes-through-the-host
            self.assertEqual(value, self.x.sum())

    def test_vmap(self):
        out = jax.vmap(lambda x: x * 2)(self.x)
        self.assertEqual(out[0], 0)
        for value in out:
            self.assertGreaterEqual(value, 0)

    def test_raises(self):
        with self.assertRaises(ValueError):
            self.f(np.ones(self.n + 1))


if __name__ == "__main__":
    unittest.main()
