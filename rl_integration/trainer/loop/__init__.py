"""A run: its configuration, batches, updates, processes, checkpoints and records."""
