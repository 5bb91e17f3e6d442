"""What is read in responses."""
