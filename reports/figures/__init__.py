"""Charts of costs: the numbers, and their drawings as SVG."""
