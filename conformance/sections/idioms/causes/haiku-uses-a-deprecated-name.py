import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import haiku

    print(haiku.__name__)
print(any("set_current_trace is deprecated" in str(one.message) for one in caught))
