"""Answers of a model to the prompts of a data set."""
