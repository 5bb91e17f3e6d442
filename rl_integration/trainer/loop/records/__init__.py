"""What a run writes down, and what is shown of it."""
