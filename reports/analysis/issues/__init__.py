"""What each known issue does in each version: one derivation for every table of known issues."""
