import jax

for new in (False, True):
    try:
        jax.config.update("jax_pmap_shmap_merge", new)
    except AttributeError as error:
        print(f"{new}: {error}")
    else:
        print(f"{new}: set")
