"""What all commands share: checks of their input, their outputs, and how they end."""
