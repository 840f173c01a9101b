"""Samples images from a diffusion model, on all devices."""
import math

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image


def image_grid(images, rows, cols):
    w, h = images[0].size
    grid = Image.new("RGB", size=(cols * w, rows * h))
    for i, image in enumerate(images):
        grid.paste(image, box=(i % cols * w, i // cols * h))
    return grid


class Pipeline:
    def __init__(self, unet, scheduler, params):
        self.unet = unet
        self.scheduler = scheduler
        self.params = params
        self._p_generate = jax.pmap(
            self._generate, in_axes=(None, 0, 0, 0), static_broadcasted_argnums=(0,)
        )

    def _generate(self, num_steps, params, prompt_ids, rng):
        latents = jax.random.normal(rng, (prompt_ids.shape[0], 64, 64, 4))

        def body(i, latents):
            noise = self.unet.apply({"params": params}, latents, i, prompt_ids)
            return self.scheduler.step(noise, i, latents)

        return jax.lax.fori_loop(0, num_steps, body, latents)

    def __call__(self, prompt_ids, rng, num_steps=50):
        n = jax.device_count()
        rngs = jax.random.split(rng, n)
        images = self._p_generate(num_steps, self.params, prompt_ids, rngs)
        preview = images[0]  # finds: index-replicates-the-row
        images = images.reshape((images.shape[0] * images.shape[1],) + images.shape[2:])
        images = np.asarray(images)
        pils = [Image.fromarray((255 * i).astype(np.uint8)) for i in images]
        return image_grid(pils, 2, math.ceil(len(pils) / 2)), preview
