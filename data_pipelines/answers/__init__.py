"""Answers of a model to the prompts of a data set, and beginnings of good ones as further prompts."""
