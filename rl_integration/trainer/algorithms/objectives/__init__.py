"""Objectives of policy training as pure functions: advantages over rewards, losses over tokens, and a table of both."""
