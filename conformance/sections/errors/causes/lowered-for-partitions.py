import jax
import numpy as np

rows = np.arange(jax.local_device_count())
text = jax.pmap(lambda x: x + 1).lower(rows).as_text()
for word in ("num_replicas", "num_partitions"):
    print(word, text.partition(f"mhlo.{word} = ")[2].partition(" ")[0])
