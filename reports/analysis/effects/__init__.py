"""Effects: what changes for a user between two cells, and for an upgrade between two sides."""
