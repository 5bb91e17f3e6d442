"""Tasks of the next try, from runs that were debugged: the task, the failed run and what went wrong in it (AgentDebug).

    python examples/training/retry_rows.py debugged.jsonl RUN/again.jsonl

The prompts are those of `data_pipelines/answers/retry`, as a user's turn; `task` keeps the task for the tries after it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from adjudge.io.columns import labelled_row
from adjudge.prompts.template import load_template


def asked(prompt: Any) -> Any:
    """Return a task without what the system says, which the run says anew; as a text, if it is one turn."""
    if isinstance(prompt, str):
        return prompt
    turns = [turn for turn in prompt if turn["role"] != "system"]
    return turns[0]["content"] if len(turns) == 1 else turns


def main(debugged: str, out: str) -> None:
    """Write the rows."""
    template, lines = load_template("data_pipelines/answers/retry"), []
    for line in Path(debugged).read_text(encoding="utf-8").splitlines():
        score = json.loads(line)
        row = dict(labelled_row(score) or {})
        task = row.get("task") or asked(row["prompt"])
        fields = {"question": task, "response": row["response"], "evidence.text": score["evidence"].get("text", "")}
        prompt = "\n\n".join(str(turn["content"]) for turn in template.render(fields).messages)
        row = {name: value for name, value in row.items() if name not in ("response", "score")}
        lines.append(json.dumps({**row, "prompt": prompt, "task": task}, ensure_ascii=False) + "\n")
    Path(out).write_text("".join(dict.fromkeys(lines)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
