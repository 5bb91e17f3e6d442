"""Trajectories of agents: who wrote what, which tags and calls the agent wrote, and what its tools returned."""
