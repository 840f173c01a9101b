from jax.lax import pvary

print(pvary.__name__)
