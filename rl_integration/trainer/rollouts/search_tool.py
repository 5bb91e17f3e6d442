"""A tool that searches texts in a file, ranked by BM25 (`adjudge.io.passages`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.io.passages import Passages
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, one_text


@dataclass(frozen=True, kw_only=True)
class SearchTool(Passages, what="search tool option"):
    """Finds texts by their words.

    Attributes:
        name: what it is called by.
    """

    name: str = "search"

    description = "Search a collection of texts. The best matches are returned."
    parameters = one_text("query", "words to look for")

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Answer a query."""
        found = self.found(arguments["query"])
        return ToolAnswer(text=found) if found else ToolAnswer(text="error: the query has no words", ok=False)
