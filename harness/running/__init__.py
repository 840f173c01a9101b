"""Which cells a run has, and how they run on shared clusters."""
