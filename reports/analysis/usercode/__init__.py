"""What runs of a user's own function showed, compared with each other."""
