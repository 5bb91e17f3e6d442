"""Which answers to a prompt are one answer, so that they vote together: the same text, or equal for a scorer.

For a scorer, the commonest text that has no class yet represents the next one, and every other such text is compared
with it as the reference; equal ones join.  So each member equals its representative, but two members need not equal
each other: with a tolerance, 1.00 may join 0.99 and 0.98 may too.  With the commonest text first, the class is centred
where most votes are, and the result does not depend on the order of texts but by ties.

Not covered: comparing whole responses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from adjudge.data_pipelines.label.stages import LocalBench
from adjudge.data_pipelines.pairs.answers import squeezed
from adjudge.evals.benchmarks.asking import asked
from adjudge.protocol import NO_COST, Cost, Sample, Score, Scorer
from adjudge.runtime.loop import run_blocking

TEXT = "text"
_BATCH = 1024


@dataclass(slots=True, kw_only=True)
class Classes:
    """The answers of all prompts.

    Attributes:
        numbers: for each prompt, the number of each response's answer, from 0; -1 for none.
        compared: pairs of answers that the scorer was asked about.
        undecided: of them, those without a number; these answers are not equal.
        unparsable: answers that do not equal themselves, and so vote for nothing.
        cost: of the scorer.
    """

    numbers: list[list[int]]
    compared: int = 0
    undecided: int = 0
    unparsable: int = 0
    cost: Cost = NO_COST


@dataclass(slots=True)
class _Prompt:
    """The answers to one prompt, while they get classes."""

    texts: list[str]
    left: list[str] = field(init=False)
    classes: dict[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Put the commonest texts first."""
        counts = Counter(text for text in self.texts if text)
        places = {text: at for at, text in enumerate(counts)}
        self.left = sorted(counts, key=lambda text: (-counts[text], places[text]))

    def settle(self, joined: Sequence[str]) -> bool:
        """Take the first text and those that equal it out, and return whether it equals itself, and so has a class."""
        first = self.left[0]
        if first not in joined:
            self.left = self.left[1:]
            return False
        number = len(set(self.classes.values()))
        self.classes |= dict.fromkeys(joined, number)
        self.left = [text for text in self.left if text not in self.classes]
        return True

    def numbers(self) -> list[int]:
        """Return the classes in the order in which the responses come, numbered anew from 0."""
        anew: dict[int, int] = {}
        found = [self.classes.get(text, -1) for text in self.texts]
        return [-1 if one < 0 else anew.setdefault(one, len(anew)) for one in found]


def classes_by_text(answers: Sequence[Sequence[str]]) -> Classes:
    """Return the classes of answers that are the same text but for spaces; "" is no answer."""
    found = []
    for texts in answers:
        places: dict[str, int] = {}
        found.append([places.setdefault(same, len(places)) if (same := squeezed(text)) else -1 for text in texts])
    return Classes(numbers=found)


def classes_by_scorer(answers: Sequence[Sequence[str]], scorer: Scorer, *, equal_at: float = 1.0) -> Classes:
    """Return the classes of answers that a scorer holds for equal, one as the response and one as the reference.

    All prompts are compared at the same time, one representative of each in a round.

    Args:
        answers: of each prompt, one for each response; "" is no answer.
        scorer: is asked; see the module.
        equal_at: the least score of equal answers.

    Raises:
        BrokenScorer: the scorer raised.
    """
    prompts = [_Prompt([squeezed(text) for text in texts]) for texts in answers]
    classes = Classes(numbers=[])
    bench = LocalBench(scorer)
    while waiting := [prompt for prompt in prompts if prompt.left]:
        pairs = [(prompt, text) for prompt in waiting for text in prompt.left]  # the first one with itself, too
        same = _equal(bench, [(text, prompt.left[0]) for prompt, text in pairs], equal_at, classes)
        joined: dict[int, list[str]] = {id(prompt): [] for prompt in waiting}
        for (prompt, text), equal in zip(pairs, same, strict=True):
            if equal:
                joined[id(prompt)].append(text)
        classes.unparsable += sum(not prompt.settle(joined[id(prompt)]) for prompt in waiting)
    classes.numbers = [prompt.numbers() for prompt in prompts]
    return classes


def _equal(bench: LocalBench, pairs: Sequence[tuple[str, str]], least: float, classes: Classes) -> list[bool]:
    found = []
    for start in range(0, len(pairs), _BATCH):
        samples = [Sample(prompt="", response=text, reference=first) for text, first in pairs[start : start + _BATCH]]
        for score in run_blocking(asked(bench, samples)):
            value = score.value if isinstance(score, Score) else None
            if isinstance(score, Score):
                classes.cost += score.cost
            classes.undecided += value is None
            found.append(value is not None and value >= least)
    classes.compared += len(pairs)
    return found
