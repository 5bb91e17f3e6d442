"""What a judge wrote, checked against a verdict that is known: rewards for training judges and verifiers."""
