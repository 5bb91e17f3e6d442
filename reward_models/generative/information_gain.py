"""What each turn of a trajectory adds to the probability of the right answer (IGPO, `GuoqingWang1/IGPO`).

    p_t = pool(p(reference | prompt, turns up to t, lead)),   gain of turn t = p_t - p_(t-1),   p_0 without any turn

A turn is an assistant's turn with all that follows it before the next one, such as a tool's output.  The last turn, if
nothing follows it, is the answer: it adds no information and gets the terminal reward instead, that of the `terminal`
scorer, or `malformed` where that finds no answer.  `Score.steps` has the turns, `Score.value` their sum:
p_(T-1) - p_0 plus the terminal reward, however many turns there are, so idle turns earn nothing.  With
`gain: log_ratio` a turn gains log p_t - log p_(t-1), as SIGHT (arXiv 2602.11551) has it of the whole answer.

What the sum hides, single turns show: a turn that misleads and one that takes it back lose and win the same.  A trainer
that discounts, or normalises turns alone, pays for that.  As with every probability of the reference, a turn that
names many answers makes each of them likelier.

Not covered: advantages.  IGPO's code sums the gains that follow without discount and subtracts the group's mean at each
place; the paper normalises all gains of a group together and discounts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self

from adjudge.options import Count
from adjudge.protocol import NO_COST, Message, Sample, Score, StepScore, content_text
from adjudge.responses.aggregate import Pooling
from adjudge.reward_models.generative.reference_probability import (
    Asked,
    Forced,
    ForcedScorer,
    Probability,
    references_of,
    turns_of,
)
from adjudge.scoring.nested import options_of

_ROLES = ("assistant", "tool", "user", "function", "ipython")
_MALFORMED = ("bad_format", "no_answer", "several_answers", "truncated", "unfinished_reasoning", "unparsable_answer")
_LEAST: Final = 1e-300  # probability that has a logarithm


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    """A trajectory: its turns, each with what follows it, and where they stand in the graded text."""

    prompt: tuple[Message, ...]
    blocks: tuple[tuple[Message, ...], ...]
    spans: tuple[tuple[int, int], ...]
    references: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """Whether nothing follows the last turn."""
        return len(self.blocks[-1]) == 1

    @property
    def informing(self) -> int:
        """How many turns can add information."""
        return len(self.blocks) - self.answered


@dataclass(frozen=True, kw_only=True)
class InformationGain(ForcedScorer):
    """The gain in the right answer's probability over a trajectory; `Score.steps` has each turn's.

    The reference is the right answer as a text or a number, or a list of accepted ones, of which the first is forced;
    the `terminal` scorer gets it as it is.

    Attributes:
        gain: "difference" of the probabilities, or "log_ratio", that of their logarithms; with `pooling: prod` they are
            the whole reference's.
        lead: how the assistant begins its answer where the reference is forced; "" for no such turn.
        terminal: a scorer of the whole response, whose score the last turn gets; None leaves that turn unjudged.
        malformed: what the last turn gets where there is no answer in the form that the terminal scorer wants.
        max_turns: a trajectory of more assistant turns scores 0 (`too_complex`).
    """

    name: ClassVar[str] = "information_gain"

    pooling: Pooling = "exp_mean_logp"
    gain: Literal["difference", "log_ratio"] = "difference"
    lead: str = "<answer>"
    terminal: Any = None
    malformed: float = -2.0
    max_turns: Count = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.terminal is not None and (
            not callable(getattr(self.terminal, "score", None)) or getattr(self.terminal, "groupwise", False)
        ):
            raise ValueError(
                f"{self.name} option terminal={self.terminal!r}; give a scorer of single responses (adjudge.load makes "
                "one of a name), or none"
            )

    @classmethod
    def from_spec(cls, body: Any, loader: Any) -> Self:
        """Read the options of a spec; `terminal` may be a spec itself, such as `token_f1`."""
        return cls(**options_of(cls, body, loader, ("terminal",)))

    def asked(self, sample: Sample) -> Asked | Score:
        """Return the reference behind the first so many turns, for each number of them that can add information."""
        read = self._read(sample)
        if isinstance(read, Score):
            return read
        # The same turns, all of them with a word in the place of their text.
        blocks = tuple(tuple({**turn, "content": "-"} for turn in block) for block in read.blocks)
        forced = [self._forced(read, turns) for turns in range(read.informing + 1)]
        shaped = self._forced(replace(read, blocks=blocks), read.informing)
        return Asked(forced=forced, plain=forced[0], shaped=shaped, scored=partial(self._scored, read))

    def _read(self, sample: Sample) -> _Turns | Score:
        """The turns of a sample, or its score if it has none."""
        response = sample.response
        given: Sequence[Message] = (
            ({"role": "assistant", "content": response},) if isinstance(response, str) else tuple(response)
        )
        try:
            texts = [content_text(turn.get("content")) for turn in given]
        except ValueError as error:
            return Score.scored(0.0, "no_answer", error=str(error))
        if (size := sum(map(len, texts))) > self.max_characters:
            lack = f"the response has {size} characters, and max_characters={self.max_characters}"
            return Score.scored(0.0, "too_complex", error=lack)
        if any(turn.get("role") not in _ROLES for turn in given):
            return Score.scored(0.0, "bad_format", error=f"a turn's role is none of {', '.join(_ROLES)}")
        blocks: list[list[Message]] = []
        spans: list[tuple[int, int]] = []
        end = -1
        for turn, text in zip(given, texts, strict=True):
            if turn.get("role") == "assistant":
                spans.append((end + 1, end + 1 + len(text)))  # `response_text` joins the turns by a newline
                end = spans[-1][1]
                blocks.append([{**turn, "content": self.own_turn(text)}])
            elif blocks:
                blocks[-1].append({**turn, "content": text})
        if not any(text.strip() for turn, text in zip(given, texts, strict=True) if turn.get("role") == "assistant"):
            return Score.scored(0.0, "no_answer", error="no assistant turn holds text")
        if len(blocks) > self.max_turns:
            lack = f"the response has {len(blocks)} assistant turns, and max_turns={self.max_turns}"
            return Score.scored(0.0, "too_complex", error=lack)
        return _Turns(
            prompt=turns_of(sample.prompt),
            blocks=tuple(map(tuple, blocks)),
            spans=tuple(spans),
            references=tuple(references_of(sample.reference)),
        )

    def _forced(self, trajectory: _Turns, turns: int) -> Forced:
        """The reference behind the first so many turns."""
        before = tuple(itertools.chain.from_iterable(trajectory.blocks[:turns]))
        lead: tuple[Message, ...] = ({"role": "assistant", "content": self.lead},) if self.lead else ()
        return Forced(turns=(*trajectory.prompt, *before, *lead), text=trajectory.references[0])

    async def ends(self, samples: Sequence[Sample]) -> Sequence[Score | None]:
        """Return the scores of the terminal scorer, if there is one."""
        if self.terminal is None or not samples:
            return [None] * len(samples)
        scores: list[Score | None] = list(await self.terminal.score(samples))
        if len(scores) != len(samples):
            raise RuntimeError(f"{self.name}: the terminal scorer gave {len(scores)} scores for {len(samples)} samples")
        return scores

    def _scored(self, trajectory: _Turns, probabilities: Sequence[Probability], end: Score | None) -> Score:
        chances = [one.value for one in probabilities]
        told = [math.log(max(one, _LEAST)) for one in chances] if self.gain == "log_ratio" else chances
        values: list[float | None] = [after - before for before, after in itertools.pairwise(told)]
        cost = sum((one.cost for one in probabilities), NO_COST)
        parts = {} if end is None else {"terminal": end}
        if end is not None:
            cost += end.cost
        evidence: dict[str, Any] = {"probabilities": chances}
        reason = ""
        if end is not None and end.value is None:
            failed = Score(value=None, status=end.status, reason=end.reason, parts=parts, evidence=evidence, cost=cost)
            return replace(failed, steps=_steps(trajectory, [*values, None][: len(trajectory.blocks)]))
        if end is not None:
            malformed = end.reason in _MALFORMED or not trajectory.answered
            reward = self.malformed if malformed else end.value or 0.0
            reason = end.reason if end.reason or not malformed else "no_answer"
            if trajectory.answered:
                values.append(reward)
            else:
                values[-1] = (values[-1] or 0.0) + reward
        elif trajectory.answered:
            values.append(None)
        total = math.fsum(value for value in values if value is not None)
        return Score(
            value=total, reason=reason, steps=_steps(trajectory, values), parts=parts, evidence=evidence, cost=cost
        )


def _steps(trajectory: _Turns, values: Sequence[float | None]) -> tuple[StepScore, ...]:
    last = len(values) - 1 if trajectory.answered else -1
    return tuple(
        StepScore(value=value, label="answer" if at == last else "gain", start=start, end=end)
        for at, (value, (start, end)) in enumerate(zip(values, trajectory.spans, strict=True))
    )
