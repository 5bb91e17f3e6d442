"""The benchmarks there are, without importing any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """One benchmark: where its class is, "module:Class", the heading it stands under, and what it does."""

    home: str
    group: str
    line: str


PREFERENCES: Final = "benchmarks of reward models"
JUDGES: Final = "benchmarks of judges"
STEPS: Final = "benchmarks of process reward models"
VERIFIERS: Final = "benchmarks of verifiers"
RATINGS: Final = "benchmarks of ratings"


def _entry(group: str, module: str, name: str, line: str) -> Entry:
    return Entry(f"adjudge.evals.benchmarks.{module}:{name}", group, line)


BENCHMARKS: Final[Mapping[str, Entry]] = {
    "reward_bench": _entry(PREFERENCES, "reward_bench", "RewardBench", "RewardBench: pairs in four sections"),
    "reward_bench_2": _entry(PREFERENCES, "reward_bench", "RewardBench2", "RewardBench 2: best of four, and ties"),
    "rm_bench": _entry(PREFERENCES, "rm_bench", "RmBench", "RM-Bench: right content against better style"),
    "rmb": _entry(PREFERENCES, "rm_bench", "Rmb", "RMB: pairs and lists, helpful and harmless"),
    "judge_bench": _entry(PREFERENCES, "two_orders", "JudgeBench", "JudgeBench: hard pairs, in both orders"),
    "reward_math": _entry(PREFERENCES, "reward_math", "RewardMath", "RewardMATH: one right solution among ten"),
    "ppe": _entry(PREFERENCES, "ppe", "Ppe", "PPE: people's preferences, and best of k by truth"),
    "pairs": _entry(PREFERENCES, "pairs", "Pairs", "any file of pairs"),
    "lists": _entry(PREFERENCES, "pairs", "Lists", "any file of lists with right responses"),
    "llm_bar": _entry(JUDGES, "two_orders", "LlmBar", "LLMBar: pairs that look better than they are"),
    "panda_lm": _entry(JUDGES, "people", "PandaLm", "PandaLM: agreement with three people"),
    "alpaca_eval": _entry(JUDGES, "alpaca_eval", "AlpacaEval", "AlpacaEval: win rates, with length control"),
    "mt_bench": _entry(JUDGES, "people", "MtBench", "MT-Bench: agreement with people"),
    "process_bench": _entry(STEPS, "process_bench", "ProcessBench", "ProcessBench: the first wrong step"),
    "prm_bench": _entry(STEPS, "prm_bench", "PrmBench", "PRMBench: every wrong step, by kind of mistake"),
    "labels": _entry(VERIFIERS, "labels", "Labels", "any file of responses that are labelled right or wrong"),
    "gsm8k": _entry(VERIFIERS, "answers", "Gsm8k", "GSM8K: solutions and their answers"),
    "math": _entry(VERIFIERS, "answers", "Math", "MATH: solutions and their answers"),
    "human_eval": _entry(VERIFIERS, "programs", "HumanEval", "HumanEval: programs and their tests"),
    "if_eval": _entry(VERIFIERS, "answers", "IfEval", "IFEval: instructions that a program checks"),
    "if_bench": _entry(VERIFIERS, "answers", "IfBench", "IFBench: the same with new instructions"),
    "verilog_eval": _entry(VERIFIERS, "programs", "VerilogEval", "VerilogEval: modules and their references"),
    "bird": _entry(VERIFIERS, "programs", "Bird", "BIRD: queries and their databases"),
    "verifier_bench": _entry(VERIFIERS, "answers", "VerifierBench", "VerifierBench: right, wrong, or not an answer"),
    "verify_bench": _entry(VERIFIERS, "answers", "VerifyBench", "VerifyBench: is the answer the reference's?"),
    "help_steer": _entry(RATINGS, "help_steer", "HelpSteer", "HelpSteer: attributes that people rated"),
    "ratings": _entry(RATINGS, "ratings", "Ratings", "any file of responses with ratings"),
}
"""Each benchmark by its name in `adjudge eval`, in the order in which it is listed."""
