r"""What scorers that ask a model for a verdict make of a small one that was really trained, SmolLM2-135M-Instruct.

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

Not covered: scorers that need a head or a body of their own (`reward_model`, `process_reward`, `critique_reward`,
`safety_classifier`, `implicit_reward`).

    ADJUDGE_DATA=... python -m benchmarks.real_judges --scorers judge yes_no --output scores.jsonl \
        --engine '{"vllm": {"model": "smollm2", "dtype": "float32"}}'
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from benchmarks.judge_rows import Rows, lines, samples_of, shown
from rich.console import Console
from rich.table import Table

from adjudge.protocol import Score, Scorer
from adjudge.scoring import registry
from adjudge.statistics.bootstrap import weighted_bootstrap
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.ranks import auroc_of

RIGHT = "The final answer of the response is correct"
FREE: Mapping[str, Any] = {"forced_mass": 0.0}
READ: Mapping[str, Any] = {"forced_mass": 0.0, "min_mass": 0.0}
PROBABILITIES: Mapping[str, Any] = {**READ, "readout": "probabilities"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A scorer, its options, and which rows it gets with which reference.

    Attributes:
        spec: the scorer's name; that of its place in `ASKED` if "".
        options: its options but for the engine.
        rows: which rows, as `benchmarks.judge_rows` has them.
        reference: what a row's reference is.
        told: the form of a solution's answer.
        shown: whose examples fit; "" for none.
        inner: the option that holds a judge with the engine, and that judge's name.
    """

    spec: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows = "solutions"
    reference: str = "answer"
    told: str = ""
    shown: str = ""
    inner: tuple[str, str] | None = None

    @property
    def by_mass(self) -> bool:
        """Whether it has a verdict's probability read, and no text."""
        asked = (self.options.get("readout"), self.shown.rpartition(", ")[2])
        return "probabilities" in asked or self.shown in ("yes_no", "zyn", "rlbff", "genrm")


def _judge(shown: str, *, reference: str = "answer", **options: Any) -> Asked:
    return Asked(options={**READ, **options}, reference=reference, shown=shown)


def _pair(shown: str, *, spec: str = "", **options: Any) -> Asked:
    return Asked(spec=spec, options={**READ, **options}, rows="pairs", reference="", shown=shown)


def _items(shown: str, reference: str, **options: Any) -> Asked:
    return Asked(options={**FREE, **options}, reference=reference, shown=shown)


CRITERIA = "Correctness: whether the final answer is right."
STEPS = "1. Work the problem out. 2. Compare the final answer with the reference."
RUBRIC = "Is the final answer right?"
ASKED = {
    "judge": _judge("judge"),
    "judge, probabilities": Asked(spec="judge", options=PROBABILITIES, shown="judge, probabilities"),
    "mt_bench": _judge("mt_bench"),
    "g_eval": Asked(options={**PROBABILITIES, "criteria": CRITERIA, "steps": STEPS}, shown="g_eval"),
    "prometheus": _judge("prometheus", rubric=RUBRIC, attempts=3),
    "j1_score": _judge("j1_score", reference=""),
    "self_rewarding": _judge("self_rewarding", reference="", samples=2),
    "answer_judge": _judge("answer_judge"),
    "answer_judge, probabilities": Asked(
        spec="answer_judge", options=PROBABILITIES, shown="answer_judge, probabilities"
    ),
    "compass_verifier": _judge("compass_verifier"),
    "huatuo_gpt_o1": Asked(options={"min_mass": 0.0}, told="headings", shown="answer_judge, probabilities"),
    "general_reasoner": Asked(options=READ, told="sentence", shown="general_reasoner"),
    "yes_no": _judge("yes_no", reference="", questions=[f"{RIGHT}, is it?"]),
    "zyn": _judge("zyn", reference="", questions=[f"{RIGHT}, is it?"]),
    "zyn_reward": Asked(options={"questions": [f"{RIGHT}, is it?"]}, reference=""),
    "rlbff": _judge("rlbff", reference="principle"),
    "rlsp": Asked(told="boxed"),
    "cos_mos": Asked(options={"center": 2.0, "width": 1.0, "judge": "$engine"}, reference=""),
    "rubric": _items("rubric", "rubric"),
    "healthbench": _items("rubric", "points"),
    "rlcf": _items("rating", "rating", samples=2),
    "rubrics_as_rewards": _items("rubric", "important"),
    "rubrics_as_rewards_implicit": _items("implicit", "important"),
    "verif": _items("rubric", "rubric"),
    "nuggets": _items("nuggets", "rubric"),
    "nuggetizer": _items("nuggets", "nuggets"),
    "principles": _items("principles", "rubric"),
    "creative_writing": _items("principles", ""),
    "citations": Asked(options=FREE, reference="statements", told="cited", shown="citations"),
    "carr": Asked(options=FREE, reference="statements", told="cited", shown="citations"),
    "c_grpo": Asked(options=FREE, reference="statements", told="cited", shown="citations"),
    "critic": _items("critic", "answer"),
    "capo": _items("critic", "answer", critiques=2),
    "processbench": _items("critic", "answer", critiques=2),
    "agent_debug": Asked(options=FREE, rows="searches", shown="critic"),
    "think_prm": _judge("think_prm"),
    "gen_prm": _judge("gen_prm"),
    "genrm": _judge("genrm"),
    "genrm_cot": Asked(options={**READ, "chains": 2}, shown="genrm_cot"),
    "pairwise_judge": _pair("pairwise_judge"),
    "pairwise_judge, probabilities": Asked(
        spec="pairwise_judge",
        options=PROBABILITIES,
        rows="pairs",
        reference="",
        shown="pairwise_judge, probabilities",
    ),
    "mt_bench_pair": _pair("mt_bench_pair"),
    "prometheus_pair": _pair("prometheus_pair", rubric="Which response is better?", attempts=3),
    "arena_hard": _pair("arena_hard"),
    "j1_pair": _pair("j1_pair"),
    "j1_budget": _pair("j1_pair"),
    "rm_r1": _pair("rm_r1"),
    "pair_model": Asked(options=READ, rows="pairs", reference=""),
    "listwise_judge": Asked(options=FREE, rows="groups", reference="", shown="listwise_judge"),
    "deepseek_grm": Asked(options={**FREE, "samples": 2}, rows="groups", reference="", shown="deepseek_grm"),
    "tournament": Asked(
        options=FREE, rows="groups", reference="", shown="pairwise_judge", inner=("judge", "pairwise_judge")
    ),
    "turn_critic": Asked(options=FREE, rows="searches", shown="turn_critic"),
    "critic_search": Asked(options=FREE, rows="searches", shown="turn_critic"),
    "search_evidence": Asked(options=FREE, rows="searches", shown="search_evidence"),
    "r_search": Asked(options=FREE, rows="searches", shown="search_evidence"),
    "atomic_thoughts": Asked(options={**FREE, "progress": 0.0}, rows="searches", shown="atoms"),
    "atom_searcher": Asked(options={**FREE, "progress": 0.0}, rows="searches", shown="atoms"),
    "simulated_user": Asked(options=FREE, rows="dialogues", shown="simulated_user"),
    "rlver": Asked(options=FREE, rows="dialogues", shown="simulated_user"),
    "reference_probability": Asked(told="tags"),
    "rlpr": Asked(told="tags"),
    "likelihood": Asked(options={"floor": -1000.0}, reference=""),
    "information_gain": Asked(rows="searches"),
    "igpo": Asked(rows="searches"),
    "fact_gain": Asked(rows="searches", reference="facts"),
}


@dataclass(frozen=True, kw_only=True)
class Args:
    """Ask, first as they are and then with few-shot examples, and print.

    Attributes:
        scorers: which of them; all without it.
        rows: how many rows each gets.
        max_tokens: how long a model may reason.
        examples: whether to ask with four few-shot examples, and up to three times; "both" asks without and with.
        engine: the model, as a spec of an engine in JSON or its short form.
        output: where scores are kept; scorers that stand in it with as many rows are not asked again.
    """

    scorers: tuple[str, ...] = ()
    rows: int = 100
    max_tokens: int = 48
    examples: Literal["no", "yes", "both"] = "both"
    engine: str = "smollm2"
    output: Path = Path("real_judges.jsonl")


def masses_of(evidence: Any) -> list[float | None]:
    """Return the masses anywhere in a score's evidence."""
    if isinstance(evidence, Mapping):
        own = [evidence[key] for key in ("mass", "forced_mass") if key in evidence]
        flat = [mass for one in own for mass in (one if isinstance(one, list | tuple) else [one])]
        return flat + [mass for value in evidence.values() for mass in masses_of(value)]
    if isinstance(evidence, list | tuple):
        return [mass for value in evidence for mass in masses_of(value) if isinstance(value, Mapping)]
    return []


def scorer_of(name: str, args: Args, *, examples: bool) -> Scorer:
    """Return one of `ASKED` with its engine."""
    asked = ASKED[name]
    engine = json.loads(args.engine) if args.engine.startswith("{") else args.engine
    spec = asked.inner[1] if asked.inner else asked.spec or name
    known = registry.describe(spec).options
    usual = {"engine": engine, "min_words": 1, "max_tokens": args.max_tokens}
    given = {key: engine if value == "$engine" else value for key, value in asked.options.items()}
    options = {**{key: value for key, value in usual.items() if key in known}, **given}
    if examples:
        options |= {"examples": shown(asked.shown)} | (
            {"retry_temperature": 0.7} if "retry_temperature" in known else {}
        )
    if asked.inner:
        return registry.load({asked.spec or name: {asked.inner[0]: {spec: options}}})
    return registry.load({spec: options})


def ask(name: str, args: Args, *, examples: bool) -> dict[str, Any]:
    """Return what a scorer made of its rows, as plain data."""
    asked, scorer = ASKED[name], scorer_of(name, args, examples=examples)
    rows = samples_of(asked.rows, count=args.rows, reference=asked.reference, told=asked.told)
    samples, labels = zip(*rows, strict=True)
    begun = time.perf_counter()
    scores: list[Score] = asyncio.run(scorer.score(list(samples)))
    seconds = time.perf_counter() - begun
    return {
        "name": name,
        "examples": examples,
        "rows": args.rows,
        "fingerprint": scorer.fingerprint,
        "seconds": seconds,
        "labels": labels,
        "scores": [score.to_dict() for score in scores],
    }


def cells(asked: Asked, found: Mapping[str, Any]) -> list[str]:
    """Return what the table says of a scorer's scores."""
    scores, labels = found["scores"], found["labels"]
    known = [(score, label) for score, label in zip(scores, labels, strict=True) if score["value"] is not None]
    masses = [
        [mass for mass in masses_of([score["evidence"], score["parts"]]) if mass is not None] for score, _ in known
    ]
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
        f"{sum(score['cost']['prompt_tokens'] > 0 for score in scores) / size:.0%}",
        "" if asked.by_mass or not asked.shown else f"{free / size:.0%}",
        f"{counted / size:.0%}",
        f"{len(known) / size:.0%}",
        f"{statistics.median(least):.2f}" if least else "",
        str(agreement),
        f"{sum(one['consistent'] for one in orders) / sum(one['pairs'] for one in orders):.0%}" if orders else "",
        f"{found['seconds']:.0f}",
    ]


def main(args: Args) -> None:
    """Ask what was not asked yet, and print the table of all that was."""
    kept = lines(args.output) if args.output.exists() else []
    done = {(found["name"], found["examples"]): found for found in kept if found["rows"] == args.rows}
    wanted = {"no": (False,), "yes": (True,), "both": (False, True)}[args.examples]
    for name in args.scorers or ASKED:
        for examples in wanted:
            if (name, examples) in done or (examples and not ASKED[name].shown):
                continue
            done[name, examples] = ask(name, args, examples=examples)
            with args.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[name, examples]) + "\n")
    heads = ("asked", "free", "counted", "read", "mass", "agreement", "consistent", "seconds")
    table = Table("scorer", "examples", *heads)
    for name, asked in ASKED.items():
        for examples in (False, True):
            if found := done.get((name, examples)):
                table.add_row(name, "four" if examples else "", *cells(asked, found))
    Console(width=160).print(table)


if __name__ == "__main__":
    main(tyro.cli(Args))
