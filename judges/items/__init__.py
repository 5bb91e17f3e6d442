"""Lists of items that a model judges one by one: criteria, facts, principles, steps and cited statements."""
