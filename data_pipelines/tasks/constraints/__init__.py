"""Prompts with constraints on their responses that a program can check, and that do not contradict each other."""
