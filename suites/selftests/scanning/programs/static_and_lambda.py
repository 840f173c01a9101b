import jax, jax.numpy as jnp, numpy as np

n = jax.local_device_count()
apply = lambda f, *a: jax.pmap(f)(*a)

a = np.random.rand(n, 3, 3)
b = np.random.rand(n, 3, 3)
c = apply(jnp.matmul, a, b)
print(c[0])  # finds: index-replicates-the-row
print(jax.pmap(jnp.linalg.det)(a)[0])  # finds: index-replicates-the-row
print(np.asarray(jax.pmap(jnp.linalg.inv)(a))[0])
print(a[0] @ b[0])

power = jax.pmap(jnp.linalg.matrix_power, static_broadcasted_argnums=1)
res = power(a, 3)
head, *tail = res  # finds: iteration-goes-through-the-host
print(head, len(tail))

it = iter(power(a, 2))  # finds: iteration-goes-through-the-host
print(next(it))

flat = [float(v) for v in np.asarray(jax.pmap(jnp.trace)(a))]
print(flat[0], max(flat))
print([d.id for d in jax.local_devices()][0])
