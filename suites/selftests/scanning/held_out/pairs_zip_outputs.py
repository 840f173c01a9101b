import jax
import jax.numpy as jnp
import numpy as np

encode = jax.pmap(lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True))


def compare(left, right, names):
  a, b = encode(left), encode(right)
  report = {}
  for name, one, other in zip(names, a, b):  # finds: iteration-goes-through-the-host
    report[name] = float((one * other).sum())
  host_a, host_b = np.asarray(a), np.asarray(b)
  for one, other in zip(host_a, host_b):
    report['sum'] = report.get('sum', 0) + float((one * other).sum())
  return report
