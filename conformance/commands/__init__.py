"""What `python -m conformance` does, a module per subcommand."""
