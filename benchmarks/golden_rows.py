"""The rows of `benchmarks.golden_replay`: every scorer that runs offline, on the corpora and on the attack suites.

A source is a name, a judge and its samples.  Samples are told apart by what they hold, so a row that is added or
taken away moves no other.  `benchmarks.verifier_rows` gives what has no corpus, with scripted models for scorers that
ask one.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.verifier_rows import corpus, lines
from benchmarks.verifiers import ALL

from adjudge.protocol import Sample, Scorer, Verifier
from adjudge.scoring import registry
from adjudge.scoring.attacks import AttackCase, shipped_cases

_ALL = 1_000_000
_GOLDS = {
    "aime24": "answer", "amc23": "answer", "asdiv": "answer", "cmath": "answer", "cn_middle_school": "answer",
    "college_math": "answer", "comp_math_24_25": "expected_answer", "gaokao2023en": "answer",
    "gaokao2024_mix": "answer", "gaokao_math_cloze": "answer", "mawps": "target", "svamp": "Answer",
}  # fmt: skip
_GSM8K_MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


class Source(NamedTuple):
    """Samples and who judges them."""

    name: str
    judge: Callable[[], Verifier | Scorer]
    samples: Callable[[], list[Sample]]


def sources(folder: Path) -> Iterator[Source]:
    """Yield all sources; `folder` takes the files that attack cases need."""
    yield from _corpora()
    for row in ALL:
        yield Source(f"row {row.name}", row.judge, row.make)
    yield from _suites(folder)


def _corpora() -> Iterator[Source]:
    """Yield the corpora that `ADJUDGE_DATA` has."""
    named = registry.resolve
    for scorer in ("math", "numeric"):
        yield Source(f"gsm8k {scorer}", named(scorer), _gsm8k)
    yield Source("math golds", named("math"), _golds)
    yield Source("math grader cases", named("math"), _grader_cases)
    yield Source("choice mmlu", named("choice"), _mmlu)
    yield Source("humaneval candidates", named("code"), _humaneval)
    yield Source("mbpp solutions", named("code"), _mbpp)
    for mode in ("strict", "loose"):
        yield Source(f"ifeval {mode}", functools.partial(named("instructions"), mode=mode), _ifeval)
    for scorer in ("length", "repetition"):
        options = {"kind": "linear", "unit": "words", "max_length": 200} if scorer == "length" else {}
        yield Source(f"ifeval {scorer}", functools.partial(named(scorer), **options), _ifeval)
    yield from _red_team()


def _suites(folder: Path) -> Iterator[Source]:
    """Yield each attack suite, in parts that share their options."""
    for name in sorted(registry.names()):
        try:
            shipper: Any = registry.resolve(name)()
            made = shipped_cases(shipper, _new(folder, name))
        except (TypeError, ValueError, ImportError):
            continue  # it cannot be made without options
        by_options: dict[str, list[AttackCase]] = {}
        for case in made:
            by_options.setdefault(json.dumps(dict(case.options), sort_keys=True, default=repr), []).append(case)
        for options, cases in by_options.items():
            judge: Any = functools.partial(dataclasses.replace, shipper, **cases[0].options)
            title = f"suite {name}" + (f" {options}" if cases[0].options else "")
            yield Source(title, judge, functools.partial(_samples_of, cases))


def _samples_of(cases: list[AttackCase]) -> list[Sample]:
    return [case.sample for case in cases]


def _new(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(exist_ok=True)
    return made


def _rows(*parts: str) -> list[dict[str, Any]]:
    path = corpus(*parts)
    return lines(path, _ALL) if path is not None else []


def _gsm8k() -> list[Sample]:
    return [
        Sample(
            prompt=row["question"], response=row[model]["solution"], reference=row["ground_truth"].rpartition("A: ")[2]
        )
        for row in _rows("gsm8k", "model_solutions.jsonl")
        for model in _GSM8K_MODELS
    ]


def _golds() -> list[Sample]:
    """Each gold against itself, and against the next one of its file."""
    made = []
    for name, column in _GOLDS.items():
        golds = [str(row[column]) for row in _rows("math_golds", f"{name}.jsonl")]
        for gold, following in itertools.pairwise([*golds, *golds[:1]]):
            made.append(Sample(prompt="", response=f"So it is \\boxed{{{gold}}}.", reference=gold))
            made.append(Sample(prompt="", response=f"The answer is ${following}$.", reference=gold))
    return made


def _grader_cases() -> list[Sample]:
    path = corpus("math_grader_cases", "math_verify_0.9.0_cases.json")
    rows = json.loads(path.read_text(encoding="utf-8")) if path is not None else []
    return [Sample(prompt="", response=row["pred"], reference=row["gold"]) for row in rows if "gold" in row]


def _mmlu() -> list[Sample]:
    forms = ("The answer is ({0}).", "{1}")
    return [
        Sample(
            prompt=row["question"],
            response=form.format("ABCD"[at], text),
            reference={"choices": row["choices"], "answer": row["answer"]},
        )
        for row in _rows("math_golds", "mmlu_stem.jsonl")[:1000]
        for at, text in enumerate(row["choices"])
        for form in forms
    ]


def _program(prompt: str, program: str, test: str, entry_point: str) -> Sample:
    reference = {"tests": test, "style": "humaneval", "entry_point": entry_point}
    return Sample(prompt=prompt, response=f"```python\n{program}\n```", reference=reference)


def _humaneval() -> list[Sample]:
    problems = {row["task_id"]: row for row in _rows("code", "HumanEval.jsonl.gz")}
    return [
        _program(problem["prompt"], row["program"], problem["test"], row["entry_point"])
        for row in _rows("code", "humaneval_candidates.jsonl.gz")
        for problem in [problems[row["task_id"]]]
        if row["label"] != "timeout"
    ]


def _mbpp() -> list[Sample]:
    return [
        _program(row["prompt"], row["prompt"] + row["canonical_solution"], row["test"], row["entry_point"])
        for row in _rows("code", "mbpp_sanitized.jsonl")
    ]


def _ifeval() -> list[Sample]:
    from adjudge.verifiers.instructions.rows import ifeval_constraints

    asked = {row["key"]: row for row in _rows("instructions", "ifeval_prompts.jsonl")}
    return [
        Sample(
            prompt=asked[row["key"]]["prompt"],
            response=row["response"] or "",
            reference=ifeval_constraints(asked[row["key"]]),
        )
        for row in _rows("instructions", "ifeval_responses.jsonl.gz")
    ]


def _red_team() -> Iterator[Source]:
    """Yield the cases of the red team but for those on databases, which name a file of their own."""
    by_judge: dict[tuple[str, str], list[Sample]] = {}
    for row in _rows("redteam", "cases.jsonl"):
        if row["scorer"] != "sql":
            key = row["scorer"], json.dumps(row["options"], sort_keys=True)
            sample = Sample(prompt=row["prompt"], response=row["response"], reference=row["reference"])
            by_judge.setdefault(key, []).append(sample)
    for (scorer, options), samples in by_judge.items():
        judge = functools.partial(registry.resolve(scorer), **json.loads(options))
        yield Source(f"redteam {scorer} {options}", judge, samples.copy)
