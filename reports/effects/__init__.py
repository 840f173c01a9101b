"""What a user feels between two cells, and on the way from one side to another."""
