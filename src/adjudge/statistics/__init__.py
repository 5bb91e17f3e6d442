"""Bounds, tests, ranks and strengths: how much of a number, or of a difference, is chance."""
