"""What runs in a worker: the implementations, and how what happens becomes an observation."""
