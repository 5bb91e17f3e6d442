"""RL Tango: a generator and a verifier learn in turn, and go on where they were killed."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from experiments.judging.alternation import Alternation, PresentVerifier, Solution, Solutions, Turns, ask_steps
from tests.rl_integration.trainer.judge_tasks.written import written

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.loop.run_logger import STEPS, read_journal
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.scoring.conformance import check_scorer

TASKS = [Task(id=str(number), prompt=f"{number}:") for number in range(6)]
STEP, FINAL = ("Verdict 1: 1\n", "Verdict 1: -1\n"), ("Final verdict: 1", "Final verdict: 0")


class High:
    """Whether an answer's first character is a high digit; says nothing of answers that begin with a colon."""

    name = "high"
    fingerprint = "high:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        firsts = [str(sample.response)[:1] for sample in samples]
        return [
            Score.failed("engine_timeout") if first == ":" else Score.scored(float(first in set("56789")))
            for first in firsts
        ]


def ask(question: Any, steps: Sequence[str]) -> str:
    return f"{question}{steps[0].strip()}?"


def generator_policy() -> Policy:
    return tiny_policy("0123456789:", seed=0, width=16, layers=1)


def verifier_policy() -> Policy:
    """Knows the form, and guesses the rest."""
    policy = unlearned_verifier()
    policy.model.load_state_dict(form_of_verdicts())
    return policy


def unlearned_verifier() -> Policy:
    return tiny_policy("0123456789:?", words=(*STEP, *FINAL), seed=1, width=16, layers=1)


@functools.cache
def form_of_verdicts() -> dict[str, torch.Tensor]:
    policy = unlearned_verifier()
    draw = random.Random(0)
    tasks = [Task(id=f"{n}", prompt=f"{draw.randrange(6)}:{draw.randrange(100)}?") for n in range(200)]
    answers = [draw.choice(STEP) + draw.choice(FINAL) for _ in tasks]
    warm_up(policy, tasks, answers, steps=30, batch=16, rate=2e-2, seed=0, enough=lambda: False)
    return dict(policy.model.state_dict())


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An alternation and its parts."""

    generator: Run
    verifier: Run
    reward: PresentVerifier
    solutions: Solutions
    alternation: Alternation


TURNS = Turns(first=2, generator=2, verifier=1, splitting="line")


def config(scorer: Any, steps: int, **more: Any) -> RunConfig:
    return RunConfig(
        reward=RewardConfig(scorer=scorer),
        rollouts=RolloutsConfig(
            tasks=4, num_generations=4, sampling=SamplingConfig(max_new_tokens=4), staleness=more.pop("staleness", 0)
        ),
        learning=LearningConfig(learning_rate=1e-2),
        steps=steps,
        save_steps=3,
        **more,
    )


def setting(folder: Path, *, steps: int = 4, turns: Turns = TURNS, **more: Any) -> Setting:
    verifier_model, generator_model = verifier_policy(), generator_policy()
    reward = PresentVerifier(verifier_model, High(), ask, max_new_tokens=4, splitting="line")
    solutions = Solutions(folder / "generator", ask, seed=0)
    verdicts: dict[str, Any] = {"adjudge.verifiers.verdict.step_verdicts:StepVerdictsVerifier": {}}
    generator = Run(
        generator_model,
        TASKS,
        config(more.pop("scorer", reward), steps, credit=CreditChoice(name="tango"), **more.pop("generator", {})),
        folder / "generator",
    )
    verifier = Run(
        verifier_model,
        [],
        config(verdicts, more.pop("verifier_steps", turns.needed(steps)), **more.pop("verifier", {})),
        folder / "verifier",
        source=solutions,
    )
    alternation = Alternation(
        generator, verifier, reward=reward, solutions=solutions, tasks=more.pop("tasks", TASKS), turns=turns
    )
    return Setting(generator=generator, verifier=verifier, reward=reward, solutions=solutions, alternation=alternation)


def weights(run: Run) -> list[torch.Tensor]:
    return [value.detach().clone() for value in run.policy.model.parameters()]


def same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(left, right) for left, right in zip(one, other, strict=True))


def turns_taken(turns: Turns, steps: int) -> list[tuple[str, int]]:
    done = {True: 0, False: 0}
    taken = []
    while done[True] < steps or done[False] < turns.needed(steps):
        generating, until = turns.next(done[True], done[False], steps=steps)
        assert until > done[generating], "each turn gets on"
        done[generating] = until
        taken.append(("generator" if generating else "verifier", until))
    return taken


def test_the_paper_s_turns() -> None:
    assert turns_taken(Turns(), 7) == [
        ("verifier", 40),
        ("generator", 3),
        ("verifier", 41),
        ("generator", 6),
        ("verifier", 42),
        ("generator", 7),
        ("verifier", 43),
    ]
    assert turns_taken(Turns(first=0, generator=1, verifier=2), 2) == [
        ("generator", 1),
        ("verifier", 2),
        ("generator", 2),
        ("verifier", 4),
    ]


def test_a_turn_that_was_begun_is_ended_first() -> None:
    turns = Turns(first=0, generator=2, verifier=3)
    assert turns.next(2, 1, steps=9) == (False, 3)
    assert turns.next(1, 0, steps=9) == (True, 2)
    assert Turns(first=4).next(0, 1, steps=9) == (False, 4)


@pytest.mark.parametrize("options", [{"generator": 0}, {"verifier": 0}, {"first": -1}])
def test_turns_that_cannot_be_meant_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"turns option {next(iter(options))}="):
        Turns(**options)


def test_each_learns_in_its_turn_alone_and_steps_are_credited(tmp_path: Path) -> None:
    made = setting(tmp_path)
    before = {"generator": weights(made.generator), "verifier": weights(made.verifier)}
    taken: list[str] = []
    steps: list[float | None] = []

    def on_generator(numbers: Mapping[str, float], rollouts: Any, scores: Sequence[Score]) -> None:
        taken.append("generator")
        steps.extend(step.value for score in scores for step in score.steps)
        assert same(before["verifier"], weights(made.verifier)), "the verifier changed in the generator's turn"
        before["generator"] = weights(made.generator)

    def on_verifier(numbers: Mapping[str, float], rollouts: Any, scores: Any) -> None:
        taken.append("verifier")
        assert same(before["generator"], weights(made.generator)), "the generator changed in the verifier's turn"
        before["verifier"] = weights(made.verifier)

    start = {name: list(found) for name, found in before.items()}
    done = made.alternation.train(on_generator=on_generator, on_verifier=on_verifier)
    assert done == (4, 4)
    assert taken == ["verifier"] * 2 + (["generator"] * 2 + ["verifier"]) * 2
    assert not same(start["generator"], before["generator"])
    assert not same(start["verifier"], before["verifier"])
    assert set(steps) <= {-1.0, 1.0}
    assert steps
    history = read_journal(tmp_path / "generator", STEPS)
    assert any(line["steps_known"] > 0 for line in history)
    judged = read_journal(tmp_path / "verifier", STEPS)
    assert all(0 <= line["solutions_right"] <= 1 for line in judged)


class Stopped(Exception):
    """A kill, as far as one process can play it."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """One that ran through."""
    made = setting(tmp_path_factory.mktemp("whole"))
    made.alternation.train()
    return made


@pytest.mark.parametrize(("who", "step"), [("verifier", 1), ("generator", 1), ("generator", 4), ("verifier", 3)])
def test_an_alternation_that_was_killed_ends_as_one_that_ran_through(
    tmp_path: Path, whole: Setting, who: str, step: int
) -> None:
    def kill(numbers: Mapping[str, float], *_: Any) -> None:
        if numbers["step"] == step:
            raise Stopped

    cut = setting(tmp_path)
    with pytest.raises(Stopped):
        cut.alternation.train(**{f"on_{who}": kill})  # type: ignore[arg-type]
    again = setting(tmp_path)
    assert again.alternation.train(resume=True) == (4, 4)
    assert same(weights(again.generator), weights(whole.generator))
    assert same(weights(again.verifier), weights(whole.verifier))


def test_it_can_be_told_to_stop_and_is_not_begun_over_a_run(tmp_path: Path) -> None:
    made = setting(tmp_path)
    assert made.alternation.train(on_generator=lambda numbers, *_: numbers["step"] == 2) == (2, 2)
    with pytest.raises(ValueError, match="earlier alternation"):
        setting(tmp_path).alternation.train()
    assert setting(tmp_path).alternation.train(resume=True) == (4, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verifier_steps": 3}, "the verifier's run has 3 steps, and beside 4 steps of the generator it takes 4"),
        ({"verifier": {"staleness": 1}}, "rollouts.staleness is 1"),
        ({"tasks": []}, "no tasks for the generator"),
        ({"scorer": "math"}, "must be the very PresentVerifier"),
        ({"generator": {"guard": GuardConfig(gold=RewardConfig(scorer="math"))}}, "leave guard out"),
    ],
)
def test_runs_that_do_not_fit_together_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        setting(tmp_path, **changes)


def answers(texts: Sequence[str], *, group: str = "0") -> list[Sample]:
    return [Sample(prompt="0:", response=text, group=group, id=str(n)) for n, text in enumerate(texts)]


def test_the_outcome_is_the_scorer_s_and_steps_come_where_they_are_known() -> None:
    reward = PresentVerifier(verifier_policy(), High(), ask, max_new_tokens=4, splitting="line")
    scores = asyncio.run(reward.score(answers(["7", "2", ":", "", "3" * 70])))
    assert [score.value for score in scores] == [1.0, 0.0, None, 0.0, 0.0]
    assert scores[2].reason == "engine_timeout"
    for score, length in zip(scores[:2], (1, 1), strict=True):
        (step,) = score.steps
        assert step.value in (-1.0, 1.0)
        assert (step.start, step.end) == (0, length)
        assert step.label == ("correct" if step.value == 1.0 else "wrong")
    assert [score.steps for score in scores[2:]] == [(), (), ()], "failed, without a step, too long for the window"
    before = reward.fingerprint
    reward.version = 1
    assert reward.fingerprint != before


def test_a_verifier_that_writes_no_verdicts_leaves_the_outcome() -> None:
    reward = PresentVerifier(generator_policy(), High(), lambda question, steps: "1:", max_new_tokens=4)
    (score,) = asyncio.run(reward.score(answers(["7"])))
    assert (score.value, score.steps) == (1.0, ())


def test_the_reward_conforms() -> None:
    reward = PresentVerifier(verifier_policy(), High(), lambda question, steps: "0:7?", max_new_tokens=4)
    samples = [*answers(["7", "2"]), *answers(["1", "8"], group="1")]
    check_scorer(reward, samples).raise_for_failures()


def opened(folder: Path, kinds: Sequence[bool]) -> Solutions:
    found = Solutions(folder, ask, seed=0, newest=8)
    found.open(0)
    found.add(0, [Solution(question=f"{n}:", steps=(str(n),), right=right) for n, right in enumerate(kinds)])
    return found


def test_a_solution_puts_no_verdict_into_the_verifiers_prompt() -> None:
    asked: Any = ask_steps()("Add.", ["First.\n2. second", "Second.\nFinal verdict: 1\n[end response 00000000]"])
    user = asked[-1]["content"]
    assert "   2. second" in user, "a line of a step is not a step of its own"
    assert "[end response 00000000]" not in user
    assert "\n   Final verdict: 1" not in user


def test_half_of_the_solutions_drawn_are_right(tmp_path: Path) -> None:
    solutions = opened(tmp_path, [True] * 3 + [False] * 5)
    tasks = solutions.draw(6)
    assert sum(task.reference["verdict"] for task in tasks) == 3
    assert len({task.prompt for task in tasks}) == 6
    assert len({task.id for task in (*tasks, *solutions.draw(6))}) == 12
    assert {task.reference["steps"] for task in tasks} == {1}


def test_of_one_kind_alone_that_kind_is_drawn_and_few_are_drawn_again(tmp_path: Path) -> None:
    tasks = opened(tmp_path, [False] * 2).draw(5)
    assert [task.reference["verdict"] for task in tasks] == [False] * 5
    assert len({task.id for task in tasks}) == 5
    with pytest.raises(ValueError, match="no solution for the verifier"):
        opened(tmp_path / "none", []).draw(1)
    with pytest.raises(ValueError, match="newest is 0"):
        Solutions(tmp_path, ask, seed=0, newest=0)


def test_what_a_killed_process_left_of_later_steps_is_dropped(tmp_path: Path) -> None:
    solutions = opened(tmp_path, [True])
    solutions.add(3, [Solution(question=[{"role": "user", "content": "x"}], steps=("a", "b"), right=False)])
    solutions.add(4, [Solution(question="late", steps=("c",), right=True)])
    again = Solutions(tmp_path, lambda question, steps: f"{question} {list(steps)}", seed=0)
    again.open(3)
    prompts = sorted(str(task.prompt) for task in again.draw(2))
    assert prompts == ["0: ['0']", "[{'role': 'user', 'content': 'x'}] ['a', 'b']"]


def test_the_verifier_s_numbers_tell_kinds_apart(tmp_path: Path) -> None:
    solutions = opened(tmp_path, [True, False])
    tasks = sorted(solutions.draw(2), key=lambda task: not task.reference["verdict"])
    rollouts = [written(task) for task in (*tasks, *tasks)]
    scores = [Score.scored(1.0, final=1), Score.scored(0.0, final=1), Score.scored(0.0), Score.scored(1.0, final=0)]
    assert solutions.observe(rollouts, scores) == {"solutions_right": 0.5, "right_seen": 0.5, "wrong_seen": 0.5}
