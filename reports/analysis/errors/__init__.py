"""JAX's messages when something fails, and the known issues behind them."""
