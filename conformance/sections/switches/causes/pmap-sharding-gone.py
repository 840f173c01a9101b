import jax

try:
    print(jax.sharding.PmapSharding)
except AttributeError as error:
    print(error)
try:
    from jax.sharding import PmapSharding

    print(PmapSharding)
except ImportError as error:
    print(error)
