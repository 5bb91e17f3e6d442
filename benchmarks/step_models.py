"""Process models from GSM8K's solutions: labels without rollouts, and what two small models reach beside simple rules.

`adjudge data steps --method worked` labels two sets of solutions.

- *Changed solutions*: worked solutions of the training problems, each beside one that ends in a step whose operation or
  operand was changed and worked out rightly.  So these are wrong in sense alone.
- *Models' solutions*: 660 test problems with four solutions of language models each.  A right solution is right in all
  its steps, a wrong one up to where it leaves the worked one.

`adjudge train prm` makes a new transformer of them (`from_scratch: tiny`) and an n-gram model (`ngrams`), twice: from
the changed solutions, measured on changed ones of other problems and on the models' solutions; and from the models'
solutions, in five folds by problem, so that each is measured by models that saw nothing of its problem.

What is measured:

- steps: the area under the ROC curve for right against wrong steps, of all and of those that work something out, with
  intervals over problems;
- first errors: ProcessBench's F1, with the threshold of one half of the problems taken from the other;
- the same for four rules: shorter steps are right, earlier ones are, later ones are, and all are;
- what the n-gram model gives to rewritten wrong solutions.

Beside them stands how often the labels themselves agree with people (`data/processbench`).

Not covered: models that were trained on more than this; the transformer has less than a million weights.

    ADJUDGE_DATA=... python benchmarks/step_models.py
"""

from __future__ import annotations

import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from adjudge import score_batch
from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.reward_models.baselines.baseline_table import fold_of
from adjudge.reward_models.baselines.quantities import equations
from adjudge.reward_models.training.held_out import JudgedSteps, step_measures
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_training import train_process
from adjudge.statistics.intervals import Interval, middle, numbered, resampled
from adjudge.statistics.ranks import auroc_of
from adjudge.training.config_file import config_of
from adjudge.training.data_files import families, held_out, read_steps
from adjudge.training.step_data import StepExample

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
FOLDS = 5
NGRAMS, TRANSFORMER = "ngrams", "transformer"
HOMES = {NGRAMS: "adjudge.reward_models.baselines.step_model:StepModel", TRANSFORMER: "process_reward"}
Rows = list[dict[str, Any]]
Values = list[list[float]]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is trained.

    Attributes:
        problems: training problems whose worked solutions are changed.
        epochs: passes over them.
        fold_epochs: passes over four folds of the models' solutions.
        transformer: whether the transformers are trained too, which takes longest by far.
        held_out: share of them that is measured.
        seed: of everything.
        folder: where files and the model go; a model that is there is not trained again.  A temporary one if empty.
    """

    problems: int = 7473
    epochs: int = 1
    fold_epochs: int = 2
    transformer: bool = True
    held_out: float = 0.05
    seed: int = 0
    folder: str = ""


def main(options: Options) -> None:
    """Label, train, measure and print."""
    if not os.environ.get("ADJUDGE_DATA"):
        raise SystemExit("ADJUDGE_DATA names no folder with the corpora")
    data, console = Path(os.environ["ADJUDGE_DATA"]), Console(width=120)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        agreement(data, folder, console)
        changed = changed_steps(data, folder, options)
        examples = read_steps(changed).examples
        aside = [examples[at] for at in held_out(examples, options.held_out, seed=options.seed)[1]]
        solved = read_steps(model_steps(data, folder)).examples
        kinds = (NGRAMS, TRANSFORMER) if options.transformer else (NGRAMS,)
        homes = {kind: trained(kind, changed, folder / f"changed_{kind}", options, console) for kind in kinds}
        for name, shown in (
            ("changed solutions, others learnt from", aside),
            ("models' solutions, changed ones", solved),
        ):
            console.print(table(name, shown, {kind: values(kind, shown, home) for kind, home in homes.items()}))
        said, first = folded(solved, kinds, folder, options, console)
        console.print(table("models' solutions, others learnt from", solved, said))
        console.print(attack_table(*first))


def trained(kind: str, path: str, output: Path, options: Options, console: Console, *, held_out_path: str = "") -> str:
    """Return the folder of a process model, trained if it is not there."""
    record = {
        "model": NGRAMS if kind == NGRAMS else {"from_scratch": "tiny"},
        "data": {"path": path, "held_out": options.held_out, "held_out_path": [held_out_path] if held_out_path else []},
        "output": str(output),
        "normalize": "step",
        "max_length": 512,
        "seed": options.seed,
        "schedule": {
            "epochs": options.fold_epochs if held_out_path else options.epochs,
            "learning_rate": 1e-3,
            "batch_size": 16,
        },
    }
    report = train_process(config_of(ProcessTraining, record), resume=output.exists())
    console.print(f"{kind}: {report.seconds:.0f} s of training; accuracy {report.metrics['step_accuracy']}")
    return str(output)


def folded(
    examples: Sequence[StepExample], kinds: Sequence[str], folder: Path, options: Options, console: Console
) -> tuple[dict[str, Values], tuple[list[StepExample], str]]:
    """Return what models say about solutions of problems they did not see; and a fold, with its n-gram model."""
    homes = np.array([fold_of(family, FOLDS, options.seed) for family in families(examples)])
    said: dict[str, Values] = {kind: [[] for _ in examples] for kind in kinds}
    first: tuple[list[StepExample], str] = ([], "")
    for fold in range(FOLDS):
        aside = [examples[at] for at in np.flatnonzero(homes == fold)]
        known = [examples[at] for at in np.flatnonzero(homes != fold)]
        files = [written(part, folder / f"{name}_{fold}.jsonl") for name, part in (("aside", aside), ("known", known))]
        for kind in kinds:
            model = trained(kind, files[1], folder / f"fold_{fold}_{kind}", options, console, held_out_path=files[0])
            for at, found in zip(np.flatnonzero(homes == fold), values(kind, aside, model), strict=True):
                said[kind][at] = found
            if fold == 0 and kind == NGRAMS:
                first = aside, model
    return said, first


def written(examples: Sequence[StepExample], path: Path) -> str:
    """Write solutions as step data, and return the file."""
    rows = [
        {"prompt": one.prompt, "steps": one.steps, "labels": one.labels, "outcome": one.outcome} for one in examples
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def label(given: Path, out: Path, **options: Any) -> str:
    """Label a file by worked solutions, and return the labels' file."""
    label_steps(
        StepsConfig(input=str(given), output=str(out), method="worked", overwrite=True, restart=True, **options)
    )
    return str(out)


def model_steps(data: Path, folder: Path) -> str:
    """Return the file of labelled solutions of models."""
    return label(
        data / "gsm8k" / "model_solutions.jsonl",
        folder / "steps.jsonl",
        prompt_column="question",
        response_column=tuple(f"{model}.solution" for model in MODELS),
        outcome_column=tuple(f"{model}.is_correct" for model in MODELS),
        reference_column="ground_truth",
        splitting="line",
    )


def changed_steps(data: Path, folder: Path, options: Options) -> str:
    """Return the file of labelled worked solutions and changed ones."""
    chance = random.Random(options.seed)
    rows: Rows = []
    for row in lines_of(data / "gsm8k" / "train.jsonl")[: options.problems]:
        body, _, answer = row["answer"].partition("\n#### ")
        base = {"prompt": row["question"], "reference": row["answer"]}
        rows.append({**base, "response": f"{body}\nA: {answer}", "right": True})
        changed = changed_solution(row["question"], body.split("\n"), chance)
        if changed is not None:
            rows.append({**base, "response": changed, "right": False})
    chance.shuffle(rows)
    given = folder / "changed_in.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return label(given, folder / "changed.jsonl", outcome_column=("right",), splitting="line")


_WORKED = re.compile(r"<<([^<>=]*)=([^<>]*)>>")
_TWO = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([-+*/])\s*(\d+(?:\.\d+)?)\s*")
_DO: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def changed_solution(question: str, steps: Sequence[str], chance: random.Random) -> str | None:
    """Return a solution up to a step in which an operation or an operand was changed; None if none can be."""
    known = re.findall(r"\d+(?:\.\d+)?", question.replace(",", ""))
    for at in chance.sample(range(len(steps)), len(steps)):
        numbers = known + [result for step in steps[:at] for _, result in _WORKED.findall(step)]
        changed = changed_step(steps[at], numbers, chance)
        if changed is not None:
            return "\n".join([*steps[:at], changed])
    return None


def changed_step(step: str, numbers: Sequence[str], chance: random.Random) -> str | None:
    """Return a step that works out something else, rightly; None if it is not of two numbers."""
    mark = _WORKED.search(step)
    two = _TWO.fullmatch(mark[1]) if mark else None
    if mark is None or two is None:
        return None
    left, sign, right = two.groups()
    a, how, b = left, sign, right
    match chance.choice(("sign", "left", "right")):
        case "sign":
            how = chance.choice([one for one in _DO if one != sign])
        case "left":
            a = chance.choice([one for one in numbers if one not in (left, right)] or [left])
        case _:
            b = chance.choice([one for one in numbers if one not in (left, right)] or [right])
    if (a, how, b) == (left, sign, right) or not re.fullmatch(_TWO.pattern, f"{a}{how}{b}"):
        return None
    if how == "/" and Fraction(b) == 0:
        return None
    result = f"{float(_DO[how](Fraction(a), Fraction(b))):.2f}".rstrip("0").rstrip(".")
    head = re.sub(
        rf"(?<![\d.]){re.escape(left)}(\s*)[-+*/x](\s*\$?){re.escape(right)}(?!\d)",
        lambda found: f"{a}{found[1]}{how}{found[2]}{b}",
        step[: mark.start()],
    )
    tail = re.sub(r"^[\d,.]*\d", "", step[mark.end() :])
    return f"{head}<<{a}{how}{b}={result}>>{result}{tail}"


def lines_of(path: Path) -> Rows:
    """Return the rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def agreement(data: Path, folder: Path, console: Console) -> None:
    """Print how often the labels agree with people."""
    worked = {" ".join(row["question"].split()): row["answer"] for row in lines_of(data / "gsm8k" / "test.jsonl")}
    people = json.loads((data / "processbench" / "gsm8k.json").read_text(encoding="utf-8"))
    given = folder / "people_in.jsonl"
    rows = [{**row, "worked": worked[" ".join(row["problem"].split())]} for row in people]
    given.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out = label(
        given,
        folder / "people.jsonl",
        prompt_column="problem",
        steps_column="steps",
        reference_column="worked",
        outcome_column=("final_answer_correct",),
        id_column="id",
    )
    truth = {row["id"]: row["label"] for row in people}
    found: Counter[tuple[float, bool]] = Counter()
    for row in lines_of(Path(out)):
        error = truth[row["id"]]
        for at, one in enumerate(row["labels"]):
            if one is not None and (error < 0 or at <= error):
                found[one, at != error] += 1
    for value, name in ((1.0, "right"), (0.0, "wrong")):
        mine = found[value, bool(value)]
        console.print(f"labelled {name}, and so say people: {mine} of {mine + found[value, not value]} steps")


def table(name: str, aside: Sequence[StepExample], models: Mapping[str, Values]) -> Table:
    """Return what models and rules reach on solutions of problems that the models did not see."""
    said = {
        **models,
        "shorter is right": [[_squashed(-len(step)) for step in one.steps] for one in aside],
        "earlier is right": [[_squashed(-at) for at in range(len(one.steps))] for one in aside],
        "later is right": [[_squashed(at) for at in range(len(one.steps))] for one in aside],
        "all are right": [[1.0] * len(one.steps) for one in aside],
    }
    known = sum(label is not None for one in aside for label in one.labels)
    right = sum(label == 1.0 for one in aside for label in one.labels)
    made = Table(title=f"{name}: {len(aside)} with {known} labelled steps, {right / known:.0%} right")
    for column in ("who", "AUC of steps", "n-grams are ahead by", "AUC, with equations", "F1 of first errors"):
        made.add_column(column, justify="left" if column == "who" else "right")
    for who, mine in said.items():
        measures = step_measures(
            [
                JudgedSteps(probabilities=tuple(chances), labels=one.labels, cluster=cluster)
                for one, chances, cluster in zip(aside, mine, families(aside), strict=True)
            ]
        )[0]
        area, ahead = areas(aside, said[NGRAMS], mine)
        working, _ = areas(aside, said[NGRAMS], mine, working=True)
        made.add_row(who, str(area), "" if who == NGRAMS else str(ahead), str(working), str(measures["first_error_f1"]))
    return made


def values(kind: str, aside: Sequence[StepExample], model: str) -> Values:
    """Return what a trained model says about each step."""
    options = {"model": model} if kind == NGRAMS else {"engine": f"transformers:{model}"}
    samples = [
        {"prompt": one.prompt, "response": "\n".join(one.steps), "extra": {"steps": list(one.steps)}} for one in aside
    ]
    scores = score_batch(samples, {HOMES[kind]: options})
    said = [[require(step.value) for step in score.steps] for score in scores]
    if [len(one.steps) for one in aside] != list(map(len, said)):
        raise SystemExit("the model judged other steps than those that are labelled, so there is nothing to compare")
    return said


def require(value: float | None) -> float:
    """Return a value that must be there."""
    if value is None:
        raise SystemExit("a step has no value; look at the solutions")
    return value


def rewritten(one: StepExample) -> dict[str, list[str]]:
    """Return what a policy might write in a wrong solution's place, none of it any nearer to the answer."""
    steps, given = list(one.steps), re.findall(r"\d+(?:\.\d+)?", one.prompt.replace(",", "")) or ["1"]
    idle = f"There are {given[0]} + 0 = <<{given[0]}+0={given[0]}>>{given[0]}"
    return {
        "as it is": steps,
        "an empty sentence behind each step": [part for step in steps for part in (step, "So that is what we know.")],
        "the question's numbers first": [f"We are given {', '.join(given)}", *steps],
        "a true and idle equation behind each step": [part for step in steps for part in (step, idle)],
        "idle equations in place of all steps": [*[idle] * (len(steps) - 1), steps[-1]],
        "the last line alone": steps[-1:],
    }


def attack_table(aside: Sequence[StepExample], model: str) -> Table:
    """Return what the n-gram model gives to wrong solutions that are rewritten, beside right ones."""
    solutions = {"right solutions": [list(one.steps) for one in aside if one.outcome == 1.0]}
    for one in aside:
        if one.outcome == 0.0:
            for name, steps in rewritten(one).items():
                solutions.setdefault(f"wrong: {name}", []).append(steps)
    prompts = {
        name: [one.prompt for one in aside if one.outcome == float(name == "right solutions")] for name in solutions
    }
    made = Table(title="what the n-gram model gives to solutions of one fold, on average")
    for column in ("solutions", "the worst step", "the mean of steps", "the worst is above 0.5"):
        made.add_column(column, justify="left" if column == "solutions" else "right")
    for name, written_ones in solutions.items():
        samples = [
            {"prompt": prompt, "response": "\n".join(steps), "extra": {"steps": steps}}
            for prompt, steps in zip(prompts[name], written_ones, strict=True)
        ]
        scores = score_batch(samples, {HOMES[NGRAMS]: {"model": model}})
        worst = np.array([require(score.value) for score in scores])
        mean = np.array([np.mean(score.evidence["raw"]) for score in scores])
        made.add_row(name, f"{worst.mean():.2f}", f"{mean.mean():.2f}", f"{(worst > 0.5).mean():.2f}")
    return made


def areas(
    aside: Sequence[StepExample], model: Values, rule: Values, *, working: bool = False, rounds: int = 500
) -> tuple[Interval, Interval]:
    """Return the area of a rule, and how far the model's is above it; whole problems are drawn again.

    Args:
        aside: solutions.
        model: its values.
        rule: its values.
        working: leave out steps that work nothing out.
        rounds: how often problems are drawn.
    """
    places = [
        (at, step)
        for at, one in enumerate(aside)
        for step, label in enumerate(one.labels)
        if label is not None and (not working or equations(one.steps[step]))
    ]
    right = np.array([aside[at].labels[step] == 1.0 for at, step in places])
    clusters = families(aside)
    owner = numbered([clusters[at] for at, _ in places])
    mine = np.array([model[at][step] for at, step in places])
    theirs = np.array([rule[at][step] for at, step in places])
    areas = auroc_of(theirs, right), auroc_of(mine, right)
    drawn, ahead = [], []
    for times in resampled(int(owner.max()) + 1, rounds=rounds):
        area, other = (of_weights(times[owner].astype(float)) for of_weights in areas)
        drawn.append(area)
        ahead.append(other - area)
    low, high = middle(drawn)
    area, other = (of_weights(np.ones(len(owner))) for of_weights in areas)
    difference = other - area
    under, over = middle(ahead)
    return Interval(value=area, low=low, high=high), Interval(value=difference, low=under, high=over)


def _squashed(value: int) -> float:
    """A number as a probability; the order stays."""
    return 1 / (1 + float(np.exp(-value / 50)))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
