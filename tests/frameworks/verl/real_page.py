"""verl with what the page for users who start with RL shows: its file of rows, its settings, its reward.

verl's own data set reads the file, its agent loop answers with a scripted model, its reward workers score.  Prints one
line of JSON.

Usage: python real_page.py MODEL SETTINGS FOLDER, the settings as JSON, in a folder with the page's files.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from importlib import import_module
from typing import Any

import ray
from transformers import AutoTokenizer

real: Any = import_module("real_verl")  # beside this file, and run as a script
datasets: Any = import_module("verl.utils.dataset.rl_dataset")

ROOM = ("data.max_prompt_length=256", "data.max_response_length=256")


class Expert:
    """Answers each prompt of the page rightly and in form, in place of a model; the last sum wrongly."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    async def generate(self, request_id: str, *, prompt_ids: list[int], **more: Any) -> Any:
        """Return the ids of the answer, with the end token."""
        asked = self._tokenizer.decode(prompt_ids)
        box, times = re.search(r"A box holds (\d+) pens", asked), re.search(r"prints it times (\d+)\?", asked)
        if box:
            said = str(3 * int(box[1]) + (box[1] == "9"))
        else:
            assert times is not None, asked
            said = f"```python\nprint(int(input()) * {times[1]})\n```"
        text = f"<think>\nEasily.\n</think>\n<answer>\n{said}\n</answer>"
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        return real.TokenOutput(token_ids=[*ids, self._tokenizer.eos_token_id])


def main() -> None:
    """Read the rows, answer them, have them scored."""
    model, settings, folder = sys.argv[1:]
    os.chdir(folder)
    tokenizer = AutoTokenizer.from_pretrained(model)
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)  # not a cluster that is up here
    try:
        config = real.configured(model, *json.loads(settings)["function"], *ROOM)
        rows = datasets.RLHFDataset(data_files=config.data.train_files, tokenizer=tokenizer, config=config.data)
        batch = real.DataProto.from_single_dict(datasets.collate_fn([rows[place] for place in range(len(rows))]))
        loop = real.loops.RewardLoopManager(config)
        handles = loop.reward_loop_worker_handles
        worker = real.agents.AgentLoopWorker(config, Expert(tokenizer), reward_loop_worker_handles=handles)
        found = real.seen(asyncio.run(worker.generate_sequences(batch)))
    finally:
        ray.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
