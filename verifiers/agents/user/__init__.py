"""A simulated user: a model plays somebody whose feelings change with what they are told."""
