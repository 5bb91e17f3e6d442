"""Labelled rows of the corpora, as one sample for every verifier.

What other verifiers ask for beside the response and the reference stands in `Sample.extra`.  Rows of math have an
"answer": what the response says, where that is told apart from its words; a verifier that reads boxes alone gets it
boxed.

Not covered: programs, queries and circuits (`program_rows`), and rows without a label.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.corpora import bare, boxed, last_boxed, rows

from adjudge.protocol import Sample
from adjudge.verifiers.instructions.rows import ifeval_constraints


@dataclass(frozen=True, kw_only=True)
class LabelledRow:
    """A sample whose verdict is known.

    Attributes:
        sample: its `id` names it in its set; `extra` has what other verifiers ask for, and adjudge's "options".
        label: whether the response is right.
        shown: what a reader of the file of differences needs to know of it.
    """

    sample: Sample
    label: bool
    shown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LabelledSet:
    """Rows that are judged together.

    Attributes:
        name: in the table.
        task: which verifiers judge it: a key of `peers.PEERS`.
        labels: who says what is right.
        make: returns all of its rows.
        most: rows that are drawn where nothing else is asked for; 0 for all.
    """

    name: str
    task: str
    labels: str
    make: Callable[[], list[LabelledRow]]
    most: int = 0


def math_row(
    name: str, label: object, gold: str, response: str, answer: str | None, prompt: str = "", **more: Any
) -> LabelledRow:
    """Return a row of math.

    Args:
        name: of the row.
        label: whether the response is right.
        gold: the reference.
        response: as adjudge and others that read whole texts get it.
        answer: what it says; "" where it says nothing, None where that is not told apart from its words.
        prompt: the problem, where the set has it: whether 20% is 20 depends on what was asked.
        more: further entries of `Sample.extra`.
    """
    sample = Sample(prompt=prompt, response=response, reference=gold, id=name, extra={"answer": answer, **more})
    return LabelledRow(
        sample=sample, label=bool(label), shown={"gold": gold, "answer": response[-80:] if answer is None else answer}
    )


def answer_of(text: str) -> str | None:
    """Return what the last box of a text holds; None where there is none."""
    return last_boxed(text) if "\\boxed{" in text else None


def gsm8k() -> list[LabelledRow]:
    """Solutions by four models; the line with their answer is written in the form that a verifier asks for."""
    found = []
    for number, row in enumerate(rows("gsm8k", "model_solutions.jsonl")):
        gold = re.split(r"####|\nA:", row["ground_truth"])[-1].strip()
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            words, _, answer = row[model]["solution"].strip().rpartition("\nA: ")
            text = f"{words}\nThe answer is $\\boxed{{{answer}}}$." if words else answer
            name, label = f"{number} {model}", row[model]["is_correct"]
            hashes = f"{words}\n#### {answer}"
            found.append(
                math_row(name, label, gold, text, answer if words else "", prompt=row["question"], hashes=hashes)
            )
    return found


def processbench_gsm8k() -> list[LabelledRow]:
    """Solutions by people's models whose answer is boxed, beside the golds of GSM8K."""
    golds = {
        " ".join(row["question"].split()): row["answer"].rpartition("#### ")[2] for row in rows("gsm8k", "test.jsonl")
    }
    found = []
    for row in rows("processbench", "gsm8k.json"):
        text = "\n\n".join(row["steps"])
        answer = answer_of(text)
        if answer is not None:
            gold = golds[" ".join(row["problem"].split())]
            hashes = f"{text}\n#### {answer}"
            label, problem = row["final_answer_correct"], row["problem"]
            found.append(math_row(row["id"], label, gold, text, answer, prompt=problem, hashes=hashes))
    return found


def processbench_math() -> list[LabelledRow]:
    """Two solutions of one problem, of which one is wrong: its answer beside that of the right one."""
    found: list[LabelledRow] = []
    right: dict[str, str] = {}
    asked = rows("processbench", "math.json")
    for row in asked:
        answer = answer_of("\n\n".join(row["steps"]))
        if row["final_answer_correct"] and answer is not None:
            right[row["problem"]] = answer
    for row in asked:
        text = "\n\n".join(row["steps"])
        if not row["final_answer_correct"] and row["problem"] in right and (answer := answer_of(text)) is not None:
            problem = row["problem"]
            found.append(math_row(row["id"], False, right[problem], text, answer, prompt=problem))
    return found


def math_responses() -> list[LabelledRow]:
    """Chains of thought on MATH."""
    return [
        math_row(f"{row['idx']} {number}", label, row["gt"], text, answer_of(text) or "", prompt=row["question"])
        for row in rows("math_responses", "math_cot.jsonl")
        for number, (text, label) in enumerate(zip(row["code"], row["score"], strict=True))
    ]


def human_solutions() -> list[LabelledRow]:
    """Solutions that people published with their answers, of AIME and HMMT."""
    found = []
    for name, gold, solution in (
        ("aime24", "answer", "solution"),
        ("comp_math_24_25", "expected_answer", "reference_solution"),
    ):
        for number, row in enumerate(rows("math_golds", f"{name}.jsonl")):
            text = row.get(solution) or ""
            if (answer := answer_of(text)) is not None:
                problem = row.get("problem") or ""
                found.append(math_row(f"{name} {number}", True, str(row[gold]), text, answer, prompt=problem))
    return found


_GOLDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "college_math": lambda row: row["answer"],
    "minerva_math": lambda row: last_boxed(row["solution"]),
    "comp_math_24_25": lambda row: row["expected_answer"],
    "gaokao2023en": lambda row: row["answer"],
    "gaokao_math_cloze": lambda row: row["answer"],
    "cn_middle_school": lambda row: row["answer"],
    "asdiv": lambda row: row["answer"],
    "amc23": lambda row: row["answer"],
}


def _golds(name: str) -> list[str]:
    found = {str(_GOLDS[name](row)).strip() for row in rows("math_golds", f"{name}.jsonl")}
    return sorted(gold for gold in found if gold and bare(gold).count("{") == bare(gold).count("}"))


def golds_themselves() -> list[LabelledRow]:
    """Each gold, boxed, as the answer to itself."""
    return [
        math_row(f"{name} {number}", True, gold, boxed(gold), bare(gold))
        for name in _GOLDS
        for number, gold in enumerate(_golds(name))
    ]


def golds_of_others() -> list[LabelledRow]:
    """Each gold beside the next one of its set in the order of their text, which often differs in one character."""
    found = []
    for name in _GOLDS:
        order = sorted(_golds(name), key=lambda text: re.sub(r"[\s${}\\]", "", text))
        for number, (gold, other) in enumerate(itertools.pairwise(order)):
            if _tidy(gold) != _tidy(other) and gold.rstrip(".") != other.rstrip("."):
                found.append(math_row(f"{name} {number}", False, gold, boxed(other), bare(other)))
    return found


def _tidy(gold: str) -> str:
    """A gold without what is typography, a unit or a noun: of pairs that agree in it, nobody says that they differ."""
    words = re.sub(
        r"\\(?:mathrm|text|mbox) ?\{[^{}]*\}|\([^()\d]*[^\W\d][^()]*\)|(?<![\\\w])[^\W\d_]{2,}", "", bare(gold)
    )
    value = re.sub(r"[\s~${}.,;]|\\[,; !]|\\left|\\right|\\circ|[^=]*=", "", words).casefold()
    return value or gold


def grader_cases() -> list[LabelledRow]:
    """The cases of math-verify's own tests with its usual settings."""
    found = []
    for number, case in enumerate(rows("math_grader_cases", "math_verify_0.9.0_cases.json")):
        if case.get("gold") is None or case.get("strict") is False or case.get("precision", 6) != 6:
            continue
        text = case["pred"]
        whole = re.fullmatch(r"\s*\$([^$]+)\$\s*", text)
        answer = answer_of(text) or (whole[1] if whole else None)
        label = case.get("expected", case.get("result"))
        found.append(math_row(f"{number} {case['_test']}", label, case["gold"], text, answer))
    return found


def red_team(scorer: str) -> list[dict[str, Any]]:
    """Return the cases of a scorer that a red team found."""
    return [{"number": at, **row} for at, row in enumerate(rows("redteam", "cases.jsonl")) if row["scorer"] == scorer]


def red_team_math() -> list[LabelledRow]:
    """What a red team found wrong in an early adjudge."""
    return [
        math_row(
            f"{row['number']} {row['category']}",
            row["should"],
            row["reference"],
            row["response"],
            answer_of(row["response"]),
            prompt=row["prompt"] if isinstance(row["prompt"], str) else "",
        )
        for row in red_team("math")
        if isinstance(row["reference"], str)
    ]


WITHOUT_NLTK_DATA = ("length_constraints:number_sentences", "change_case:capital_word_frequency")
"""Kinds for which IFEval's checker needs models that NLTK downloads."""


def ifeval(mode: str) -> list[LabelledRow]:
    """Responses of nine models to IFEval."""
    asked = {row["key"]: row for row in rows("instructions", "ifeval_prompts.jsonl")}
    found = []
    for row in rows("instructions", "ifeval_responses.jsonl.gz"):
        prompt = asked[row["key"]]
        kinds = [kind.removeprefix("en:") for kind in prompt["instruction_id_list"]]
        if set(kinds) & set(WITHOUT_NLTK_DATA):
            continue
        sample = Sample(
            prompt=prompt["prompt"],
            response=row["response"] or "",
            reference=ifeval_constraints(prompt),
            id=f"{row['model']} {row['key']}",
            extra={"options": {"mode": mode}, "kinds": kinds, "kwargs": prompt["kwargs"]},
        )
        found.append(LabelledRow(sample=sample, label=all(row[mode]), shown={"kinds": ", ".join(kinds)}))
    return found
