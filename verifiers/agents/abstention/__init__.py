"""Does a model know what it does not know?  Importing this package imports nothing else."""
