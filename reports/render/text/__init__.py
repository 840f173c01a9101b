"""Render results as text and Markdown."""
