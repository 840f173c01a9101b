"""Several processes that run one JAX program: the multi-controller tutorial, and maps over them."""
