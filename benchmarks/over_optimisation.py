"""Over-optimisation, seen: SmolLM2 against a small reward model, with the math verifier as the truth.

The policy, SmolLM2-135M-Instruct, adds and subtracts numbers up to 9 + 9 behind a worked example.  The reward models
are the same network, trained on pairs of its own answers to some of the problems, one right and one wrong: `one` is a
model, `lower_bound` three of them, trained on a third of the problems each, as mean - standard deviation.

- *choosing*: of up to 64 answers to each held-out problem, the one that a reward model likes best.
- *learning*: GRPO against `one`; against `lower_bound`; and against `lower_bound` with a guard that asks the verifier
  about the answers of each step and puts the best policy back when the two part.

Parts run one by one and find what the parts before them have written:

    python -m benchmarks.over_optimisation --parts draw train choose learn picture --output over_optimisation
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from adjudge import score_batch
from adjudge.engines import smollm2
from adjudge.engines.interface import Fault, Sampling
from adjudge.engines.loading import engine_of
from adjudge.evals.best_of_n.config import BestOfNConfig
from adjudge.evals.best_of_n.evaluating import run_best_of_n
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo import instructed, subjects
from adjudge.rl_integration.trainer.demo.lesson import Lesson, teach
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.run_logger import ALARMS, STEPS, read_journal
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.training.config_file import config_of

MEMBERS = 3
GOLD = "math"
RUNS = ("one", "lower_bound", "guarded")
_COLOURS: dict[str, str] = dict(zip(RUNS, ("#c0392b", "#2f7ed8", "#2a9d5c"), strict=True))


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is run.

    Attributes:
        parts: of "draw", "train", "choose", "learn" and "picture", in this order.
        runs: of "learn".
        held_out: share of the problems that reward models and policies never see.
        draws: answers to each held-out problem; the others get a quarter as many.
        steps: of each policy.
        seed: of everything.
        output: folder.
    """

    parts: tuple[str, ...] = ("draw", "train", "choose", "learn", "picture")
    runs: tuple[str, ...] = RUNS
    held_out: float = 0.3
    draws: int = 64
    steps: int = 30
    seed: int = 0
    output: Path = Path("over_optimisation")


def problems(options: Options) -> tuple[list[Task], list[Task]]:
    """Return sums to train on, and held-out ones."""
    seen, held_out = instructed.instructed(held_out=options.held_out, seed=options.seed)
    return ([task for task in tasks if task.extra["kind"] == instructed.SUM] for tasks in (seen, held_out))  # type: ignore[return-value]


def members(options: Options) -> list[str]:
    """Return the folders of the reward models: the first is of all problems, the others of a third each."""
    return [str(options.output / f"reward_model_{number}") for number in range(MEMBERS + 1)]


def rewards(options: Options) -> dict[str, Any]:
    """Return the scorers that stand for the truth."""
    one, *others = members(options)
    return {
        "one": {"reward_model": {"engine": f"transformers:{one}"}},
        "lower_bound": {"reward_ensemble": {"members": others, "combine": "lower_bound", "normalize": "zscore"}},
    }


def draw(options: Options) -> None:
    """Let the policy answer every problem, and the verifier judge."""
    began = time.perf_counter()
    seen, held_out = problems(options)
    engine = engine_of(smollm2.NAME)
    with (options.output / "draws.jsonl").open("w", encoding="utf-8") as file:
        for part, tasks, draws in (("seen", seen, options.draws // 4), ("held_out", held_out, options.draws)):
            sampling = Sampling(n=draws, max_tokens=24, temperature=1.0, seed=options.seed)
            for task in tasks:
                (made,) = asyncio.run(engine.generate([task.prompt], sampling))
                if isinstance(made, Fault):
                    raise RuntimeError(f"{task.id} was not answered: {made.detail}")
                texts = [one.text for one in made.completions]
                golds = _scored(task.prompt, texts, GOLD, task.reference)
                row = {"id": task.id, "part": part, "prompt": task.prompt, "response": texts, "gold": golds}
                print(json.dumps(row), file=file, flush=True)
    print(f"{len(seen)} + {len(held_out)} problems, {time.perf_counter() - began:.0f} s", flush=True)


def _scored(prompt: Any, texts: Sequence[str], scorer: Any, reference: Any = None) -> list[float]:
    distinct = sorted(set(texts))
    samples = [{"prompt": prompt, "response": text, "reference": reference} for text in distinct]
    scores = score_batch(samples, scorer=scorer)
    values = {
        text: float("nan") if one.value is None else one.value for text, one in zip(distinct, scores, strict=True)
    }
    return [values[text] for text in texts]


def drawn(options: Options, part: str) -> list[dict[str, Any]]:
    """Return the rows of `draw`."""
    lines = (options.output / "draws.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["part"] == part]


def pairs(rows: Sequence[Mapping[str, Any]], at_most: int) -> Iterator[dict[str, Any]]:
    """Yield a right and a wrong answer to each problem that has both, a few times."""
    for row in rows:
        said = dict(zip(row["response"], row["gold"], strict=True))
        right, wrong = ([text for text, gold in said.items() if gold == wanted] for wanted in (1.0, 0.0))
        for chosen, rejected in itertools.islice(itertools.product(right, wrong), at_most):
            yield {"prompt": row["prompt"], "chosen": chosen, "rejected": rejected, "group": row["id"]}


def train(options: Options) -> None:
    """Train the reward models that are not there yet."""
    rows = drawn(options, "seen")
    for number, folder in enumerate(members(options)):
        if (Path(folder) / "report.json").exists():
            continue
        chosen, at_most = (rows[number - 1 :: MEMBERS], 4) if number else (rows, 8)
        path = options.output / f"pairs_{number}.jsonl"
        path.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs(chosen, at_most)), encoding="utf-8")
        schedule = {"learning_rate": 3e-4, "lora": {"rank": 16}, "epochs": 3, "batch_size": 8, "micro_tokens": 2048}
        config = {
            "model": smollm2.NAME,
            "output": folder,
            "max_length": 256,
            "schedule": schedule,
            "data": {"path": str(path), "held_out": 0.2},
            "seed": options.seed + number,
        }
        began = time.perf_counter()
        report = train_scalar(config_of(ScalarTraining, config))
        found = {name: str(measure) for name, measure in {**report.metrics, **report.baselines}.items()}
        print(f"{Path(folder).name}: {time.perf_counter() - began:.0f} s, {found}", flush=True)


def choose(options: Options) -> None:
    """Measure best-of-n on held-out problems by each reward."""
    rows = drawn(options, "held_out")
    for name, scorer in rewards(options).items():
        began = time.perf_counter()
        path = options.output / f"scored_{name}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for row in rows:
                print(json.dumps({**row, "proxy": _scored(row["prompt"], row["response"], scorer)}), file=file)
        config = BestOfNConfig(
            input=str(path), response_column=("response",), id_column="id", gold="column:gold", proxy="column:proxy"
        )
        result = run_best_of_n(config).to_dict()
        (options.output / f"best_of_n_{name}.json").write_text(json.dumps(result), encoding="utf-8")
        print(f"best of n by {name}, {time.perf_counter() - began:.0f} s", flush=True)
        for one in result["measures"]:
            if one["name"].startswith(("gold of best-of-n", "gold of the best", "proxy of", "rank")):
                between = "" if one["low"] is None else f" [{one['low']:.3f}, {one['high']:.3f}]"
                print(f"    {one['name']} {one['part']}: {one['value']:.3f}{between}")


def lesson(options: Options, run: str) -> Lesson:
    """Return the lesson of SmolLM2, about sums alone and with another reward."""
    seen, held_out = problems(options)
    truth = RewardConfig(scorer=GOLD)
    return replace(
        subjects.instructions(options.seed),
        subject="to please a reward model",
        tasks=seen,
        held_out=held_out,
        reward=RewardConfig(scorer=rewards(options)["lower_bound" if run == "guarded" else run]),
        truth=truth,
        steps=options.steps,
        eval_steps=5,
        guard=GuardConfig(gold=truth, every=1, samples=48) if run == "guarded" else None,
    )


def learn(options: Options) -> None:
    """Train a policy on each reward."""
    for run in options.runs:
        folder = options.output / f"policy_{run}"
        learnt = teach(lesson(options, run), folder, seed=options.seed)
        (options.output / f"learnt_{run}.json").write_text(json.dumps({"before": learnt.before, "after": learnt.after}))
        print(f"{run}: {learnt.before:.3f} to {learnt.after:.3f} of {learnt.held_out}, {learnt.seconds:.0f} s")
        print(f"    stopped: {learnt.stopped or 'no'}; policy of step {learnt.rolled_back} put back", flush=True)
        for line in read_journal(folder, ALARMS):
            print(f"    step {line['step']}: {line['sentence']}", flush=True)


def picture(options: Options) -> None:
    """Draw both over one another's axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    looks: Any = {"svg.hashsalt": "adjudge", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(looks):
        figure = Figure(figsize=(9.0, 3.0), layout="constrained")
        chosen, right, paid = figure.subplots(1, 3)
        for name in rewards(options):
            measures = json.loads((options.output / f"best_of_n_{name}.json").read_text(encoding="utf-8"))["measures"]
            for what, style in (("gold of best-of-n", "-"), ("gold of the best response", ":")):
                points = [
                    (int(one["part"].removeprefix("n=")), one["value"]) for one in measures if one["name"] == what
                ]
                best = what.endswith("response")
                if best and name != "one":
                    continue
                colour, label = ("#777777", "the best there is") if best else (_COLOURS[name], name)
                chosen.plot(*zip(*sorted(points), strict=True), style, color=colour, marker=".", label=label)
        for run in options.runs:
            lines = read_journal(options.output / f"policy_{run}", STEPS)
            before = json.loads((options.output / f"learnt_{run}.json").read_text(encoding="utf-8"))["before"]
            shares = [(0, before), *((line["step"], line["held_out"]) for line in lines if "held_out" in line)]
            style = "--" if run == "guarded" else "-"  # it lies on the other's as long as the guard lets it run
            right.plot(*zip(*shares, strict=True), style, color=_COLOURS[run], marker=".", label=run)
            means = [(line["step"], line["reward"]) for line in lines if "reward" in line]
            paid.plot(*zip(*means, strict=True), style, color=_COLOURS[run], label=run)
        chosen.set(title="best of n: right", xlabel="n", xscale="log", ylim=(-0.02, 1.02))
        right.set(title="GRPO: held-out problems right", xlabel="step", ylim=(-0.02, 1.02))
        paid.set(title="GRPO: mean reward", xlabel="step")
        for axes in (chosen, right, paid):
            axes.grid(alpha=0.3)
        chosen.legend(fontsize=7)
        right.legend(fontsize=7)
        figure.savefig(options.output / "over_optimisation.svg", format="svg", metadata={"Date": None})


_PARTS = {"draw": draw, "train": train, "choose": choose, "learn": learn, "picture": picture}


def main(options: Options) -> None:
    """Run the parts."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    options.output.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        _PARTS[part](options)


if __name__ == "__main__":
    main(tyro.cli(Options))
