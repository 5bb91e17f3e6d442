"""What scorers that ask a model for a verdict make of a small one that was really trained, SmolLM2-135M-Instruct.

Each scorer gets the shortest rows of a public corpus with labels, half of each label: solutions of GSM8K problems that
are right or wrong, and PandaLM's pairs on which three people agree.  Every verdict is taken, however unlikely
(`forced_mass: 0`, `min_mass: 0`), and its evidence says which would have counted:

- `free`: the share of rows whose verdict stands in the model's own text;
- `counted`: with the default `forced_mass` and `min_mass` of 0.5, so verdicts that the model was about to give anyway;
- `read`: all that have a number, however little mass the verdicts have;
- `mass`: the median probability of all declared verdicts together, where it was asked for;
- `agreement`: how likely the right solution, or the better response, has the higher score, ties as a half; 0.5 is
  chance.  With a bootstrap interval over rows (95 %);
- `consistent`: pairs whose verdict is the same in both orders.

Scores are kept in a file, so that pieces of a few minutes make one table.

Not covered: scorers that read no verdict (`reward_model`, `process_reward`, `implicit_reward`, `reference_probability`,
`information_gain`), and those of trajectories, for which there is no public corpus with labels.

    ADJUDGE_DATA=... python -m benchmarks.real_judges --scorers judge yes_no --output scores.jsonl
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from adjudge.protocol import Sample, Score
from adjudge.scoring import registry
from adjudge.statistics.bootstrap import weighted_bootstrap
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.ranks import auroc_of

DATA = Path(os.environ.get("ADJUDGE_DATA", ""))
RIGHT = "The final answer of the response is correct."
FREE: Mapping[str, Any] = {"forced_mass": 0.0}
READ: Mapping[str, Any] = {"forced_mass": 0.0, "min_mass": 0.0}
PROBABILITIES: Mapping[str, Any] = {**READ, "readout": "probabilities"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A scorer, its options, and which rows it gets with which reference.

    Attributes:
        spec: the scorer's name.
        options: its options but for the engine.
        pairs: whether it compares; then a row is two samples, or one with the other response as its reference.
        reference: what a row's reference is: "answer", "rubric", "other", "group" or "".
    """

    spec: str
    options: Mapping[str, Any]
    pairs: bool = False
    reference: str = ""


ASKED = {
    "judge": Asked(spec="judge", options=READ, reference="answer"),
    "judge, probabilities": Asked(spec="judge", options=PROBABILITIES, reference="answer"),
    "yes_no": Asked(spec="yes_no", options={**READ, "questions": [RIGHT[:-1] + ", is it?"]}),
    "answer_judge": Asked(spec="answer_judge", options=READ, reference="answer"),
    "answer_judge, probabilities": Asked(spec="answer_judge", options=PROBABILITIES, reference="answer"),
    "general_reasoner": Asked(spec="general_reasoner", options=READ, reference="answer"),
    "rubric": Asked(spec="rubric", options=FREE, reference="rubric"),
    "nuggets": Asked(spec="nuggets", options=FREE, reference="rubric"),
    "principles": Asked(spec="principles", options=FREE, reference="rubric"),
    "rlbff": Asked(spec="rlbff", options=READ, reference="rubric"),
    "critic": Asked(spec="critic", options=FREE, reference="answer"),
    "think_prm": Asked(spec="think_prm", options=READ, reference="answer"),
    "gen_prm": Asked(spec="gen_prm", options=READ, reference="answer"),
    "genrm": Asked(spec="genrm", options=READ, reference="answer"),
    "pairwise_judge": Asked(spec="pairwise_judge", options=READ, pairs=True, reference="other"),
    "pairwise_judge, probabilities": Asked(spec="pairwise_judge", options=PROBABILITIES, pairs=True, reference="other"),
    "pair_model": Asked(spec="pair_model", options=READ, pairs=True, reference="other"),
    "listwise_judge": Asked(spec="listwise_judge", options=FREE, pairs=True, reference="group"),
    "deepseek_grm": Asked(spec="deepseek_grm", options={**FREE, "samples": 2}, pairs=True, reference="group"),
}


def shown(name: str) -> list[dict[str, Any]]:
    """Return four few-shot examples for one of `ASKED`: right and wrong answers to sums."""
    sums = (("2 + 3", "5", "6"), ("3 + 4", "7", "7"), ("6 + 2", "8", "8"), ("5 + 4", "9", "7"))
    return [_example(name, sum_=one, right=right, said=said) for one, right, said in sums]


def _example(name: str, *, sum_: str, right: str, said: str) -> dict[str, Any]:
    holds = said == right
    question, response = f"What is {sum_}?", f"{sum_} = {said}, so the answer is {said}."
    criteria, step = f"1. The final answer is {right}.", {"role": "step_1", "content": response}
    given = {"question": question, "reference": right, "response": response}
    by_item = {"question": question, "response": response, "criteria": criteria}
    wrong = f"{sum_} = {int(right) + 2}."
    two = [f"{sum_} = {right}.", wrong] if holds else [wrong, f"{sum_} = {right}."]
    best, order, scores = ("A", "1 > 2", "9, 1") if holds else ("B", "2 > 1", "1, 9")
    yes, same, support, good = (
        pair[not holds] for pair in (("Yes", "No"), ("same", "different"), ("support", "not_support"), ("good", "bad"))
    )
    rated, first_wrong, correct = ("10", "none", "correct") if holds else ("1", "1", "incorrect")
    answers: dict[str, tuple[dict[str, Any], str]] = {
        "judge": (given, f"This is worth {rated}.\nVerdict {{nonce}}: {rated}"),
        "answer_judge": (given, f"The answers are {same}.\nVerdict {{nonce}}: {same}"),
        "yes_no": ({"prompt": question, "response": response}, yes),
        "rlbff": ({"question": question, "response": response, "principle": criteria[3:]}, yes),
        "genrm": ({"prompt": question, "reference": right, "response": response}, yes),
        "general_reasoner": (given, f"Are they the same? {yes}.\nFinal Decision: {yes}"),
        "rubric": (by_item, f"Is it met? {yes}.\n{{nonce}} 1: {yes.lower()}"),
        "nuggets": (by_item, f"It is {support}.\n{{nonce}} 1: {support}"),
        "principles": (
            {"principles": criteria, "question": question, "response": response},
            f"The writing is {good}.\nVerdict {{nonce}}: {good}",
        ),
        "critic": (
            {"question": question, "reference": right, "steps": f"1: {response}"},
            f"The first wrong step is {first_wrong}.\nWrong {{nonce}}: {first_wrong}",
        ),
        "think_prm": (
            {"prompt": question, "reference": right, "steps": [step]},
            f"Step 1: It is {correct}. \\boxed{{{correct}}}\nIs the solution correct? {yes}",
        ),
        "gen_prm": (
            {"prompt": question, "reference": right, "step": [step]},
            f"The step is {correct}.\n\\boxed{{{yes}}}",
        ),
        "pairwise_judge": (
            {"question": question, "response_a": two[0], "response_b": two[1]},
            f"The better one is {best}.\nVerdict {{nonce}}: {best}",
        ),
        "listwise_judge": (
            {"question": question, "response_1": two[0], "response_2": two[1]},
            f"The best one comes first.\nRanking {{nonce}}: {order}",
        ),
        "deepseek_grm": (
            {"question": question, "responses": [{"role": f"response_{at}", "content": two[at - 1]} for at in (1, 2)]},
            f"Principles: correctness (1.0).\nScores: [{scores}]",
        ),
    }
    spec, _, readout = name.partition(", ")
    fields, answer = answers[spec]
    return {**fields, "answer": answer.rpartition(": ")[2] if readout else answer}


@dataclass(frozen=True, kw_only=True)
class Args:
    """Ask and print.

    Attributes:
        scorers: which of them; all without it.
        rows: how many rows each gets.
        max_tokens: how long a model may reason.
        examples: show four few-shot examples, and ask up to three times; but for `pair_model`.
        engine: the model.
        output: where scores are kept; scorers that stand in it with as many rows are not asked again.
    """

    scorers: tuple[str, ...] = ()
    rows: int = 100
    max_tokens: int = 48
    examples: bool = False
    engine: str = "smollm2"
    output: Path = Path("real_judges.jsonl")


def lines(path: Path) -> list[Any]:
    """Return a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def samples_of(asked: Asked, count: int) -> Iterator[tuple[Sample, int]]:
    """Yield samples with their labels: 1 for a right solution or the better response, else 0."""
    if not asked.pairs:
        rows = [(row, row["6b_finetuning"]) for row in lines(DATA / "gsm8k" / "model_solutions.jsonl")]
        rows.sort(key=lambda row: len(row[0]["question"]) + len(row[1]["solution"]))
        for label in (True, False):
            for row, made in [row for row in rows if row[1]["is_correct"] is label][: count // 2]:
                gold = row["ground_truth"].rpartition("A: ")[2].strip()
                given = {"answer": gold, "rubric": [f"The final answer is {gold}."], "": None}[asked.reference]
                if asked.reference == "rubric" and asked.spec == "rlbff":
                    given = given[0]
                yield Sample(prompt=row["question"], response=made["solution"], reference=given), int(label)
        return
    pairs = json.loads((DATA / "pandalm" / "testset-v1.json").read_text(encoding="utf-8"))
    said = [(row, {row[f"annotator{at}"] for at in (1, 2, 3)}) for row in pairs]
    agreed = [(row, next(iter(votes))) for row, votes in said if len(votes) == 1 and votes <= {1, 2}]
    agreed.sort(
        key=lambda one: sum(len(str(one[0][key])) for key in ("instruction", "input", "response1", "response2"))
    )
    for number, (row, best) in enumerate(agreed[: count // (2 if asked.reference == "group" else 1)]):
        prompt = f"{row['instruction']}\n\n{row['input']}".strip()
        texts = [row["response1"], row["response2"]]
        for place in (0, 1) if asked.reference == "group" else (number % 2,):
            other = None if asked.reference == "group" else texts[1 - place]
            sample = Sample(prompt=prompt, response=texts[place], reference=other, group=str(row["idx"]))
            yield sample, int(place + 1 == best)


def masses_of(evidence: Any) -> list[float | None]:
    """Return the masses anywhere in a score's evidence."""
    if isinstance(evidence, Mapping):
        own = [evidence[key] for key in ("mass", "forced_mass") if key in evidence]
        flat = [mass for one in own for mass in (one if isinstance(one, list | tuple) else [one])]
        return flat + [mass for value in evidence.values() for mass in masses_of(value)]
    if isinstance(evidence, list | tuple):
        return [mass for value in evidence for mass in masses_of(value) if isinstance(value, Mapping)]
    return []


def ask(name: str, args: Args) -> dict[str, Any]:
    """Return what a scorer made of its rows, as plain data."""
    asked = ASKED[name]
    known = registry.describe(asked.spec).options
    options = {**asked.options, "engine": args.engine, "min_words": 1}
    if args.examples and asked.spec != "pair_model":
        options |= {"examples": shown(name), "retry_temperature": 0.7}
    scorer = registry.load({asked.spec: options | ({"max_tokens": args.max_tokens} if "max_tokens" in known else {})})
    samples, labels = zip(*samples_of(asked, args.rows), strict=True)
    begun = time.perf_counter()
    scores: list[Score] = asyncio.run(scorer.score(list(samples)))
    seconds = time.perf_counter() - begun
    return {
        "name": name,
        "rows": args.rows,
        "fingerprint": scorer.fingerprint,
        "seconds": seconds,
        "labels": labels,
        "scores": [score.to_dict() for score in scores],
    }


def line(found: Mapping[str, Any]) -> list[str]:
    """Return a scorer's row of the table."""
    scores, labels = found["scores"], found["labels"]
    known = [(score, label) for score, label in zip(scores, labels, strict=True) if score["value"] is not None]
    masses = [[mass for mass in masses_of(score["evidence"]) if mass is not None] for score, _ in known]
    by_mass = found["name"].endswith("probabilities") or found["name"] in ("yes_no", "rlbff", "genrm", "pair_model")
    free = sum("forced_mass" not in json.dumps([score["evidence"], score["parts"]]) for score, _ in known)
    counted = sum(all(mass >= 0.5 for mass in some) for some in masses)
    agreement = Interval(value=None)
    if len({label for _, label in known}) == 2:
        statistic = auroc_of([score["value"] for score, _ in known], [label for _, label in known])
        names = [str(at) for at in range(len(known))]
        (agreement,) = weighted_bootstrap(names, lambda weights: np.array([statistic(weights)]), Draws())
    least = [min(some) for some in masses if some]
    orders = [score["evidence"] for score, _ in known if "consistent" in score["evidence"]]
    size = len(scores)
    return [
        found["name"],
        str(size),
        "" if by_mass else f"{free / size:.0%}",
        f"{counted / size:.0%}",
        f"{len(known) / size:.0%}",
        f"{statistics.median(least):.2f}" if least else "",
        str(agreement),
        f"{sum(one['consistent'] for one in orders) / sum(one['pairs'] for one in orders):.0%}" if orders else "",
        f"{found['seconds']:.0f}",
    ]


def main(args: Args) -> None:
    """Ask what was not asked yet, and print the table of all that was."""
    done = {found["name"]: found for found in lines(args.output)} if args.output.exists() else {}
    for name in args.scorers or ASKED:
        if done.get(name, {}).get("rows") == args.rows:
            continue
        done[name] = ask(name, args)
        with args.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[name]) + "\n")
    table = Table("scorer", "rows", "free", "counted", "read", "mass", "agreement", "consistent", "seconds")
    for name in ASKED:
        if name in done:
            table.add_row(*line(done[name]))
    Console(width=140).print(table)


if __name__ == "__main__":
    main(tyro.cli(Args))
