"""The benchmarks there are, without importing any of them.

Not covered: evaluations that are no benchmarks; `adjudge eval` lists both.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from adjudge.evals.benchmarks.benchmark import Benchmark


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark of the table.

    Attributes:
        home: "module:Class".
        group: heading it is listed under.
        line: what it asks.
    """

    home: str
    group: str
    line: str

    def benchmark_class(self) -> type[Benchmark]:
        """Return the class."""
        module, _, name = self.home.partition(":")
        found: type[Benchmark] = getattr(importlib.import_module(module), name)
        return found


PREFERENCES: Final = "benchmarks of reward models"
JUDGES: Final = "benchmarks of judges"
STEPS: Final = "benchmarks of process reward models"
VERIFIERS: Final = "benchmarks of verifiers"
RATINGS: Final = "benchmarks of ratings"


def _entry(folder: str, module: str, name: str, group: str, line: str) -> Entry:
    return Entry(f"adjudge.evals.{folder}.{module}:{name}", group, line)


def _preferences(module: str, name: str, line: str) -> Entry:
    return _entry("preferences", module, name, PREFERENCES, line)


def _judging(module: str, name: str, line: str) -> Entry:
    return _entry("judging", module, name, JUDGES, line)


def _process(module: str, name: str, line: str) -> Entry:
    return _entry("process", module, name, STEPS, line)


def _verifying(module: str, name: str, line: str) -> Entry:
    return _entry("verifying", module, name, VERIFIERS, line)


def _ratings(module: str, name: str, line: str) -> Entry:
    return _entry("ratings", module, name, RATINGS, line)


BENCHMARKS: Final[Mapping[str, Entry]] = {
    "reward_bench": _preferences("reward_bench", "RewardBench", "RewardBench: pairs in four sections"),
    "reward_bench_2": _preferences("reward_bench_2", "RewardBench2", "RewardBench 2: best of four, and ties"),
    "rm_bench": _preferences("rm_bench", "RmBench", "RM-Bench: right content against better style"),
    "rmb": _preferences("rmb", "Rmb", "RMB: pairs and lists, helpful and harmless"),
    "judge_bench": _preferences("judge_bench", "JudgeBench", "JudgeBench: hard pairs, in both orders"),
    "reward_math": _preferences("reward_math", "RewardMath", "RewardMATH: one right solution among ten"),
    "ppe": _preferences("ppe", "Ppe", "PPE: people's preferences, and best of k by truth"),
    "pairs": _preferences("pairs", "Pairs", "any file of pairs"),
    "lists": _preferences("lists", "Lists", "any file of lists with right responses"),
    "llm_bar": _judging("llm_bar", "LlmBar", "LLMBar: pairs that look better than they are"),
    "panda_lm": _judging("panda_lm", "PandaLm", "PandaLM: agreement with three people"),
    "alpaca_eval": _judging("alpaca_eval", "AlpacaEval", "AlpacaEval: win rates, with length control"),
    "mt_bench": _judging("mt_bench", "MtBench", "MT-Bench: agreement with people"),
    "process_bench": _process("process_bench", "ProcessBench", "ProcessBench: the first wrong step"),
    "prm_bench": _process("prm_bench", "PrmBench", "PRMBench: every wrong step, by kind of mistake"),
    "labels": _verifying("labels", "Labels", "any file of responses that are labelled right or wrong"),
    "gsm8k": _verifying("gsm8k", "Gsm8k", "GSM8K: solutions and their answers"),
    "math": _verifying("math_solutions", "Math", "MATH: solutions and their answers"),
    "human_eval": _verifying("human_eval", "HumanEval", "HumanEval: programs and their tests"),
    "if_eval": _verifying("instructions_followed", "IfEval", "IFEval: instructions that a program checks"),
    "if_bench": _verifying("instructions_followed", "IfBench", "IFBench: the same with new instructions"),
    "verilog_eval": _verifying("verilog_eval", "VerilogEval", "VerilogEval: modules and their references"),
    "bird": _verifying("bird", "Bird", "BIRD: queries and their databases"),
    "verifier_bench": _verifying("verifier_bench", "VerifierBench", "VerifierBench: right, wrong, or not an answer"),
    "verify_bench": _verifying("verify_bench", "VerifyBench", "VerifyBench: is the answer the reference's?"),
    "help_steer": _ratings("help_steer", "HelpSteer", "HelpSteer: attributes that people rated"),
    "ratings": _ratings("ratings", "Ratings", "any file of responses with ratings"),
}
"""Each benchmark by its name in `adjudge eval`, in the order in which it is listed."""
