"""Jobs that make what scorers of items compare with: nuggets, rubrics, statements, principles, keywords, checkers."""
