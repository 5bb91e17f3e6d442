"""What a policy is trained on, and where it is read from."""
