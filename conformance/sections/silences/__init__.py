"""Behaviour on which the documents are silent: legacy pmap is the reference."""
