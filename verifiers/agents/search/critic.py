"""CriticSearch's reward: a model that knows the answer looks back at a whole trajectory and labels each turn.

    value = (1 - a) * outcome + a * mean of the turns, good +1 and bad -1; a = 0.25

One call for each trajectory.  A count of labels other than the count of turns is not a verdict (`judge_unparsable`);
nothing stands in for a label that is missing.  The critic sees who wrote each line, so that no text passes for
another's or opens a turn.

Source: CriticSearch, arXiv 2511.12159; its public repository is an early fork of another project without this reward,
and a = 0.25 is from a third-party note.  Turns are normalised over a group by the trainer: its credit `critic_search`
reads `Score.steps` and has an a of its own; give this scorer `share=0` there.

Not covered: training critics.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from adjudge.options import Count, Share
from adjudge.prompts.asking import Answer
from adjudge.prompts.scorer import Case, guard, shortened
from adjudge.prompts.template import Rendered
from adjudge.protocol import Sample, Score
from adjudge.responses.trajectories.trajectory import Call, Trajectory, TrajectoryForm, Turn, steps_at
from adjudge.scoring.nested import asked, cost_of, options_of, part_of, without_number
from adjudge.verifiers.agents.scoring import KeyedLabels, TrajectoryModelScorer
from adjudge.verifiers.agents.search.signals import answers_shown

_WORTH = {"good": 1.0, "bad": -1.0}
_SHOWN = 2_000  # characters of one text of a tool or a user


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode(Case):
    """A trajectory that the critic reads, with the turns that it labels by their numbers."""

    turns: tuple[Turn, ...]
    judged: Mapping[int, Turn]


@dataclass(frozen=True, kw_only=True)
class TurnCriticScorer(TrajectoryModelScorer):
    """How much the turns of a trajectory helped, by a critic that knows the answer; mixed with the outcome.

    The reference is the answer, or a list of accepted ones; the `outcome` scorer gets it as it is.

    Attributes:
        reasoning: "keep" shows the critic all that the agent wrote; "strip" leaves out its thoughts.
        outcome: a scorer of the whole response; None for the turns alone.
        share: a, the weight of the turns beside an outcome, in [0, 1]; 0 leaves the labels in `Score.steps` alone.
        max_turns: a trajectory of more turns is not shown (`too_complex`).
    """

    name: ClassVar[str] = "turn_critic"
    version: ClassVar[str] = "4"
    needs_reference: ClassVar[bool] = True
    text_template: ClassVar[str] = "verifiers/agents/search/turn_critic"

    reasoning: Literal["strip", "keep"] = "keep"
    outcome: Any = None
    share: Share = 0.25
    max_turns: Count = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "outcome", part_of(self.outcome, f"{self.name} option outcome"))

    @classmethod
    def from_spec(cls, body: Any, loader: Any) -> Self:
        """Read the options of a spec; `outcome` may be a spec itself, such as `token_f1`."""
        return cls(**options_of(cls, body, loader, ("outcome",)))

    @property
    def fingerprint(self) -> str:
        """That of the model's part, and of the outcome's."""
        if self.outcome is None:
            return super().fingerprint
        return f"{replace(self, outcome=None).fingerprint}+{self.outcome.fingerprint}"

    @property
    def lowest(self) -> float:
        """What the turns of a response get that is not shown."""
        return -1.0

    def gold(self, sample: Sample) -> list[str]:
        """Return the accepted answers; `BadReferenceError` if there are none."""
        return answers_shown(sample.reference)

    def read(self, sample: Sample, trajectory: Trajectory) -> Case | Score:
        """Return what is shown to the model, or the score of a sample that is not shown to it."""
        turns = trajectory.turns
        text = "\n".join(line for turn in turns for line in (turn.text, *calls_beside(turn, self.shape)))
        fault = guard(text, min_words=self.min_words, max_characters=self.max_characters)
        if fault or len(turns) > self.max_turns:
            return Score.scored(self.lowest, fault or "too_complex")
        judged = dict(enumerate((turn for turn in turns if turn.acted), start=1))
        return Episode(sample=sample, response=text, turns=turns, judged=judged)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        turns = await super().score(samples)
        if self.outcome is None:
            return turns
        fine = [place for place, score in enumerate(turns) if score.value is not None]
        said = await asked(self.outcome, [samples[place] for place in fine], called=f"the outcome of {self.name!r}")
        mixed = list(turns)
        for place, outcome in zip(fine, said, strict=True):
            mixed[place] = self._mixed(turns[place], outcome)
        return mixed

    def _mixed(self, turns: Score, outcome: Score) -> Score:
        parts = {"outcome": outcome, "turns": replace(turns, steps=())}
        if missing := without_number(parts):
            return replace(missing, steps=turns.steps, provenance=turns.provenance)
        value = (1 - self.share) * (outcome.value or 0.0) + self.share * (turns.value or 0.0)
        return replace(turns, value=value, reason=outcome.reason, parts=parts, cost=cost_of(list(parts.values())))

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        episodes = [case for case in cases if isinstance(case, Episode)]
        read = [KeyedLabels(tuple(map(str, episode.judged)), tuple(_WORTH)) for episode in episodes]
        return await self.decided(episodes, self._prompt, read, self._labelled)

    def _prompt(self, episode: Episode) -> Rendered:
        # made of the response and not of `turns` alone: the base asks with "-" what made a prompt too long
        turns = episode.turns if episode.response != "-" else ()
        values = {
            "question": episode.sample.prompt,
            "reference": "\n".join(self.gold(episode.sample)),
            "trajectory": shown_turns(turns, self.shape, thoughts=self.reasoning == "keep"),
            "verdicts": "\n".join(f"{number}: good or bad" for number in episode.judged),
        }
        return self.render(self.templates()[0], values)

    def _labelled(self, episode: Episode, answers: list[Answer[tuple[str, ...]]]) -> Score:
        worth = [_WORTH[label] for label in answers[0].value]
        good = sum(one > 0 for one in worth)
        return Score(
            value=sum(worth) / len(worth),
            reason="" if good == len(worth) else "wrong",
            steps=steps_at(episode.judged.values(), worth, answers[0].value),
            evidence={"turns": list(episode.judged), "text": shortened(answers[0].text)},
        )


def shown_turns(turns: Sequence[Turn], form: TrajectoryForm, *, thoughts: bool) -> str:
    """Return turns line by line, the agent's own with their numbers from 1."""
    lines: list[str] = []
    numbers = itertools.count(1)
    for turn in turns:
        lines += [f"turn {next(numbers)}"] if turn.acted else []
        lines += _lines("agent", turn.text if thoughts else "".join(text for _, text in turn.outside(form.think)))
        lines += [f"agent| {call}" for call in calls_beside(turn, form)]
        for text in (*(result.text for result in turn.results), *turn.replies):
            cut = len(text) - _SHOWN
            lines += _lines("tool", text if cut <= 0 else f"{text[:_SHOWN]}\n({cut} characters are left out)")
    return "\n".join(lines)


def calls_beside(turn: Turn, form: TrajectoryForm) -> list[str]:
    """Return the calls that stand beside a turn's text, each in one line."""
    written = {(block.start, block.end) for block in turn.tagged(form.tool_call)}
    return [_in_one_line(call) for call in turn.calls if (call.start, call.end) not in written]


def _in_one_line(call: Call) -> str:
    written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, default=str)
    return f"calls {' '.join(call.name.split())}: {' '.join(written.split())}"


def _lines(who: str, text: str) -> list[str]:
    return [f"{who}| {line}".rstrip() for line in text.strip().splitlines()]
