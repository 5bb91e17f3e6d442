"""What a generator wrote lately, as tasks for the verifier that learns beside it.

As many right as wrong solutions are drawn while there are some of both: a verifier that sees one kind alone learns to
say nothing else.  RL Tango scales advantages by 1 / sqrt(count of the class) instead.

Not covered: which step of a wrong solution is wrong; nobody says.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adjudge.protocol import Score, response_text
from adjudge.responses.steps import Splitting, split_steps
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.judging.pairs import AskSteps, Prompt
from adjudge.rl_integration.trainer.loop.logbook import Journal, read_journal

SOLUTIONS = "solutions.jsonl"
"""File in the generator's folder: what was written at each step, for a run that is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A solution that was judged by its outcome.

    Attributes:
        question: what it answers.
        steps: its steps as texts, one at least.
        right: whether its outcome is right.
    """

    question: Prompt
    steps: tuple[str, ...]
    right: bool


def solutions_of(
    rollouts: Iterable[Rollout], scores: Iterable[Score], *, splitting: Splitting, right: float
) -> list[Solution]:
    """Return what can be learnt from: solutions with a judged outcome and at least one step."""
    found = []
    for rollout, score in zip(rollouts, scores, strict=True):
        text = response_text(rollout.sample())
        steps = tuple(step.text for step in split_steps(text, splitting))
        if score.value is not None and steps:
            found.append(Solution(question=rollout.task.prompt, steps=steps, right=score.value >= right))
    return found


class Solutions:
    """The newest solutions, as a source of the verifier's tasks.

    Args:
        folder: of the generator's run, where they are kept for a run that is resumed.
        ask: the verifier's prompt.
        seed: of the draws.
        newest: how many are drawn from.
    """

    def __init__(self, folder: Path, ask: AskSteps, *, seed: int, newest: int = 512) -> None:
        if newest < 1:
            raise ValueError(f"newest is {newest!r}; a verifier needs at least one solution to judge")
        self._folder = folder
        self._ask = ask
        self._seed = seed
        self._draws = 0
        self._newest: deque[tuple[str, Solution]] = deque(maxlen=newest)
        self._journal: Journal | None = None

    @property
    def count(self) -> int:
        """How many solutions are drawn from."""
        return len(self._newest)

    def open(self, step: int) -> None:
        """Read what was kept up to a step of the generator; what a killed process left of later ones is dropped."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(self._folder, SOLUTIONS, step=step)
        self._newest.clear()
        for line in read_journal(self._folder, SOLUTIONS):
            self._take(line["step"], [_solution(record) for record in line["solutions"]])

    def add(self, step: int, solutions: Sequence[Solution]) -> None:
        """Keep what the generator wrote at a step."""
        assert self._journal is not None, "opened before the first leg"
        self._journal.write({"step": step, "solutions": [asdict(solution) for solution in solutions]})
        self._take(step, solutions)

    def draw(self, count: int) -> list[Task]:
        """Return so many tasks, half of them right as far as there are both; none twice, if there are enough.

        Raises:
            ValueError: there are no solutions.
        """
        kinds = [[one for one in self._newest if one[1].right == right] for right in (True, False)]
        if not any(kinds):
            raise ValueError(
                "there is no solution for the verifier to judge: none of the generator's answers has a judged outcome "
                "and a step in it"
            )
        order = random.Random(f"{self._seed}:{self._draws}")
        self._draws += 1
        for kind in kinds:
            order.shuffle(kind)
        drawn: list[tuple[str, Solution]] = []
        while len(drawn) < count:
            kind = kinds[len(drawn) % 2] or kinds[1 - len(drawn) % 2]
            if not kind:  # fewer solutions than tasks: begin anew
                kinds = [[one for one in self._newest if one[1].right == right] for right in (True, False)]
                continue
            drawn.append(kind.pop())
        return [self._task(f"{self._draws}.{place}:{name}", solution) for place, (name, solution) in enumerate(drawn)]

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Return the share of right solutions among those judged, and of the judgements by kind that are right."""
        found: dict[str, float] = {}
        rights = [bool(rollout.task.reference["verdict"]) for rollout in rollouts]
        found["solutions_right"] = sum(rights) / len(rights) if rights else 0.0
        for right, name in ((True, "right_seen"), (False, "wrong_seen")):
            own = [
                score.evidence.get("final") == int(right)
                for score, kind in zip(scores, rights, strict=True)
                if kind == right and score.status == "scored"
            ]
            if own:
                found[name] = sum(own) / len(own)
        return found

    def state(self) -> dict[str, Any]:
        """Return how often it was drawn from; the solutions are in the generator's folder."""
        return {"draws": self._draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._draws = state["draws"]

    def _take(self, step: int, solutions: Sequence[Solution]) -> None:
        self._newest.extend((f"{step}.{number}", solution) for number, solution in enumerate(solutions))

    def _task(self, name: str, solution: Solution) -> Task:
        return Task(
            id=name,
            prompt=self._ask(solution.question, solution.steps),
            reference={"verdict": solution.right, "steps": len(solution.steps)},
        )


def _solution(record: Mapping[str, Any]) -> Solution:
    return Solution(question=record["question"], steps=tuple(record["steps"]), right=record["right"])
