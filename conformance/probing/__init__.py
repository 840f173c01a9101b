"""The code that runs in a worker: the implementations, and the recording of observations."""
