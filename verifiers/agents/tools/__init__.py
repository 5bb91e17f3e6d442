"""Tool calls: what was called and with what, what came of it, and what turns of sampled trees are worth."""
