"""What a policy may call while it answers, and how calls are written."""
