"""The runs of `golden_training`: small configurations that between them go through most of the trainer.

Each is the run file that a user writes, so what is renamed in the trainer is renamed here in one place.

Not covered: vLLM, calls in chat templates, the SQL and Python tools, and loops around the trainer (`judging`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zlib import crc32

from adjudge.protocol import Sample, Score, StepScore, response_text
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy

_TAGS = ("<search>", "</search>", "<result>", "</result>")
_STEP = 3  # characters of a step


class Digits:
    """The share of an answer's characters that are digits, by steps of three characters."""

    name = "digits"
    fingerprint = "digits:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return a score for each sample."""
        return [self._one(response_text(sample)) for sample in samples]

    def _one(self, text: str) -> Score:
        steps, begin = [], 0
        for line in text.split("\n"):  # a turn each
            for at in range(0, len(line), _STEP):
                part = line[at : at + _STEP]
                steps.append(StepScore(value=_share(part), start=begin + at, end=begin + at + len(part)))
            begin += len(line) + 1
        return replace(Score.scored(_share(text)), steps=tuple(steps))


class Unsure(Digits):
    """Cannot judge some answers, by their text alone."""

    name = "unsure"
    fingerprint = "unsure:1"

    def _one(self, text: str) -> Score:
        return Score.failed("engine_timeout") if crc32(text.encode()) % 8 == 0 else super()._one(text)


class Others(Digits):
    """The share that are not digits: what a guard measures."""

    name = "others"
    fingerprint = "others:1"

    def _one(self, text: str) -> Score:
        return Score.scored(1 - _share(text))


def _share(text: str) -> float:
    return sum(character.isdigit() for character in text) / max(1, len(text))


_DIGITS, _UNSURE, _OTHERS = (f"{__name__}:{kind.__name__}" for kind in (Digits, Unsure, Others))
_SEARCH = {"kind": "search", "options": {"documents": "{folder}/documents.jsonl", "count": 1}}

RUNS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        # Factors in bfloat16, a reference, answers that are one update old, a reward of parts, a new model.
        "grpo_lora": {
            "model": {"from_scratch": "tiny"},
            "reward": {"scorer": {"weighted": {_DIGITS: 1.0, "exact": 0.5}}},
            "objective": {"name": "grpo", "set": {"policy.beta": 0.04}},
            "rollouts": {"staleness": 1},
            "learning": {"lora": 4, "precision": "bf16", "minibatches": 2, "warmup_steps": 3, "decay": "cosine"},
            "eval_steps": 5,
            "guard": {"gold": _OTHERS, "every": 2, "surely": 1e9},
        },
        # A critic with GAE, a divergence in the reward, rewards of steps, several epochs, answers that are drawn anew.
        "ppo": {
            "objective": "ppo",
            "learning": {
                "epochs": 2,
                "minibatches": 2,
                "gradient_checkpointing": True,
                "weight_decay": 0.1,
                "decay": "linear",
            },
            "credit": "pure",
            "curriculum": "pf_ppo",
        },
        # Ratios of sequences, asymmetric clipping, dynamic sampling, a curriculum, more answers to hard tasks, hints.
        "dapo_hints": {
            "objective": {"name": "dapo", "set": {"policy.level": "sequence"}},
            "rollouts": {"max_num_gen_batches": 2},
            "learning": {"minibatches": 2},
            "curriculum": {"names": ["mopps", "dars"], "set": {"dars.totals": [8, 6]}},
            "improver": {"name": "ghpo", "set": {"learnt_with": "plain"}},
        },
        # Tools, turns beside turns in the same state, weights of tokens, sources of tasks, answers without a score.
        "tools": {
            "reward": _UNSURE,
            "objective": {"name": "steer", "set": {"policy.entropy_coef": 0.01}},
            "rollouts": {
                "tools": {"offered": [_SEARCH], "style": "tags", "max_turns": 3},
                "sampling": {"max_new_tokens": 64},
            },
            "credit": {"name": "gigpo", "set": {"rule.rewards": "steps"}},
            "curriculum": "sec",
        },
        # Two processes, trees of answers and their credit, whole sequences, and a filter.
        "two_processes": {
            "processes": 2,
            "objective": {"name": "rloo", "set": {"policy.clip_ratio_high": 0.3}},
            "rollouts": {"staleness": 1, "num_generations": 5, "tree": {"kind": "uncertain"}},
            "credit": "tree_rl",
            "curriculum": "zero_variance",
            "eval_steps": 10,
        },
        # Pairs of answers, tasks that stay together, and a filter that remembers.
        "pairs": {
            "data": {"cohort": "cohort"},
            "objective": "rpo",
            "learning": {"max_grad_norm": 0.0},
            "curriculum": "rlpr",
        },
        # Values in the policy's own logits, expected pass rates, and answers that are criticised and written again.
        "rover": {"objective": "rover", "curriculum": "pcl", "improver": "critique_grpo"},
    }
)


def run_file(name: str, folder: Path, *, steps: int) -> tuple[dict[str, Any], int]:
    """Write what a run reads into a folder; return its run file, and how many processes it has."""
    policy = tiny_policy("0123456789+=abc ", words=_TAGS, seed=0, width=16, layers=2, window=512)
    policy.save(folder / "model")
    rows = [
        {
            "prompt": f"{first}+{second}=",
            "answer": str(first + second),
            "solution": f"{first}+{second}={first + second}",
            "source": "easy" if first + second < 8 else "hard",
            "cohort": f"{first},{second // 2}",
        }
        for first in range(6)
        for second in range(6)
    ]
    documents = [{"title": str(n), "text": f"{n % 3} {n % 4} {n * n}"} for n in range(12)]
    for file, lines in (("sums.jsonl", rows), ("documents.jsonl", documents)):
        (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    own = json.loads(json.dumps(RUNS[name]).replace("{folder}", str(folder)))
    processes = own.pop("processes", 1)
    common = {
        "model": {"name": str(folder / "model")},
        "reward": _DIGITS,
        "save_steps": steps,
        "steps": steps,
        "output": str(folder / "run"),
    }
    parts: dict[str, dict[str, Any]] = {
        "data": {"path": str(folder / "sums.jsonl"), "held_out": 0.2, "extra": ["solution", "source"]},
        "rollouts": {"tasks": 4, "num_generations": 4, "sampling": {"max_new_tokens": 10}},
        "learning": {"learning_rate": 1e-2},
    }
    return {**common, **own, **{part: {**given, **own.get(part, {})} for part, given in parts.items()}}, processes
