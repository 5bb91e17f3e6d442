"""Runs `real_trainer`, `real_verl` and `real_queue` in one process under one Ray, since both take seconds to come up.

Prints one line of JSON.

Usage: python under_ray.py MODEL SETTINGS FOLDER: the settings that pages show, as JSON; the folder of a page's files.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import ray
from transformers import AutoTokenizer

PLATFORM = {
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)[:1]]
    ),
    "VERL_USE_EXTERNAL_MODULES": "cpu_platform",
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",  # the name by which verl finds its FSDP engine
    "VERL_FILE_LOGGER_PATH": "metrics.jsonl",
}


def main() -> None:
    """Run all of it."""
    model, shown, folder = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    os.chdir(folder)
    os.environ.update(PLATFORM)  # before anything of verl is imported
    real_trainer: Any = import_module("real_trainer")  # beside this file
    found = {"trainer": real_trainer.trained(model, shown["trainer"])}
    while ray.util.list_named_actors():  # those of the trainer end with it, and the others are to have their names
        time.sleep(0.05)
    real_verl: Any = import_module("real_verl")
    real_queue: Any = import_module("real_queue")
    tokenizer = AutoTokenizer.from_pretrained(model)
    workers = real_verl.Workers(model)
    found["functions"] = real_verl.functions(model, tokenizer, shown["function"], workers)
    found["managers"] = real_verl.managers(model, tokenizer, shown["manager"], workers)
    found["queue"] = real_queue.steps(model, tokenizer, workers)
    ray.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
