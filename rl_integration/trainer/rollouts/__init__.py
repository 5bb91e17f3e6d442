"""What a policy writes: generation, tools, tasks and their order, and help where answers are wrong."""
