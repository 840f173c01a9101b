import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from jax.experimental.pjit import pjit
print(pjit(lambda x: x + 1)(1), *[str(one.message).split(". ")[0] for one in caught], sep="\n")
