"""Figures of what things cost: the numbers, and their drawings as text."""
