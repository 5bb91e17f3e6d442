"""What the pages in docs/frameworks show to be pasted, so that tests run just that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parents[2] / "docs" / "frameworks"


def blocks(page: str, beginning: str) -> list[str]:
    """The fenced blocks of a page that have a line which begins so."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for block in found if any(line.startswith(beginning) for line in block.splitlines())]


def pasted(page: str, place: int = 0, **names: Any) -> dict[str, Any]:
    """Run a block of Python that imports from adjudge, and return the names it has then.

    Args:
        page: the page's name, without the ending.
        place: which of its blocks.
        names: what the block takes for given, such as a model.
    """
    found = dict(names)
    exec(compile(blocks(page, "from adjudge.")[place], f"{page}.md", "exec"), found)
    return found
