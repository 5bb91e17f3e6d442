"""Tasks, and what their answers are checked with: unit tests, constraints, theorems, test benches, databases."""
