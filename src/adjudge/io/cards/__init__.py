"""Cards that say where a dataset comes from."""
