# from legacy_pmap@0.9.2 to new_pmap@0.12.0.1
import jax

step = jax.pmap(lambda x: x + 1)


def replicas(x):
    lowered = step.lower(x)
    return lowered.as_text().count("replica_groups")  # finds: lowered-for-partitions


def dump(x, path):
    path.write_text(step.lower(x).as_text(dialect="hlo"))  # finds: lowered-for-partitions


def plain(x):
    return jax.jit(lambda x: x + 1).lower(x).as_text()
