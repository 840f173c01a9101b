import jax

def wrapped_pmap(function, axis_name=None, devices=None, backend=None, axis_size=None):
    return jax.pmap(
        function, axis_name, devices=devices, backend=backend, axis_size=axis_size
    )
