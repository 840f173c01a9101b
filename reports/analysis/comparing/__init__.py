"""Compare two runs, or two implementations: differences, grouped and explained."""
