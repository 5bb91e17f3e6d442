"""Public corpora as preference pairs and as ratings, for the baselines.

Reads the folder that ADJUDGE_DATA names.  Groups are prompts: what shares a group is never on both sides of a split.

Not covered: training files of users (`adjudge.reward_models.training` has readers), and corpora that are not there.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adjudge.training.data_files import parse_preferences
from adjudge.training.examples import Pair, Rating, opening

GSM8K_MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
_CELLS = {-1: "hard", 0: "normal", 1: "easy"}
_ANSWER_MARK = re.compile(r"#+ Answer\s*")


@dataclass(frozen=True, kw_only=True)
class PreferenceSet:
    """One corpus.

    Attributes:
        name: short name.
        pairs: held-out accuracy is the share of them whose chosen side gets the higher score.
        ratings: single responses, right (1) or wrong (0); more to learn from, or all there is.
        cells: `Pair.source` names the cell of a pair, and cells are reported one by one.
    """

    name: str
    pairs: tuple[Pair, ...] = ()
    ratings: tuple[Rating, ...] = ()
    cells: bool = False


def load(name: str) -> PreferenceSet:
    """Return a corpus by name; the program ends with a message where it is not there."""
    return SETS[name]()


def rows(path: str) -> list[dict[str, Any]]:
    """Return the rows of a file: .json, .jsonl or .jsonl.gz."""
    data = os.environ.get("ADJUDGE_DATA")
    if not data:
        sys.exit("ADJUDGE_DATA is not set: point it to the folder of corpora that holds hh_rlhf, rmb, gsm8k, ...")
    file = Path(data) / path
    text = gzip.decompress(file.read_bytes()).decode() if path.endswith(".gz") else file.read_text(encoding="utf-8")
    found: list[dict[str, Any]] = (
        json.loads(text) if path.endswith(".json") else [json.loads(line) for line in text.split("\n") if line]
    )
    return found


def hh_rlhf() -> PreferenceSet:
    """Return the harmless pairs whose last turns alone differ; the opening of the conversation is the group."""
    found = parse_preferences(rows("hh_rlhf/harmless-base_test.jsonl.gz")).examples
    pairs = [replace(pair, group=opening(pair.prompt)) for pair in found if isinstance(pair, Pair)]
    return PreferenceSet(name="hh_rlhf", pairs=tuple(pair for pair in pairs if pair.chosen and pair.rejected))


def rmb() -> PreferenceSet:
    """Return the pairs of RMB; the conversation is the group, "Helpfulness" or "Harmlessness" the source."""
    pairs = []
    for row in rows("rmb/pairwise.jsonl.gz"):
        turns = [{"role": turn["role"], "content": turn["content"]} for turn in row["conversation_input"]]
        chosen, rejected = row["chosen"]["answer"].strip(), row["reject"]["answer"].strip()  # blanks name the model
        if chosen and rejected and chosen != rejected:
            group = "\n".join(turn["content"] for turn in turns)
            source = row["category_path"].split("/")[1]
            pairs.append(Pair(prompt=turns, chosen=chosen, rejected=rejected, group=group, source=source))
    return PreferenceSet(name="rmb", pairs=tuple(pairs), cells=True)


def rm_bench() -> PreferenceSet:
    """Return nine pairs for each prompt of RM-Bench: three styles of the better answer against three of the worse.

    Easy: the better one has the richer style; normal: both have one style; hard: the worse one has the richer style.
    """
    pairs = []
    for domain in ("chat", "code"):
        for row in rows(f"rm_bench/{domain}_filtered.json"):
            for (i, chosen), (j, rejected) in itertools.product(enumerate(row["chosen"]), enumerate(row["rejected"])):
                if chosen != rejected:
                    cell = _CELLS[(i > j) - (i < j)]
                    prompt = row["prompt"]
                    source = f"{domain} {cell}"
                    pairs.append(Pair(prompt=prompt, chosen=chosen, rejected=rejected, group=prompt, source=source))
    return PreferenceSet(name="rm_bench", pairs=tuple(pairs), cells=True)


def gsm8k() -> PreferenceSet:
    """Return model solutions of GSM8K: each right one against each wrong one of its problem, and all as ratings."""
    pairs, ratings = [], []
    for row in rows("gsm8k/model_solutions.jsonl"):
        question = row["question"]
        solved = {row[model]["solution"]: row[model]["is_correct"] for model in GSM8K_MODELS}
        ratings += [
            Rating(prompt=question, response=text, values=(float(right),), group=question)
            for text, right in solved.items()
        ]
        pairs += [
            Pair(prompt=question, chosen=one, rejected=other, group=question)
            for one, other in itertools.product(solved, solved)
            if solved[one] and not solved[other]
        ]
    return PreferenceSet(name="gsm8k", pairs=tuple(pairs), ratings=tuple(ratings))


def processbench() -> PreferenceSet:
    """Return the solutions of ProcessBench as ratings: right if no step is wrong.  Hardly a problem has two."""
    ratings = []
    for part in ("gsm8k", "math"):
        for row in rows(f"processbench/{part}.json"):
            text = "\n\n".join(row["steps"])
            right = float(row["label"] == -1)
            ratings.append(
                Rating(prompt=row["problem"], response=text, values=(right,), group=row["problem"], source=part)
            )
    return PreferenceSet(name="processbench", ratings=tuple(ratings), cells=True)


def prmbench() -> PreferenceSet:
    """Return solutions of PRMBench against the same with an error written in; the kind of error is the source.

    Left out: rows whose question was changed, rows without an error, and the heading "# Answer", which 459 of the
    originals have and 348 of the changed ones: it tells the sides apart without a look at the mathematics.
    """
    pairs = []
    for row in rows("prmbench/prmbench.jsonl.gz"):
        question = row["original_question"]
        good, bad = (_process(row[f"{which}_process"]) for which in ("original", "modified"))
        if row["error_steps"] and row["modified_question"] == question and good != bad:
            source = row["classification"]
            pairs.append(Pair(prompt=question, chosen=good, rejected=bad, group=question, source=source))
    return PreferenceSet(name="prmbench", pairs=tuple(pairs), cells=True)


def _process(steps: Sequence[str]) -> str:
    kept = [_ANSWER_MARK.sub("", step).strip() for step in steps]
    return "\n\n".join(step for step in kept if step)


SETS: Mapping[str, Callable[[], PreferenceSet]] = {
    "hh_rlhf": hh_rlhf,
    "rmb": rmb,
    "rm_bench": rm_bench,
    "gsm8k": gsm8k,
    "processbench": processbench,
    "prmbench": prmbench,
}
