"""Help for tasks whose answers are wrong: critiques and refinements, hints."""
