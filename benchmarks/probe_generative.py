"""The generative reward models of `probe_table`, and scorers of groups beside a right answer.

Models are scripted and honest.  A model of steps finds a step wrong that boxes a wrong answer, and every other one
right: as process models do, it says nothing of what a solution lacks.

Not covered: `information_gain`, whose turns shipped rows do not have, and `citations`, which reads pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.probe_scorers import BLIND, Honest, Probed, by_labels
from tests.engines.scripted import ScriptedEngine, field_of

from adjudge.engines.interface import Fault, Logits, Prompt
from adjudge.protocol import Cost, Sample, Score, Scorer, content_text
from adjudge.scoring import registry

CHANCES = {True: {"Yes": 0.9, "No": 0.05}, False: {"Yes": 0.05, "No": 0.9}}
SHOWN_AS = re.compile(r"^\[step_\d+ \w+\]\n", re.MULTILINE)
BOX = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")


def steps_of(prompt: Prompt, name: str) -> str:
    """Return the steps of a prompt as they were written: their numbers and the dots in their boxes taken out."""
    return SHOWN_AS.sub("", field_of(prompt, name)).replace("\\·", "\\")


class HonestOfSteps(Honest):
    """Thinks through all steps; the last one is wrong if the solution is."""

    def __call__(self, prompt: Prompt, index: int) -> str:
        """Return a verdict for each step, and one for all."""
        right = self.is_right(steps_of(prompt, "steps"))
        count = len(SHOWN_AS.findall(field_of(prompt, "steps")))
        marks = ["correct"] * (count - 1) + ["correct" if right else "incorrect"]
        verdicts = "\n".join(f"\\boxed{{{mark}}}" for mark in marks)
        return f"{verdicts}\nIs the solution correct? {'Yes' if right else 'No'}"

    def labels(self, prompt: Prompt) -> Mapping[str, float]:
        """Return the chances of Yes and No behind such a chain."""
        return CHANCES[self.is_right(steps_of(prompt, "steps"))]


class HonestOfStep(Honest):
    """Judges one step."""

    def is_right(self, text: str) -> bool:
        """Return whether a step boxes nothing but right answers."""
        return all(box in self.golds for box in BOX.findall(text))

    def __call__(self, prompt: Prompt, index: int) -> str:
        """Return the verdict on the step."""
        right = self.is_right(steps_of(prompt, "step"))
        return self.quoting(prompt, field_of(prompt, "step"), "\\boxed{Yes}" if right else "\\boxed{No}")

    def labels(self, prompt: Prompt) -> Mapping[str, float]:
        """Return the chances of Yes and No."""
        return CHANCES[self.is_right(steps_of(prompt, "step"))]


class HonestCritic(ScriptedEngine):
    """Writes a critique of the answer in a chat, and reads a number from the critique alone."""

    fingerprint = "honest critic:1"

    def __init__(self) -> None:
        super().__init__(self.critique)
        self.honest = Honest("It is right.", "It is wrong.")

    def critique(self, prompt: Prompt, index: int) -> str:
        """Return what it says of the answer in a chat."""
        answer = next(text for role, text in turns_of(prompt) if role == "assistant")
        return self.honest.right if self.honest.is_right(answer) else self.honest.wrong

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Return 1 for chats that end with a critique that finds the answer right, else 0."""
        said = [turns_of(prompt)[-1][1] for prompt in prompts]
        return [Logits(values=(float(text == self.honest.right),), cost=Cost()) for text in said]


def turns_of(prompt: Prompt) -> list[tuple[str, str]]:
    """Return the roles and texts of a chat."""
    assert not isinstance(prompt, str)
    return [(str(turn["role"]), content_text(turn["content"])) for turn in prompt]


def _scripted(name: str, make: Callable[[], ScriptedEngine], **options: Any) -> Probed:
    def loaded() -> Scorer:
        return registry.as_scorer(registry.resolve(name)(engine=make(), **options))

    return Probed(name=name, make=loaded, rows="math", change=without_reference, skip=BLIND)


def without_reference(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without its reference."""
    return {**row, "reference": None}


def _of_steps() -> ScriptedEngine:
    model = HonestOfSteps("", "")
    return ScriptedEngine(model, labels=model.labels)


def _of_step() -> ScriptedEngine:
    model = HonestOfStep("", "")
    return ScriptedEngine(model, labels=model.labels)


GENERATIVE = [
    by_labels("genrm", "Yes", "No"),
    _scripted("think_prm", _of_steps),
    _scripted("gen_prm", _of_step),
    _scripted("critique_reward", HonestCritic, ask="What do you think of it?"),
]


@dataclass(frozen=True)
class BesideRight:
    """Scores each answer beside a right one on the pair's other side.

    Attributes:
        scorer: compares the answers of a group.
        side: puts a sample on its side, and returns a right answer on the other one.
    """

    scorer: Scorer
    side: Callable[[Sample], tuple[Sample, Sample]]

    @property
    def name(self) -> str:
        """That of the scorer."""
        return self.scorer.name

    @property
    def fingerprint(self) -> str:
        """That of the scorer."""
        return self.scorer.fingerprint

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        pairs = [(replace(one, group=str(at)), at) for at, one in enumerate(samples)]
        both = [each for one, at in pairs for each in self.side(one)]
        return (await self.scorer.score(both))[::2]


def _in_both_orders(sample: Sample) -> tuple[Sample, Sample]:
    other = "B" if sample.reference == "A" else "A"
    said = f"<think>The pair was looked at again.</think>\n<answer>{other}</answer>"
    swapped = replace(sample, response=said, reference=other, extra={"order": "swapped"})
    return replace(sample, extra={"order": "given"}), swapped


def _of_the_chosen(sample: Sample) -> tuple[Sample, Sample]:
    said = "<think>It drifts to another subject.</think>\n<score>4</score>"
    return sample, replace(sample, response=said, reference="rejected")


def _rated(row: dict[str, Any]) -> dict[str, Any]:
    """A row of verdicts as one of ratings: the good one is above 4, and the bad one below."""
    good, bad = (re.sub(r"<answer>.*</answer>", f"<score>{mark}</score>", row["good"]) for mark in (8, 2))
    return {**row, "good": good, "bad": bad, "reference": "chosen"}


def _of_the_theorem(sample: Sample) -> tuple[Sample, Sample]:
    said = "Twice a whole number, taken twice, is twice a whole number.\n\nTherefore \\boxed{proved}"
    other = replace(sample, prompt="Twice an even number is even.", response=said, reference="proved")
    return sample, other


THEOREMS = [
    Probed(
        name="theorem_group",
        make=lambda: BesideRight(registry.load("theorem_group"), _of_the_theorem),
        rows="theorem_variants",
    )
]
VERDICTS = [
    Probed(
        name="verdict_orders",
        make=lambda: BesideRight(registry.load("verdict_orders"), _in_both_orders),
        rows="verdict",
    ),
    Probed(
        name="verdict_scores",
        make=lambda: BesideRight(registry.load("verdict_scores"), _of_the_chosen),
        rows="verdict",
        change=_rated,
    ),
]
