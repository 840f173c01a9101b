"""Merge results files, and look up the cells and headers of the merged results."""
