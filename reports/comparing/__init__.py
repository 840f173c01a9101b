"""What two runs, or two implementations, say differently: compared, grouped, told."""
