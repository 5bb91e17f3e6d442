"""What the pages in docs/frameworks show to be pasted, so that tests run just that.

A framework has a page of its own or a section of `more.md`, which is named by its heading.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parents[2] / "docs" / "frameworks"


def blocks(page: str, beginning: str) -> list[str]:
    """The fenced blocks of a page or section that have a line which begins so."""
    if (path := PAGES / f"{page}.md").is_file():
        text = path.read_text(encoding="utf-8")
    else:
        (text,) = re.findall(
            rf"^## {page}\n(.*?)(?=^## |\Z)", (PAGES / "more.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
    found = re.findall(r"^```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for block in found if any(line.startswith(beginning) for line in block.splitlines())]


def pasted(page: str, place: int = 0, **names: Any) -> dict[str, Any]:
    """Run a block of Python that imports from adjudge, and return the names it has then.

    Args:
        page: the page's name without the ending, or a heading of `more.md`.
        place: which of its blocks.
        names: what the block takes for given, such as a model.
    """
    found = dict(names)
    exec(compile(blocks(page, "from adjudge.")[place], f"{page}.md", "exec"), found)
    return found
