import jax

step = jax.pmap(lambda s: s + 1)

async def serve(queue):
    while True:
        x = await queue.get()
        yield step(x)[0]  # finds: index-replicates-the-row
