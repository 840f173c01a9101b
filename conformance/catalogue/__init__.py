"""What is claimed: claims, the clauses that check them, and the words that both share."""
