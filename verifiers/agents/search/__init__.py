"""Rewards of search turns: what a query found, what the agent judged, what a turn was worth."""
