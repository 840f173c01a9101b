"""What JAX says when something fails, and what it means: messages, and the causes behind them."""
