"""SQL schemas, rows that fill them, and queries with one thing wrong.

The SQL verifier makes databases of them that tell a wrong query from a right one, and pipelines make files.
"""
