"""The harness's own evaluation of a task whose answers our scorer judges; prints what came out as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

harness: Any = import_module("lm_eval")
LM: Any = import_module("lm_eval.api.model").LM
TaskManager: Any = import_module("lm_eval.tasks").TaskManager

ROWS = [("1+1?", "2", "\\boxed{2}"), ("2+1?", "3", "\\boxed{4}"), ("3+1?", "\\frac{1}{", "\\boxed{4}")]
UTILS = """from adjudge.lm_eval import LmEvalReward

judged = LmEvalReward("math", reference="answer", prompt="question")
process_results, mean_scored = judged.process_results, judged.mean_scored
"""


class Scripted(LM):  # type: ignore[misc]
    """Says what is written down."""

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        """Return the answer to each question."""
        said = {asked: answer for asked, _, answer in ROWS}
        return [said[request.args[0]] for request in requests]

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
        """Not asked for."""
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def main() -> None:
    """Evaluate."""
    folder = Path(sys.argv[1])
    shutil.copy(Path(__file__).with_name("task.yaml"), folder)
    (folder / "utils.py").write_text(UTILS, encoding="utf-8")
    rows = [{"question": asked, "answer": gold} for asked, gold, _ in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    os.chdir(folder)
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found = harness.simple_evaluate(Scripted(), tasks=["adjudged"], task_manager=manager, bootstrap_iters=0)
    result = found["results"]["adjudged"]
    print(json.dumps({"version": version("lm-eval"), **{name.split(",")[0]: value for name, value in result.items()}}))


if __name__ == "__main__":
    main()
