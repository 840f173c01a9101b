"""How a case is run: targets, clusters of worker processes, the pytest plugin, and the command."""
