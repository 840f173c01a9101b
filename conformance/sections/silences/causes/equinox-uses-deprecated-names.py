import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import equinox

    print(equinox.__name__)
print(any("mapped_aval is deprecated" in str(one.message) for one in caught))
