import jax
import jax.extend as jex

try:
    Effects = jex.core.Effects
except AttributeError:
    Effects = jax.core.Effects

try:
    from jax.extend.core import unsafe_get_axis_names_DO_NOT_USE
except ImportError:
    from jax.core import unsafe_get_axis_names_DO_NOT_USE

try:
    gensym = jax.core.gensym  # finds: public-names-removed
except ValueError:
    gensym = None  # the failure is another error

DropVar = jax.core.DropVar  # finds: public-names-removed
