"""Credit within a response: from rewards of steps, turns and trees of responses to advantages of tokens."""
