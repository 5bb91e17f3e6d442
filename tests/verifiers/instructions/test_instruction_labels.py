"""The labels that came with IFEval and IFBench, strict and loose, for every constraint of every labelled response.

Disagreements are listed one by one: 13 where the label is wrong, since the checker that made it takes a letter that is
none ("#", "!") for an invitation to draw one, and those where the unseeded language detector drew another language
than most of its draws.  Labels of one response differ since tags hide the ends of its sentences from the published
checker: it is XML, of which a reader sees four sentences where fewer were asked for.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.corpus_parts import in_parts, part

from adjudge.protocol import Sample
from adjudge.verifiers.instructions.conflicts import conflicts
from adjudge.verifiers.instructions.constraint import IFBENCH, KINDS, Constraint, read_constraints
from adjudge.verifiers.instructions.ifeval import IFEVAL
from adjudge.verifiers.instructions.muldimif import muldimif_constraints
from adjudge.verifiers.instructions.rows import ifeval_constraints
from adjudge.verifiers.instructions.verifier import InstructionVerifier

DATA = os.environ.get("ADJUDGE_DATA")
LOOSE = InstructionVerifier(mode="loose")

DRAWN_LETTER = {1122, 1129}
"""Prompts whose "letter" is not a letter."""

DRAWN_LANGUAGE = {
    ("loose", "Qwen__Qwen2.5-7B-Instruct-GPTQ-Int4", 3617),  # names of firms: "vi" 30 times of 30, one form "en" 24
    ("strict", "claude-3-haiku-20240307", 1645),  # five adjectives: "so" 24 times of 30
    ("loose", "claude-3-haiku-20240307", 1645),
    ("loose", "deepseek-ai__deepseek-llm-7b-chat", 1219),  # "PRADA OR NIKE?": "pt" 23 times of 30
    ("loose", "gpt-4o-mini-2024-07-18", 202),  # one word; the strict label of the same text is the other one
    ("loose", "mistralai__Mistral-7B-Instruct-v0.3", 2309),
    ("loose", "mistralai__Mistral-7B-Instruct-v0.3", 3112),  # Latin letters of Gujarati: "fi" 29 times of 30
}


TAGGED_SENTENCES = {(mode, "claude-3-haiku-20240307", 2859) for mode in ("strict", "loose")}
"""XML whose sentences end before a tag."""


@pytest.fixture(scope="module")
def folder() -> Path:
    """The labelled files."""
    if not DATA:
        pytest.skip("ADJUDGE_DATA is not set")
    return Path(DATA) / "instructions"


def rows(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.splitlines()]


def verdicts(prompt: str, response: str, constraints: list[dict[str, Any]]) -> list[tuple[bool, bool]]:
    """Strict and loose verdicts: a form of the response meets a constraint, and it is the response as it is."""
    score = LOOSE.verify(Sample(prompt=prompt, response=response, reference=constraints))
    assert score.status == "scored"
    parts = list(score.parts.values())
    return [(part.value == 1.0 and part.evidence["form"] == "as it is", part.value == 1.0) for part in parts] or [
        (False, False)
    ] * len(constraints)


@in_parts(6)
def test_every_ifeval_label_is_reproduced_but_those_drawn_at_random(folder: Path, every: int) -> None:
    prompts = {row["key"]: row for row in rows(folder / "ifeval_prompts.jsonl")}
    wrong, count, kinds = [], 0, Counter[str]()
    for row in part(rows(folder / "ifeval_responses.jsonl.gz"), every, lambda row: row["key"]):
        asked = prompts[row["key"]]
        constraints = ifeval_constraints(asked)
        found = verdicts(asked["prompt"], row["response"] or "", constraints)
        for one, ours, strict, loose in zip(constraints, found, row["strict"], row["loose"], strict=True):
            kinds[one["kind"]] += 1
            count += 2
            if ours[0] != strict:
                wrong.append(("strict", row["model"], row["key"], one["kind"]))
            if ours[1] != loose:
                wrong.append(("loose", row["model"], row["key"], one["kind"]))
    letters = [one for one in wrong if one[3] == "keywords:letter_frequency"]
    keys, others = {key for _, _, key, _ in letters}, {one[:3] for one in wrong if one not in letters}
    assert set(kinds) == set(IFEVAL)
    assert count >= 15_012 / every
    assert keys <= DRAWN_LETTER
    assert others <= DRAWN_LANGUAGE | TAGGED_SENTENCES
    if every == 1:
        assert (keys, len(letters)) == (DRAWN_LETTER, 13)
        assert others == DRAWN_LANGUAGE | TAGGED_SENTENCES
        assert count == 15_012


def test_every_ifbench_label_is_reproduced_but_that_of_an_imperative(folder: Path) -> None:
    prompts = {row["prompt"].strip(): row for row in rows(folder / "ifbench_prompts.jsonl")}
    wrong, count = [], 0
    for place, mode in enumerate(("strict", "loose")):
        for row in rows(folder / f"ifbench_{mode}.jsonl"):
            asked = prompts.get(row["prompt"].strip())
            if asked is None:  # one prompt of the sample is not among the published ones
                assert row["instruction_id_list"] == ["custom:csv_city"]
                continue
            constraints = ifeval_constraints(asked)
            found = verdicts(asked["prompt"], row["response"], constraints)
            for one, ours, label in zip(constraints, found, row["follow_instruction_list"], strict=True):
                count += 1
                if ours[place] != label:
                    wrong.append((mode, one["kind"], row["response"][:23]))
    # The tagger behind the label takes the imperative "Understand" for a noun.
    assert wrong == [(mode, "words:start_verb", "Understand Galois theor") for mode in ("strict", "loose")]
    assert count == 332


def test_every_published_prompt_has_constraints_of_known_kinds(folder: Path) -> None:
    found: Counter[str] = Counter()
    conflicting = []
    for name in ("ifeval", "ifbench"):
        for row in rows(folder / f"{name}_prompts.jsonl"):
            constraints = read_constraints(ifeval_constraints(row))
            found.update(one.kind for one in constraints)
            if conflicts(constraints):
                conflicting.append(row["key"])
    assert set(found) == set(IFEVAL) | set(IFBENCH)
    assert len(IFEVAL) == 25
    assert len(IFBENCH) == 58
    # Both ask for the prompt word for word, which has commas, and for no commas.
    assert conflicting == [1627, 3718]


def test_muldimif_sentences_are_converted_where_they_are_understood(folder: Path) -> None:
    converted, left, conflicting = Counter[str](), 0, 0
    for row in json.loads((folder / "muldimif_test.json").read_text(encoding="utf-8")):
        found, rest = muldimif_constraints(row)
        assert len(found) + len(rest) == len(row["constraints"])
        constraints = [Constraint.read(one) for one in found]
        converted.update(KINDS[one.kind].group for one in constraints)
        conflicting += bool(conflicts(constraints))
        left += len(rest)
    assert set(converted) == {"content", "format", "language", "length"}
    assert (converted.total(), left, conflicting) == (2215, 1965, 0)
