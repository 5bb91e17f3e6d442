"""Rollouts with their scores."""
