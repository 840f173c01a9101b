"""Which cells a run has, and how they are run on clusters that are shared."""
