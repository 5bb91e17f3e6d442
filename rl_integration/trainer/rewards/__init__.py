"""Scores of rollouts as rewards: who is asked, which answers are compared with each other, and what is taken off."""
