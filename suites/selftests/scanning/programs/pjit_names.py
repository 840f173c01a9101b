from jax.experimental import pjit as pjit_module
from jax.experimental.pjit import pjit  # finds: pjit-warns

double = pjit(lambda x: 2 * x)
triple = pjit_module.pjit(lambda x: 3 * x)  # finds: pjit-warns
