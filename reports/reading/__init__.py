"""Results files: their records, read and merged."""
