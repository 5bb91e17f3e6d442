"""From scored rollouts to a better policy."""
