"""Scorers of agents: search, tools, abstention, and simulated users."""
