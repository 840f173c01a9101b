import jax
from packaging import version
from packaging.version import Version

OLD = version.parse(jax.__version__) < version.parse("0.10")

if Version(jax.__version__) < Version("0.9.1"):
    new_jaxpr_eqn = jax.core.new_jaxpr_eqn

if "0.7" <= jax.__version__:
    gensym = jax.core.gensym  # finds: public-names-removed

key = jax.core.DropVar if jax.__version__ < "0.10" else None
