"""Verifiers of code changes: SEARCH/REPLACE edits, by their likeness to a known change or by a repository's tests."""
