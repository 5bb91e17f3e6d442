"""The math verifier: extraction, parsing and three-valued equality of mathematical answers."""
