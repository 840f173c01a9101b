import jax
import numpy as np

decode = jax.pmap(lambda x: x)


def main(x):
    images = decode(x).clip(0.0, 1.0).reshape((-1, 8, 8, 3))
    for image in images:  # finds: iteration-goes-through-the-host
        print(np.asarray(image))
    return images.transpose(0, 3, 1, 2)[0]  # finds: index-replicates-the-row
