"""Supervised fine-tuning by rejection sampling: TRL's SFTTrainer on the answers of a model that a scorer passed.

    adjudge data sample problems.jsonl answers.jsonl --engine vllm:MODEL --n 8
    adjudge label answers.jsonl labels.jsonl --scorer math --keep-columns
    adjudge data filter labels.jsonl kept.jsonl --rule passed --pass-score 1
    python examples/training/sft.py kept.jsonl MODEL --output_dir tuned [flags of trl.SFTConfig]

Several files are joined by commas.  It takes `pip install trl`, which learns from completions alone, not from prompts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


def turns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a labelled row, or one of `adjudge data steps`, in the columns of TRL; name your own columns here."""
    given: dict[str, Any] = {}
    inner: Any = row
    while isinstance(inner, Mapping):  # what was labelled, and then sampled anew, has its newest answer outside
        given = {**inner, **{name: value for name, value in given.items() if value is not None}}
        inner = inner.get("input")
    prompt, answer = given.get("prompt") or given["question"], given["response"]
    asked = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return {
        "prompt": asked,
        "completion": [{"role": "assistant", "content": answer}] if isinstance(answer, str) else answer,
    }


def main(rows: str, model: str, *flags: str) -> None:
    """Train, and save the model."""
    from datasets import concatenate_datasets, load_dataset
    from transformers import HfArgumentParser
    from trl import SFTConfig, SFTTrainer  # type: ignore[attr-defined]  # they are exported when they are asked for

    parser: Any = HfArgumentParser(SFTConfig)  # type: ignore[arg-type]  # a dataclass, whose type is lost with it
    (config,) = parser.parse_args_into_dataclasses(list(flags))
    files = [load_dataset("json", data_files=file, split="train") for file in rows.split(",")]
    kept = concatenate_datasets([file.map(turns, remove_columns=file.column_names) for file in files])
    trainer = SFTTrainer(model=model, args=config, train_dataset=kept)
    trainer.train()
    trainer.save_model(config.output_dir)


if __name__ == "__main__":
    main(*sys.argv[1:])
