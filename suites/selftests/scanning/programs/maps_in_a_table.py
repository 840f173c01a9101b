import jax

BODIES = {"sum": lambda x: x.sum(), "max": lambda x: x.max()}
MAPS = {name: jax.pmap(body) for name, body in BODIES.items()}
NAMED = {"a": jax.pmap(BODIES["sum"]), "b": jax.pmap(BODIES["max"])}


def main(x, name):
    for key, mapped in MAPS.items():
        print(key, mapped(x)[0])  # finds: index-replicates-the-row
    return NAMED[name](x)[0]  # finds: index-replicates-the-row
