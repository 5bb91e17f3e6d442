"""Answers as the rules of credit read them: turns, steps and what these are worth, token by token.

Scorers say where a step stands by characters of the assistant's text, turns joined by a newline (`StepScore.start` and
`end`); the tokens of a turn are those that the policy wrote in one go.  A turn that is one step has all of its tokens;
elsewhere a token belongs to the first step that it has a character of, since many tokens begin with the blank before a
word, and between steps to none, -1.

The steps of an answer are not known, and it has no vote in what is said of steps, if the scorer gave none, if one of
them was not judged, or if the text of a turn is not found in what its tokens say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from adjudge.protocol import Score, StepScore, content_text
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, Integers, floats
from adjudge.rl_integration.trainer.data.task import Rollout

Decode: TypeAlias = Callable[[Sequence[int]], str]
"""From tokens to their text without special tokens (`Policy.decode`)."""

Span: TypeAlias = tuple[int, int]


def token_spans(decode: Decode, ids: Sequence[int]) -> list[Span]:
    """Return the first character of each token in `decode(ids)`, and the one after its last.

    Tokens are decoded one by one where that adds up to the text.  Often it does not, since decoders strip first blanks,
    and a character may be several tokens, each of which then has all of it; then each is decoded behind the few before
    it, or, where that does not add up either, every beginning by itself, which takes time in the square of the length.
    """
    text = decode(ids)
    silent = {token: not decode([token, token]) for token in set(ids)}  # twice: a first blank may be stripped
    spoken = [token for token in ids if not silent[token]]
    ends = _one_by_one(decode, spoken, text) or _stepwise(decode, spoken, text)
    if ends is None:
        ends = _by_beginnings(decode, spoken, text)
    spans: list[Span] = []
    said = iter(_spans(ends))
    for token in ids:
        done = spans[-1][1] if spans else 0
        spans.append((done, done) if silent[token] else next(said))
    return spans


_End: TypeAlias = tuple[int, bool]
"""Characters that are complete after a token, and whether a part of one hangs behind them."""


def _spans(ends: Sequence[_End]) -> list[Span]:
    spans: list[Span] = []
    before = 0
    for complete, hanging in ends:
        after = max(complete, before)
        # A token that completed nothing is a part of the character to come, or of the one that was given up before it.
        begin = before if hanging or after > before else max(before - 1, 0)
        spans.append((begin, after + hanging))
        before = after
    return spans


def _one_by_one(decode: Decode, ids: Sequence[int], text: str) -> list[_End] | None:
    """The ends, from each token by itself; None if these do not add up to the text."""
    alone = {token: decode([token]) for token in set(ids)}
    if "\ufffd" in text or "".join(alone[token] for token in ids) != text:
        return None
    return [(end, False) for end in accumulate(len(alone[token]) for token in ids)]


def _stepwise(decode: Decode, ids: Sequence[int], text: str) -> list[_End] | None:
    """The ends, from the few tokens before each; None if these do not add up to the text."""
    ends: list[_End] = []
    begin = read = done = 0  # tokens from `read` on are not complete; those from `begin` on are decoded before them
    base = ""
    for place in range(len(ids)):
        more = decode(ids[begin : place + 1])
        said = more[len(base) :]
        # Bytes behind a whole character can make it unreadable, until they are a character themselves.
        same = _common(said, text[done : done + len(said)]) if more.startswith(base) else 0
        hanging = same < len(said) or not more.startswith(base)
        ends.append((done + same, hanging))
        if same and not hanging:
            begin, read, done = read, place + 1, done + same
            base = decode(ids[begin:read])
    return ends if not ids or ends[-1] == (len(text), False) else None


def _by_beginnings(decode: Decode, ids: Sequence[int], text: str) -> list[_End]:
    beginnings = (decode(ids[: place + 1]) for place in range(len(ids)))
    return [(same := _common(said, text), same < len(said)) for said in beginnings]


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with together."""
    if other.startswith(one):
        return len(one)
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def read_steps(steps: Sequence[StepScore]) -> tuple[Floats, list[tuple[int, int]]]:
    """Return the values and the spans of a score's steps; of none if any was not judged.

    A sum over steps of which one is missing would take it for a 0; without steps the outcome alone counts.
    """
    values = [step.value for step in steps if step.value is not None]
    if len(values) < len(steps):
        return np.zeros(0), []
    return floats("the steps' values", values), [(step.start, step.end) for step in steps]


def steps_of_tokens(spans: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]]) -> Integers:
    """Return (t,) the step of each token, -1 for none.

    Args:
        spans: first character and the one after the last of each step, in order and without overlap.
        offsets: the same of each token.

    Raises:
        ValueError: spans overlap or are out of order.
    """
    edges = [edge for span in spans for edge in span]
    if any(after < before for before, after in pairwise(edges)):
        raise ValueError(f"the steps' spans {list(spans)} overlap or are out of order; sort them")
    if not spans or not offsets:
        return np.full(len(offsets), -1, dtype=np.int64)
    starts, ends = np.array(spans, dtype=np.int64).T
    first, last = np.array(offsets, dtype=np.int64).T
    step = np.searchsorted(ends, first, side="right")  # the first that ends behind the token's beginning
    inside = np.minimum(step, len(spans) - 1)
    steps: Integers = np.where((first < last) & (step < len(spans)) & (starts[inside] < last), step, -1)
    return steps


def over_tokens(values: Floats, steps: Integers) -> Floats:
    """Return (t,) each step's number at all of its tokens; 0 at tokens of no step.

    Raises:
        ValueError: a token belongs to a step that has no number.
    """
    values = _checked(values, steps)
    return np.where(steps >= 0, values[steps], 0.0) if len(values) else np.zeros(len(steps))


def at_last_tokens(values: Floats, steps: Integers) -> Floats:
    """Return (t,) each step's number at its last token, 0 elsewhere; a step without a token is lost.

    That is where token rewards stand for `Gae`.

    Raises:
        ValueError: a token belongs to a step that has no number.
    """
    values = _checked(values, steps)
    token_values = np.zeros(len(steps))
    last = {int(step): token for token, step in enumerate(steps) if step >= 0}
    for step, token in last.items():
        token_values[token] = values[step]
    return token_values


def rows_of_tokens(values: Sequence[Floats], steps: Integers) -> Floats:
    """Return (n, t) each step's number at all of its tokens.

    Raises:
        ValueError: there are not as many responses, or a token belongs to a step that has no number.
    """
    if len(values) != len(steps):
        raise ValueError(f"there are steps of {len(values)} responses and tokens of {len(steps)}; give both for each")
    rows = [over_tokens(row, places) for row, places in zip(values, steps, strict=True)]
    return np.stack(rows) if rows else np.zeros(steps.shape)


def _checked(values: Floats, steps: Integers) -> Floats:
    values = floats("the steps' numbers", values)
    if len(steps) and steps.max() >= len(values):
        raise ValueError(f"a token belongs to step {steps.max()}, and there are {len(values)} numbers; give one each")
    return values


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


def _steps(score: Score, part: str) -> tuple[StepScore, ...]:
    """The steps that a score or one of its parts has; none where there is no such part."""
    component: Score | None = score
    for name in part.split(".") if part else ():
        component = component.parts.get(name) if component is not None else None
    return component.steps if component is not None and component.status == "scored" else ()


def _runs(own: Bools) -> list[Span]:
    """First token of each stretch that the policy wrote, and the one after its last."""
    edges = np.flatnonzero(np.diff(own.astype(np.int8), prepend=0, append=0))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _placed(rollout: Rollout, runs: Sequence[Span], spans: Sequence[Span], decode: Decode) -> Integers | None:
    """The step of each token of an answer; None if that cannot be told."""
    texts = [content_text(turn.get("content")) for turn in rollout.turns if turn.get("role") == "assistant"]
    begun = 0 if rollout.turns else len(rollout.task.begun)  # the scorer read it, too
    texts = texts if rollout.turns else [rollout.text]
    if len(texts) != len(runs):
        return None
    begins = accumulate((len(text) + 1 for text in texts[:-1]), initial=begun)
    steps = np.full(len(rollout.ids), -1, dtype=np.int64)
    for run, text, begin in zip(runs, texts, begins, strict=True):
        end = begin + len(text)
        own = [
            (step, span)
            for step, span in enumerate(spans)
            if (span[0] < end and span[1] > begin) or span == (begin, end)  # an empty turn may be a step
        ]
        if not own:
            continue
        step, (first, last) = own[0]
        if len(own) == 1 and first <= begin and end <= last:
            steps[slice(*run)] = step
            continue
        ids = rollout.ids[slice(*run)]
        said = decode(ids)
        if said.count(text) != 1 and not said.startswith(text):
            return None
        shift = 0 if said.startswith(text) else said.find(text)
        offsets = [(before - shift, after - shift) for before, after in token_spans(decode, ids)]
        local = steps_of_tokens([(first - begin, last - begin) for _, (first, last) in own], offsets)
        steps[slice(*run)] = np.array([step for step, _ in own] + [-1], dtype=np.int64)[local]
    return steps
