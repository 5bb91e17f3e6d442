"""Agreement with labelled public corpora; skipped where `ADJUDGE_DATA` is unset."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.corpus_parts import in_parts, part

from adjudge.protocol import Sample
from adjudge.verifiers.text.choice import ChoiceVerifier
from adjudge.verifiers.text.choice_key import LABELS
from adjudge.verifiers.text.choice_shuffle import inverse, permute_choices, shuffle_sample
from adjudge.verifiers.text.numeric import NumericVerifier

DATA = os.environ.get("ADJUDGE_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")


def rows(path: str) -> Iterator[dict[str, Any]]:
    with (Path(DATA or "") / path).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_gsm8k_labels() -> None:
    verifier = NumericVerifier()
    compared = 0
    for row in rows("gsm8k/model_solutions.jsonl"):
        gold = row["ground_truth"].rpartition("A: ")[2]
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            score = verifier.verify(Sample(prompt="", response=row[model]["solution"], reference=gold))
            assert score.value == float(row[model]["is_correct"]), (gold, row[model]["solution"], score)
            compared += 1
    assert compared == 2_640


@in_parts(8)
def test_mmlu_golds_are_right_and_the_other_options_wrong(every: int) -> None:
    verifier = ChoiceVerifier()
    accepted = []
    for row in part(rows("math_golds/mmlu_stem.jsonl"), every, lambda row: row["type"]):
        reference = {"choices": row["choices"], "answer": row["answer"]}
        for at, text in enumerate(row["choices"]):
            forms = ["{0}", "The answer is ({0}).", "{0}. {1}", "Work.\nAnswer: {0}) {1}"]
            if text != row["choices"][row["answer"]]:
                forms.append("{1}")
            for form in forms:
                response = form.format(LABELS[at], text)
                value = verifier.verify(Sample(prompt="", response=response, reference=reference)).value
                if at == row["answer"]:
                    assert value == 1.0, (response, row["choices"])
                elif value:
                    accepted.append((response, row["choices"]))
    # The one: option D is the text "C", and the response "C" is read as the label.
    one = ("C", ["L", "R", "1/C", "C"])
    assert accepted == [one] if every == 1 else accepted in ([], [one])


def test_mmlu_questions_survive_shuffling_and_back() -> None:
    moved = 0
    for at, row in enumerate(list(rows("math_golds/mmlu_stem.jsonl"))[::4]):
        listing = "\n".join(f"{label}. {text}" for label, text in zip(LABELS, row["choices"], strict=False))
        sample = Sample(
            prompt=f"{row['question']}\n{listing}\nAnswer:",
            response="",
            reference={"choices": row["choices"], "answer": row["answer"]},
            id=str(at),
        )
        shuffled, order = shuffle_sample(sample)
        moved += shuffled != sample
        assert permute_choices(shuffled, inverse(order)) == sample
        assert shuffled.reference["choices"][shuffled.reference["answer"]] == row["choices"][row["answer"]]
    assert moved > 600


def test_judgebench_letters_are_never_misread() -> None:
    """The responses end in the chosen letter written five times; that is the truth to compare with."""
    verifier = ChoiceVerifier()
    verdicts: dict[str, int] = {}
    for row in rows("judgebench/dataset=judgebench,response_model=gpt-4o-2024-05-13.jsonl"):
        if not row["source"].startswith("mmlu-pro"):
            continue
        for response in (row["response_A"], row["response_B"]):
            letters = re.findall(r"\b([A-J])\1{4}\b", response)
            if letters:
                once = re.sub(r"\b([A-J])\1{4}\b", r"\1", response)
                score = verifier.verify(Sample(prompt="", response=once, reference=letters[-1]))
                verdicts[score.reason] = verdicts.get(score.reason, 0) + 1
    assert verdicts.get("wrong", 0) == 0
    assert verdicts[""] >= 272
    assert sum(verdicts.values()) == 282
