"""Statements to prove or disprove, made of theorems."""
