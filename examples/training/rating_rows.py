"""A judge's own tasks: the prompts in which `judge` has answers rated, with every rating that it could read (MAE).

    python examples/training/rating_rows.py answers.jsonl ratings.jsonl

A row has `response` and `question`, or `prompt`.  `{exact: {where: last_line}}` pays 1 for a rating that can be read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from adjudge.prompts.template import load_template

ANSWERS = "a whole number from 1 (worst) to 10 (best)"  # as the judge says it


def main(answers: str, out: str) -> None:
    """Write the rows."""
    template, lines = load_template("judges/pointwise"), []
    for line in Path(answers).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        values = {"question": row.get("question", row.get("prompt")), "response": row["response"]}
        asked = template.render({**values, "answers": ANSWERS})
        said = [template.form.format(nonce=asked.nonce, answer=number) for number in range(1, 11)]
        task = {"prompt": asked.messages, "reference": said, "kind": "judge"}
        lines.append(json.dumps(task, ensure_ascii=False) + "\n")
    Path(out).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
