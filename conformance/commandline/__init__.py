"""What all our commands have in common: what they are given, what they write, how they end."""
