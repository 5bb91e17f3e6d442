"""Rows with labels, and few-shot examples, for `benchmarks.real_judges`.

- `solutions`: the shortest GSM8K problems with a model's solution; whether its answer is right;
- `searches`: the same, told as the run of a search agent: what the problem states is what a search returns, each line
  of the solution is a thought, and the last turn answers;
- `pairs`, `groups`: PandaLM's pairs on which three people agree, as a response and its rival, or as a group of two;
- `dialogues`: the shortest pairs of hh-rlhf, both; which one people chose.

Half of the rows have each label.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from adjudge.protocol import Message, Sample

DATA = Path(os.environ.get("ADJUDGE_DATA", ""))
PAGE = "https://example.org/problem"

Rows: TypeAlias = Literal["solutions", "searches", "pairs", "groups", "dialogues"]


def lines(path: Path) -> list[Any]:
    """Return a file of JSON lines."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def samples_of(rows: Rows, *, count: int, reference: str, told: str = "") -> Iterator[tuple[Sample, int]]:
    """Yield samples with their labels: 1 for a right solution or the better response, else 0.

    Args:
        rows: which rows.
        count: how many.
        reference: what a row's reference is, a key of `references_of`.
        told: the form of a solution's answer: "sentence", "boxed", "headings", "tags" or "cited"; "" leaves it so.
    """
    if rows in ("solutions", "searches"):
        yield from _solutions(rows == "searches", count, reference, told)
    elif rows == "dialogues":
        yield from _dialogues(count)
    else:
        yield from _pairs(rows == "groups", count)


def references_of(gold: str, facts: list[str]) -> dict[str, Any]:
    """Return the references that scorers take, by their names, for the answer to a problem."""
    item = f"The final answer is {gold}."
    return {
        "": None,
        "answer": gold,
        "rubric": [item],
        "principle": item,
        "points": {"rubric": [{"criterion": item, "points": 5}]},
        "rating": {"rubric": [{"text": item, "kind": "rating"}]},
        "important": {"rubric": [{"text": item, "importance": "essential"}]},
        "nuggets": {"nuggets": [{"text": item, "importance": "vital"}]},
        "statements": {"rubric": ["<E0> is what the problem asks for"], "answer": gold},
        "facts": {"facts": facts, "answer": gold},
    }


def _solutions(searches: bool, count: int, reference: str, told: str) -> Iterator[tuple[Sample, int]]:
    rows = [(row, row["6b_finetuning"]) for row in lines(DATA / "gsm8k" / "model_solutions.jsonl")]
    rows.sort(key=lambda row: len(row[0]["question"]) + len(row[1]["solution"]))
    if searches:
        rows = [row for row in rows if len(_sentences(row[0]["question"])) > 1]
    for label in (True, False):
        for row, made in [row for row in rows if row[1]["is_correct"] is label][: count // 2]:
            *facts, question = _sentences(row["question"])
            gold, answer = (text.rpartition("A: ")[2].strip() for text in (row["ground_truth"], made["solution"]))
            given = references_of(gold, facts)[reference]
            extra = {"pages": {PAGE: row["question"]}} if told == "cited" else {}
            work = made["solution"].rpartition("A: ")[0].strip()
            if searches:
                run = _run(facts, question, work, answer)
                yield Sample(prompt=question, response=run, reference=given), int(label)
            else:
                response = _told(made["solution"], work, answer)[told]
                yield Sample(prompt=row["question"], response=response, reference=given, extra=extra), int(label)


def _sentences(text: str) -> list[str]:
    return [one.strip() for one in re.split(r"(?<=[.?!])\s+", text) if one.strip()]


def _told(solution: str, work: str, answer: str) -> dict[str, str]:
    sentence = f"The answer is {answer}."
    return {
        "": solution,
        "sentence": f"{work}\n{sentence}",
        "boxed": f"{work}\n\\boxed{{{answer}}}",
        "headings": f"## Thinking\n\n{work}\n\n## Final Response\n\n{sentence}",
        "tags": f"<think>{work}</think>\n<answer>{answer}</answer>",
        "cited": f"{work} [the problem]({PAGE})\n{sentence}",
    }


def _run(facts: list[str], question: str, work: str, answer: str) -> list[Message]:
    found = " ".join(facts)
    ask = f"<think><plan>I ask what is known.</plan></think><search>{question}</search>"
    thoughts = "\n".join(f"<reasoning>{line}</reasoning>" for line in work.splitlines())
    quoted = f"<original_evidence>{found}</original_evidence>"
    return [
        {"role": "assistant", "content": ask},
        {"role": "tool", "name": "search", "content": found},
        {"role": "assistant", "content": f"<think>{thoughts}</think>{quoted}<answer>{answer}</answer>"},
    ]


def _pairs(groups: bool, count: int) -> Iterator[tuple[Sample, int]]:
    pairs = json.loads((DATA / "pandalm" / "testset-v1.json").read_text(encoding="utf-8"))
    said = [(row, {row[f"annotator{at}"] for at in (1, 2, 3)}) for row in pairs]
    agreed = [(row, next(iter(votes))) for row, votes in said if len(votes) == 1 and votes <= {1, 2}]
    agreed.sort(
        key=lambda one: sum(len(str(one[0][key])) for key in ("instruction", "input", "response1", "response2"))
    )
    for number, (row, best) in enumerate(agreed[: count // (2 if groups else 1)]):
        prompt = f"{row['instruction']}\n\n{row['input']}".strip()
        texts = [row["response1"], row["response2"]]
        for place in (0, 1) if groups else (number % 2,):
            other = None if groups else texts[1 - place]
            sample = Sample(prompt=prompt, response=texts[place], reference=other, group=str(row["idx"]))
            yield sample, int(place + 1 == best)


def _dialogues(count: int) -> Iterator[tuple[Sample, int]]:
    rows = lines(DATA / "hh_rlhf" / "harmless-base_test.jsonl.gz")
    for row in sorted(rows, key=lambda row: len(row["chosen"]) + len(row["rejected"]))[: count // 2]:
        for label, text in enumerate((row["rejected"], row["chosen"])):
            said = re.split(r"\n\n(Human|Assistant): ", text)[1:]
            turns: list[Message] = [
                {"role": "user" if who == "Human" else "assistant", "content": what.strip()}
                for who, what in zip(said[::2], said[1::2], strict=True)
            ]
            person = {"persona": f"Somebody who wrote: {turns[0]['content']}"}
            yield Sample(prompt=turns[:1], response=turns[1:], reference=person), label


def shown(template: str) -> list[dict[str, Any]]:
    """Return few-shot examples for a form of prompts: right and wrong answers to four sums."""
    sums = (("2 + 3", "5", "6"), ("3 + 4", "7", "7"), ("6 + 2", "8", "8"), ("5 + 4", "9", "7"))
    made: list[dict[str, Any]] = []
    for sum_, right, said in sums:
        one = _Sum(sum_=sum_, right=right, said=said)
        forms = {**_rated(one), **_itemized(one), **_verified(one), **_compared(one), **_runs(one)}
        examples = _cited(one) if template == "citations" else [forms[template]]
        made += [{**fields, "answer": answer} for fields, answer in examples]
    return made


Example: TypeAlias = tuple[dict[str, Any], str]
VERDICT = "Verdict {nonce}: "


@dataclass(frozen=True, kw_only=True)
class _Sum:
    """A sum, its result, and what somebody said that it is."""

    sum_: str
    right: str
    said: str

    @property
    def question(self) -> str:
        return f"What is {self.sum_}?"

    @property
    def response(self) -> str:
        return f"{self.sum_} = {self.said}, so the answer is {self.said}."

    @property
    def alone(self) -> dict[str, Any]:
        return {"question": self.question, "response": self.response}

    @property
    def given(self) -> dict[str, Any]:
        return {**self.alone, "reference": self.right}

    @property
    def item(self) -> str:
        return f"The final answer is {self.right}."

    @property
    def because(self) -> str:
        return f"The sum is {self.either('right', 'wrong')}."

    def either(self, good: str, bad: str) -> str:
        """Return the word for a right answer, or the one for a wrong one."""
        return good if self.said == self.right else bad


def _rated(one: _Sum) -> dict[str, Example]:
    ten, five, same = one.either("10", "1"), one.either("5", "1"), one.either("same", "different")
    yes = one.either("Yes", "No")
    return {
        "judge": (one.given, f"This is worth {ten}.\n{VERDICT}{ten}"),
        "judge, probabilities": (one.given, ten),
        "mt_bench": (one.given, f"{one.because} Rating: [[{ten}]]"),
        "g_eval": ({**one.given, "steps": "1. Work out the sum. 2. Compare."}, five),
        "prometheus": ({**one.given, "rubric": "Is the final answer right?"}, f"{one.because} [RESULT] {five}"),
        "j1_score": (one.alone, f"{one.because}\n<score>{ten}</score>"),
        "self_rewarding": (one.alone, f"{one.because}\nScore: {five}"),
        "answer_judge": (one.given, f"The answers are {same}.\n{VERDICT}{same}"),
        "answer_judge, probabilities": (one.given, same),
        "compass_verifier": (one.given, f"{one.because} [[{one.either('A', 'B')}]]"),
        "general_reasoner": (one.given, f"Are they the same? {yes}.\nFinal Decision: {yes}"),
        "yes_no": ({"prompt": one.question, "response": one.response}, yes),
        "zyn": ({"response": one.response}, yes),
        "rlbff": ({**one.alone, "principle": one.item}, yes),
    }


def _itemized(one: _Sum) -> dict[str, Example]:
    yes, support, good = one.either("yes", "no"), one.either("support", "not_support"), one.either("good", "bad")
    fields = {**one.alone, "criteria": f"1. {one.item}"}
    return {
        "rubric": (fields, f"Is it met? {yes}.\n{{nonce}} 1: {yes}"),
        "rating": (fields, f"{one.because}\n{{nonce}} 1: {one.either('100', '0')}"),
        "implicit": (fields, f"{one.because}\nRating {{nonce}}: {one.either('10', '1')}"),
        "nuggets": (fields, f"It is {support}.\n{{nonce}} 1: {support}"),
        "principles": ({**one.alone, "principles": f"1. {one.item}"}, f"The writing is {good}.\n{VERDICT}{good}"),
    }


def _verified(one: _Sum) -> dict[str, Example]:
    yes, correct, faulty = one.either("Yes", "No"), one.either("correct", "incorrect"), one.either("none", "1")
    task = {"prompt": one.question, "reference": one.right}
    step = {"role": "step_1", "content": one.response}
    return {
        "genrm": ({**task, "response": one.response}, yes),
        "genrm_cot": ({**task, "response": one.response}, f"{one.because}\n{VERDICT}{yes}"),
        "critic": (
            {"question": one.question, "reference": one.right, "steps": f"1: {one.response}"},
            f"The first wrong step is {faulty}.\nWrong {{nonce}}: {faulty}",
        ),
        "think_prm": (
            {**task, "steps": [step]},
            f"Step 1: It is {correct}. \\boxed{{{correct}}}\nIs the solution correct? {yes}",
        ),
        "gen_prm": ({**task, "step": [step]}, f"The step is {correct}.\n\\boxed{{{yes}}}"),
    }


def _compared(one: _Sum) -> dict[str, Example]:
    best, other, order = one.either("A", "B"), one.either("B", "A"), one.either("1 > 2", "2 > 1")
    right, wrong = f"{one.sum_} = {one.right}.", f"{one.sum_} = {int(one.right) + 2}."
    first, second = one.either(right, wrong), one.either(wrong, right)
    two = {"question": one.question, "response_a": first, "response_b": second}
    listed = {"question": one.question, "response_1": first, "response_2": second}
    turns = [{"role": f"response_{at}", "content": text} for at, text in ((1, first), (2, second))]
    better = f"The better one is {best}."
    return {
        "pairwise_judge": (two, f"{better}\n{VERDICT}{best}"),
        "pairwise_judge, probabilities": (two, best),
        "mt_bench_pair": (two, f"{better} [[{best}]]"),
        "prometheus_pair": ({**two, "rubric": "Which is right?"}, f"{better} [RESULT] {best}"),
        "j1_pair": (two, f"{better}\n<answer>{best}</answer>"),
        "arena_hard": (two, f"It is {one.right}. {better}\n[[{best}>{other}]]"),
        "rm_r1": (two, f"<type>Reasoning</type>\n<solution>{one.right}</solution>\n<answer>[[{best}]]</answer>"),
        "listwise_judge": (listed, f"The best one comes first.\nRanking {{nonce}}: {order}"),
        "deepseek_grm": (
            {"question": one.question, "responses": turns},
            f"Principles: correctness (1.0).\nScores: [{one.either('9, 1', '1, 9')}]",
        ),
    }


def _runs(one: _Sum) -> dict[str, Example]:
    good, task = one.either("good", "bad"), {"question": one.question, "reference": one.right}
    found = f"Somebody counted, and {one.sum_} is {one.right}."
    run = f"turn 1\nagent| <search>{one.question}</search>\ntool| {found}\nturn 2\nagent| {one.response}"
    asks = "1: good or bad\n2: good or bad"
    return {
        "turn_critic": (
            {**task, "trajectory": run, "verdicts": asks},
            f"It searched, then its sum was {good}.\n{{nonce}} 1: good\n{{nonce}} 2: {good}",
        ),
        "atoms": (
            {"question": one.question, "atoms": f"1: [reasoning] {one.sum_} = {one.said}.", "verdicts": "1: 0 to 10"},
            f"{one.because}\n{{nonce}} 1: {one.either('10', '0')}",
        ),
        "search_evidence": (
            {"question": one.question, "evidence": found},
            f"It says that it is {one.right}.\nAnswer {{nonce}}: {one.right}",
        ),
        "simulated_user": (
            {"persona": "A pupil.", "dialogue": f"user: {one.question}\nassistant: {one.response}"},
            f"What they are told is {one.either('right', 'wrong')}.\nChange {{nonce}}: {one.either('5', '-5')}",
        ),
    }


def _cited(one: _Sum) -> list[Example]:
    """One example for each of three questions."""
    yes, page = one.either("yes", "no"), f"page 1: https://example.org/{one.right}\n  {one.sum_} is {one.right}."
    statement = {"statements": f"<E0> is {one.sum_}", "entities": "E0"}
    support = {"statements": f"1. {one.said} is {one.sum_}", "verdicts": "1: yes, the pages support the statement"}
    return [
        ({**one.alone, "correct_answer": one.right}, f"{one.because}\n{VERDICT}{yes}"),
        ({**one.alone, **statement}, json.dumps({"E0": one.said, "key": "{nonce}"})),
        ({"pages": page, **support}, f"{one.because}\n{{nonce}} 1: {yes}"),
    ]
