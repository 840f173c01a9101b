"""Measure strength: the share of wrong observations that a cell's expectation notices."""
