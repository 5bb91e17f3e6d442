"""Tasks that a program writes, with answers that it knows."""
