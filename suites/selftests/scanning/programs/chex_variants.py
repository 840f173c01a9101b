import chex
import jax

class MapTest(chex.TestCase):
    def test_pmap(self):
        with chex.fake_pmap():
            out = jax.pmap(lambda x: x + 1)(jax.numpy.ones((1,)))
        self.assertEqual(out.shape, (1,))
