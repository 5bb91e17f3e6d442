"""What is learnt from rewards: objectives, and credit within answers."""
