"""What a run writes down step by step: facts of its batches, journals, and what is done behind a step."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adjudge.io.cards.card import put
from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import deviation
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats
from adjudge.rl_integration.trainer.data.task import Rollout, by_task
from adjudge.rl_integration.trainer.loop.batches import Batch
from adjudge.rl_integration.trainer.loop.guard import Guard, Measurement
from adjudge.rl_integration.watch.hacking import HackingWatch


def tool_facts(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return the numbers of a batch; none for answers of one turn.

    Returns:
        "tool_calls": answered calls of an answer, on average; "tool_errors": the share of them that were answered with
        an error, if there were any; "tool_tokens": tokens of an answer that others wrote, on average; "user_turns":
        turns of an answer's user, on average, if there was one.
    """
    dialogues = [rollout for rollout in rollouts if rollout.turns]
    if not dialogues:
        return {}
    told = [turn for rollout in dialogues for turn in rollout.turns if turn["role"] == "tool"]
    metrics = {
        "tool_calls": len(told) / len(dialogues),
        "tool_tokens": sum(int((~rollout.own).sum()) for rollout in dialogues) / len(dialogues),
    }
    users = sum(turn["role"] == "user" for rollout in dialogues for turn in rollout.turns)
    if users or any(rollout.session for rollout in dialogues):
        metrics["user_turns"] = users / len(dialogues)
    return metrics | ({"tool_errors": sum(not turn["ok"] for turn in told) / len(told)} if told else {})


PART = "parts/"
"""How the names of components' means begin."""

REASON = "failed/"
"""How the names of shares of failures by reason begin."""

_PARTS = 24  # components that are told: the items of a rubric are other ones for every prompt
_SEEN = 0.1  # share of the scores that a component must be in
_DEPTH = 3  # composites in composites


def batch_facts(rollouts: Sequence[Rollout], scores: Sequence[Score], step: int) -> dict[str, float]:
    """Return the numbers of a batch.

    Returns:
        Shares, means over answers, and the mean of every component of the reward ("parts/NAME") over the answers for
        which it was judged.
    """
    count = len(rollouts)
    values = [score.value for score in scores if score.value is not None]
    reasons = Counter(score.reason for score in scores if score.status == "failed")
    return {
        "failed": sum(reasons.values()) / count,
        "abstained": sum(score.status == "abstained" for score in scores) / count,
        **{f"{REASON}{reason}": times / count for reason, times in sorted(reasons.items())},
        **({"reward": float(np.mean(values)), "reward_std": deviation(np.array(values))} if values else {}),
        **part_means(scores),
        "completion_length": sum(len(rollout.ids) for rollout in rollouts) / count,
        "clipped_ratio": sum(rollout.finish_reason == "length" for rollout in rollouts) / count,
        "staleness": sum(step - 1 - rollout.version for rollout in rollouts) / count,
        **tool_facts(rollouts),
    }


def part_means(scores: Sequence[Score]) -> dict[str, float]:
    """Return the mean of each component of the rewards, over the answers for which it was judged.

    Components that are in fewer than a tenth of the scores are left out, and of many the most frequent are told.
    """
    part_values: dict[str, list[float]] = {}
    for score in scores:
        for name, value in _parts(score, "", _DEPTH):
            part_values.setdefault(name, []).append(value)
    often = sorted(part_values, key=lambda name: (-len(part_values[name]), name))[:_PARTS]
    return {
        f"{PART}{name}": float(np.mean(part_values[name]))
        for name in sorted(often)
        if len(part_values[name]) >= _SEEN * len(scores)
    }


def advantage_facts(advantages: Sequence[Floats], counted: Bools) -> dict[str, float]:
    """Return mean and spread of the advantages, over the answers that count, each by the mean over its tokens."""
    means = [float(np.mean(row)) for row, counts in zip(advantages, counted, strict=True) if counts and np.size(row)]
    return {"advantage_mean": float(np.mean(means)), "advantage_std": float(np.std(means))} if means else {}


def _parts(score: Score, prefix: str, depth: int) -> Iterator[tuple[str, float]]:
    for name, part in score.parts.items():
        if part.value is not None:
            yield f"{prefix}{name}", part.value
        if depth > 1:
            yield from _parts(part, f"{prefix}{name}/", depth - 1)


STEPS = "steps.jsonl"
"""The numbers of each step."""

SAMPLES = "samples.jsonl"
"""Some rollouts with their scores."""

ALARMS = "alarms.jsonl"
"""Which alarms of the watch came, and which went."""


class Journal:
    """Appends lines to a file of a run's folder."""

    def __init__(self, folder: Path, name: str, *, step: int) -> None:
        self._path = folder / name
        self.replace([line for line in read_journal(folder, name) if line["step"] <= step])

    def replace(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Hold these lines alone."""
        put(self._path, "".join(map(_line, lines)))

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a line, which has a "step"; numbers that are none (NaN) are left out."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(record))


def read_journal(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the lines of a file; a last line that was cut off is left out."""
    path = folder / name
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].split("\n") if line]


def _line(record: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in record.items() if not isinstance(value, float) or math.isfinite(value)}
    return json.dumps(kept) + "\n"


_SHOWN = 2_000  # characters of a text in the journal
_LOOKS = 5  # steps from one look of the watch to the next: a look takes 20 ms

OnStep = Callable[[Mapping[str, float], Sequence[Rollout], Sequence[Score]], bool | None]
"""Told the numbers of a step, its rollouts and their scores; True stops the run."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a run goes on behind a step.

    Attributes:
        stopped: why it ends here; "" if it does not.
        best: whether the policy is to be kept as the one that the gold scorer liked most so far.
        roll_back: whether that is to be put back.
        best_held_out: whether no policy before did as well on held-out tasks.
    """

    stopped: str = ""
    best: bool = False
    roll_back: bool = False
    best_held_out: bool = False


class RunLogger:
    """The journals of a run, with those who look at each step.

    Args:
        folder: of the run.
        step: that is done.
        guard: measures now and then.
        watch: sees every step.
        on_step: is told every step.
        judged_anew: whether the reward or the gold scorer is another one than before, so that the guard begins anew.
        best_held_out: the highest mean on held-out tasks by the present judge.

    Attributes:
        opens: whether the guard has measured nothing yet, so that the policy as it is now is to be kept, and the next
            step's answers, which it writes, are measured.
    """

    def __init__(
        self,
        folder: Path,
        *,
        step: int,
        guard: Guard | None,
        watch: HackingWatch | None,
        on_step: OnStep | None,
        judged_anew: bool = False,
        best_held_out: float = -math.inf,
    ) -> None:
        self._steps, self._samples, self._alarms = (
            Journal(folder, name, step=step) for name in (STEPS, SAMPLES, ALARMS)
        )
        self._guard = guard
        self._watch = watch
        self._standing = {line["kind"]: line["standing"] for line in read_journal(folder, ALARMS)}
        self._on_step = on_step
        self.opens = False
        lines = read_journal(folder, STEPS)
        self._best_held_out = best_held_out
        if guard is not None:
            if judged_anew and lines:
                lines[-1]["parted"] = 1.0
                self._steps.replace(lines)
            # Behind a stop there is another policy, or another reward.
            parted = [place for place, line in enumerate(lines) if line.get("parted")]
            lines = lines[parted[-1] + 1 :] if parted else lines
            guard.measurements += [one for one in map(Measurement.of_line, lines) if one is not None]
            starts = (Measurement.of_line(line, start=True) for line in lines)
            guard.start = next((one for one in starts if one is not None), None)
            self.opens = guard.start is None and not guard.measurements

    def enter(self, numbers: dict[str, float], batch: Batch) -> Verdict:
        """Write a step down, and return how the run goes on."""
        step, guard, drawn = int(numbers["step"]), self._guard, batch.drawn
        if guard is not None and self.opens:
            self.opens = False
            numbers |= guard.measure_start(step - 1, drawn.rollouts, drawn.scores)
        elif guard is not None and guard.due(step):
            numbers |= guard.measure(step, drawn.rollouts, drawn.scores)
        parting = guard.parting() if guard is not None and "gold" in numbers else None
        if parting is not None:
            numbers["parted"] = 1.0
        if self._watch is not None:
            numbers |= self._watched(self._watch, step, drawn.rollouts, drawn.scores)
        self._steps.write(numbers)
        for record in _shown(step, batch.rollouts, batch.scores):
            self._samples.write(record)
        told = self._on_step is not None and self._on_step(numbers, batch.rollouts, batch.scores)
        stopped = "it was told to stop" if told else ""
        held_out = numbers.get("held_out", -math.inf)
        best_held_out = held_out > self._best_held_out
        self._best_held_out = max(held_out, self._best_held_out)
        if guard is None or "gold" not in numbers:
            return Verdict(stopped=stopped, best_held_out=best_held_out)
        return Verdict(
            best_held_out=best_held_out,
            stopped=stopped if parting is None else parting.sentence,
            best=guard.best() == step,
            roll_back=parting is not None and guard.config.then == "roll_back",
        )

    def _watched(
        self, watch: HackingWatch, step: int, rollouts: Sequence[Rollout], scores: Sequence[Score]
    ) -> dict[str, float]:
        """Show the watch a step, and write down which alarms came and went."""
        for rollout, score in zip(rollouts, scores, strict=True):
            watch.see(rollout.sample(), score)
        if step % _LOOKS:
            return {}
        alarms = {alarm.kind: alarm for alarm in watch.report().alarms}
        for kind, alarm in alarms.items():
            if not self._standing.get(kind):
                self._alarms.write({"step": step, "kind": kind, "standing": True, "sentence": alarm.sentence})
        for kind in [kind for kind, standing in self._standing.items() if standing and kind not in alarms]:
            self._alarms.write({"step": step, "kind": kind, "standing": False, "sentence": "It is over."})
        self._standing = dict.fromkeys(alarms, True)
        return {"alarms": float(len(alarms))}


def _shown(step: int, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Iterator[dict[str, Any]]:
    """The first group's best and worst answer, for people to read."""
    places = next(iter(by_task(rollouts).values()))
    ranked = sorted(places, key=lambda at: (scores[at].value is not None, scores[at].value or 0.0))
    for place in dict.fromkeys((ranked[-1], ranked[0])):
        rollout, score = rollouts[place], scores[place]
        yield {
            "step": step,
            "prompt": _trimmed(rollout.task.prompt),
            "response": _trimmed(rollout.turns or rollout.text),
            "finish_reason": rollout.finish_reason,
            "value": score.value,
            "status": score.status,
            "reason": score.reason,
        }


def _trimmed(text: Any) -> str:
    rendered = text if isinstance(text, str) else json.dumps(text, default=str)
    return rendered if len(rendered) <= _SHOWN else f"{rendered[:_SHOWN]} ... ({len(rendered)} characters)"
