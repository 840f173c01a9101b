"""asyncio server that batches requests into one pmapped call."""
import asyncio
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Request:
    tokens: np.ndarray
    future: asyncio.Future


class Batcher:
    def __init__(self, apply_fn, params):
        self.n = jax.local_device_count()
        self.queue: asyncio.Queue[Request] = asyncio.Queue()
        self.fn = jax.pmap(apply_fn, in_axes=(None, 0))
        self.params = params

    async def submit(self, tokens):
        future = asyncio.get_running_loop().create_future()
        await self.queue.put(Request(tokens, future))
        return await future

    async def serve(self):
        while True:
            requests = [await self.queue.get() for _ in range(self.n)]
            rows = np.stack([r.tokens for r in requests])
            logits = await asyncio.to_thread(self.fn, self.params, rows)  # finds: calls-run-python
            for request, row in zip(requests, logits):  # finds: iteration-goes-through-the-host
                request.future.set_result(np.asarray(row))

    def warm_up(self, length):
        rows = np.zeros((self.n, length), np.int32)
        for _ in range(3):
            out = self.fn(self.params, rows)
        jax.block_until_ready(out)
        return rows[0]
