"""Which prompts are trained on, how many answers each gets, and which of those are learnt from."""
