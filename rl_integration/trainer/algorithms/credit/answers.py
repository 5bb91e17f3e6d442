"""Answers as the rules of credit read them: whose turn each token is, which step it belongs to, what steps are worth.

Scorers say where a step stands by characters of the graded text, which is the assistant's text alone, turns joined by a
newline (`adjudge.protocol.response_text`).  The tokens of a turn are those that the policy wrote in one go; what a tool
put in belongs to no step.  A turn that is one step has all of its tokens; elsewhere a token belongs to the first step
that it has a character of.

The steps of an answer are not known, and it has no vote in what is said of steps, if the scorer gave none, if one of
them was not judged, or if the text of a turn is not found in what its tokens say.

Not covered: what the steps are worth to the policy (`credit.table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from adjudge.protocol import Score, StepScore, content_text
from adjudge.rl_integration.trainer.algorithms.credit.spans import read_steps, steps_of_tokens
from adjudge.rl_integration.trainer.algorithms.credit.token_spans import Decode, Span, token_spans
from adjudge.rl_integration.trainer.contract.arrays import Bools, Floats, Integers
from adjudge.rl_integration.trainer.contract.rollout import Rollout


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """n answers, padded to t tokens.

    Attributes:
        rollouts: n answers.
        own: (n, t) tokens that the policy wrote.
        turns: (n, t) the turn of each of those, from 0; -1 elsewhere.
        steps: (n, t) the step of each token, from 0; -1 for none.
        values: n arrays, what the steps of each answer are worth; empty where they are not known.
        worth: (n,) the answers' scores as they were given, without any penalty; NaN where there is none.
    """

    rollouts: Sequence[Rollout]
    own: Bools
    turns: Integers
    steps: Integers
    values: Sequence[Floats]
    worth: Floats

    @classmethod
    def of(cls, rollouts: Sequence[Rollout], scores: Sequence[Score], decode: Decode, *, part: str = "") -> Answers:
        """Return answers with their scores.

        Args:
            rollouts: n answers.
            scores: one for each.
            decode: of the policy.
            part: whose steps are read, for a score that is made of several: a name, or names with dots between; "" for
                the score's own.

        Raises:
            ValueError: a part was named, and no score has parts; or the steps of a score overlap.
        """
        if part and not any(score.parts for score in scores) and any(score.status == "scored" for score in scores):
            raise ValueError(f"credit.part is {part!r}, and no score has parts; leave it out, or mix several scorers")
        width = max((len(rollout.ids) for rollout in rollouts), default=0)
        own = np.zeros((len(rollouts), width), dtype=np.bool_)
        turns, steps = (np.full(own.shape, -1, dtype=np.int64) for _ in range(2))
        values: list[Floats] = []
        for row, (rollout, score) in enumerate(zip(rollouts, scores, strict=True)):
            length, runs = len(rollout.ids), _runs(rollout.own)
            own[row, :length] = rollout.own
            for turn, (begin, end) in enumerate(runs):
                turns[row, begin:end] = turn
            known, spans = read_steps(_steps(score, part))
            placed = _placed(rollout, runs, spans, decode) if spans else None
            values.append(known if placed is not None else np.zeros(0))
            if placed is not None:
                steps[row, :length] = placed
        return cls(
            rollouts=rollouts,
            own=own,
            turns=turns,
            steps=steps,
            values=values,
            worth=np.array([np.nan if score.value is None else score.value for score in scores], dtype=np.float64),
        )

    @property
    def known(self) -> Bools:
        """(n,) whether the steps of an answer are known."""
        return np.array([len(values) > 0 for values in self.values], dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class _Turn:
    """An assistant's turn: its tokens' places, its text, and where that begins in the graded text."""

    run: Span
    text: str
    begin: int
    spans: list[tuple[int, Span]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.begin + len(self.text)


def _steps(score: Score, part: str) -> tuple[StepScore, ...]:
    """The steps that a score or one of its parts has; none where there is no such part."""
    found: Score | None = score
    for name in part.split(".") if part else ():
        found = found.parts.get(name) if found is not None else None
    return found.steps if found is not None and found.status == "scored" else ()


def _runs(own: Bools) -> list[Span]:
    """First token of each stretch that the policy wrote, and the one after its last."""
    edges = np.flatnonzero(np.diff(own.astype(np.int8), prepend=0, append=0))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _placed(rollout: Rollout, runs: Sequence[Span], spans: Sequence[Span], decode: Decode) -> Integers | None:
    """The step of each token of an answer; None if that cannot be told."""
    texts = [content_text(turn.get("content")) for turn in rollout.turns if turn.get("role") == "assistant"]
    texts = texts if rollout.turns else [rollout.text]
    if len(texts) != len(runs):
        return None
    begins = accumulate((len(text) + 1 for text in texts[:-1]), initial=0)
    found = np.full(len(rollout.ids), -1, dtype=np.int64)
    for run, text, begin in zip(runs, texts, begins, strict=True):
        turn = _Turn(run=run, text=text, begin=begin)
        turn.spans.extend((step, span) for step, span in enumerate(spans) if _touches(span, turn))
        placed = _of_turn(turn, rollout.ids[slice(*run)], decode)
        if placed is None:
            return None
        found[slice(*run)] = placed
    return found


def _touches(span: Span, turn: _Turn) -> bool:
    empty = turn.begin == turn.end and span == (turn.begin, turn.end)
    return empty or (span[0] < turn.end and span[1] > turn.begin)


def _of_turn(turn: _Turn, ids: Sequence[int], decode: Decode) -> Integers | int | None:
    """The step of each token of a turn, or the one that has them all; None if that cannot be told."""
    if not turn.spans:
        return -1
    step, (first, last) = turn.spans[0]
    if len(turn.spans) == 1 and first <= turn.begin and turn.end <= last:
        return step
    text = decode(ids)
    shift = _shift(text, turn.text)
    if shift is None:
        return None
    offsets = [(begin - shift, end - shift) for begin, end in token_spans(decode, ids)]
    local = steps_of_tokens([(first - turn.begin, last - turn.begin) for _, (first, last) in turn.spans], offsets)
    names = np.array([step for step, _ in turn.spans] + [-1], dtype=np.int64)
    return names[local]


def _shift(text: str, graded: str) -> int | None:
    """Where a turn's text begins in what its tokens say; None if it is not there, or more than once."""
    if text.startswith(graded):
        return 0
    return text.find(graded) if text.count(graded) == 1 else None
