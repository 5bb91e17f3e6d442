"""Responses in the form that the verifiers of patches ask for."""

from __future__ import annotations


def written(edits: list[tuple[str, str, str]], thought: str) -> str:
    """Return a response with a thought and one block for each edit: path, SEARCH and REPLACE."""
    blocks = (
        f"```python\n### {path}\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n```"
        for path, search, replace in edits
    )
    return f"<think>\n{thought}\n</think>\n<solution>\n" + "\n\n".join(blocks) + "\n</solution>"
