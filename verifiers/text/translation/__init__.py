"""Is a text a good translation?  Importing this package imports nothing else."""
