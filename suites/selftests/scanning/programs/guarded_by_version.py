import jax
import jax.extend as jex

jax_version = (
    jax.__version_info__
    if hasattr(jax, "__version_info__")
    else tuple(map(int, jax.__version__.split(".")))
)

if jax_version >= (0, 10, 0):
    gensym = jex.core.gensym
else:
    gensym = jax.core.gensym

if jax_version < (0, 9):
    from jax.core import DropVar
else:
    from jax.core import no_effects  # finds: public-names-removed


def replicate(tree, devices):
    if jax.__version_info__ < (0, 10):
        return jax.device_put_replicated(tree, devices)
    return jax.device_put_replicated(tree, devices)  # finds: device-put-stackers-gone
