"""From answers to a reward model: score them, make pairs of them, look for leaks, train, measure on new problems.

The answers are made here: sums in words; a wrong one has slipped by one, or forgotten to carry.  Take your own policy's
answers instead, and any other scorer.
"""

import itertools
import json
import random

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.pairs.config import LeaksConfig, PairsConfig
from adjudge.data_pipelines.pairs.leaks import find_leaks
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.training.config_file import config_of

chance = random.Random(0)


def answer(first: int, second: int) -> str:
    """A way to a sum; two in five are wrong, and those are checked less often, so that they are shorter, too."""
    total = first + second + chance.choice((0, 0, 0, 1, -10))
    check = "Checked by subtracting. " if chance.random() < (0.8 if total == first + second else 0.3) else ""
    return f"Add {first} and {second}. {check}So it is \\boxed{{{total}}}."


with open("answers.jsonl", "w") as file:
    for first, second in chance.sample(list(itertools.product(range(10, 100), repeat=2)), 300):
        for _ in range(4):
            row = {"question": f"{first}+{second}?", "response": answer(first, second), "answer": str(first + second)}
            file.write(json.dumps(row) + "\n")

labels = run_label(LabelConfig(input="answers.jsonl", output="labels.jsonl", scorer="math", keep_columns=True))
print(f"{labels.scored} of {labels.samples} answers scored, {labels.mean:.0%} right")

for part in ("train", "test"):
    made = build_pairs(PairsConfig(input="labels.jsonl", output=f"{part}.jsonl", rule="pass_fail", part=part))
    print(f"{part}: {made.made} pairs")
leaks = find_leaks(LeaksConfig(train="train.jsonl", test="test.jsonl"))
print(*(line for line in leaks.lines() if line.startswith("FOUND")), sep="\n")

described = {"model": "ngrams", "data": {"path": "train.jsonl", "held_out": 0.2}, "output": "reward_model"}
report = train_scalar(config_of(ScalarTraining, described))
beyond = report.metrics["over_longer_wins"]
print("on new problems it is surely better than taking the longer one:", beyond.low is not None and beyond.low > 0)
