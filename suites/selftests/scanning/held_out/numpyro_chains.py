"""Markov chains, one on each device, by a library that maps them."""
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

numpyro.set_host_device_count(4)


def model(y):
  mu = numpyro.sample('mu', dist.Normal(0, 1))
  numpyro.sample('y', dist.Normal(mu, 1), obs=y)


def main(y):
  mcmc = MCMC(NUTS(model), num_warmup=500, num_samples=500, num_chains=4, chain_method='parallel')
  mcmc.run(jax.random.PRNGKey(0), y)
  samples = mcmc.get_samples(group_by_chain=True)
  return {k: v[0] for k, v in samples.items()}
