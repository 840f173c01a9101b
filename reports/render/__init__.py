"""Render results for readers: the site, text for a terminal, Markdown, charts."""
