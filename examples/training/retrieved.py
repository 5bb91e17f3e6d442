"""What a search finds by the queries that a model wrote, for the scorer `leret` to judge (LeReT).

    adjudge data sample questions.jsonl queries_0.jsonl --engine ENGINE --rows --n 4 --template "$(cat few_0.txt)"
    python examples/training/retrieved.py passages.jsonl searched.jsonl queries_0.jsonl [queries_1.jsonl ...]
    adjudge label searched.jsonl scores.jsonl --scorer leret --response-column searched --keep-columns

Each line of the passages has a "text", and may have a "title".  The queries of one question, from all files, stand
together, each once; `searched` has the query and the three best passages as turns.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from adjudge.rl_integration.trainer.rollouts.search_tool import SearchTool


def main(passages: str, out: str, *files: str) -> None:
    """Write a row for each query."""
    tool = SearchTool(documents=passages, numbered=True)
    questions: dict[str, dict[str, dict[str, Any]]] = {}
    for file in files:
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            questions.setdefault(row["group"], {}).setdefault(row["response"].strip(), row)
    with open(out, "w", encoding="utf-8") as written:
        for group, queries in questions.items():
            for at, (query, row) in enumerate(queries.items()):
                asked = query.replace("<", " ").replace(">", " ")  # a tag in it would end the search
                turns = [
                    {"role": "assistant", "content": f"<search>{asked}</search>"},
                    {"role": "tool", "content": tool.call({"query": asked}).text},
                ]
                written.write(json.dumps({**row, "id": f"{group}/{at}", "response": query, "searched": turns}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
