"""Read results files; replace a file only once the new one is complete."""
