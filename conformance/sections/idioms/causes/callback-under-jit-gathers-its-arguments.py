import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
losses = jax.device_put(np.arange(8.0), NamedSharding(mesh, P("i")))


def calls(**options):
    sizes = []

    def body(losses):
        jax.debug.callback(lambda part: sizes.append(part.size), losses, **options)
        return losses * 2

    program = jax.jit(body).lower(losses).compile()
    jax.block_until_ready(program(losses))
    jax.effects_barrier()
    return len(sizes), sizes[0], "all-gather" in program.as_text()


print("calls, losses in a call, all-gather:", *calls())
print("with partitioned=True:", *calls(partitioned=True))
