"""Programs run apart: what untrusted code may use, and what came of it."""
