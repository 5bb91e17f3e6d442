"""Runs `real_verl` and `real_queue` in one process under one Ray, since both take seconds to come up.

Prints one line of JSON.

Usage: python under_ray.py MODEL SETTINGS, which are those that the page for verl shows, as JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

import ray
from transformers import AutoTokenizer

real_verl: Any = import_module("real_verl")  # beside this file
real_queue: Any = import_module("real_queue")


def main() -> None:
    """Run all of it."""
    model, shown = sys.argv[1], json.loads(sys.argv[2])
    tokenizer = AutoTokenizer.from_pretrained(model)
    ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)  # not a cluster that is up here
    try:
        found = {
            "functions": real_verl.functions(model, tokenizer, shown["function"]),
            "managers": real_verl.managers(model, tokenizer, shown["manager"]),
            "queue": real_queue.steps(model, tokenizer),
        }
    finally:
        ray.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
