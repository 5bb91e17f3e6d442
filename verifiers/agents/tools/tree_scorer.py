"""Tool trees: what each turn of a group's trajectories is worth, by what became of those that share it (PORTool).

R_i is the outcome of response i, T_i its number of turns, and responses that begin with the same turns, calls and
results share those turns:

    O(turn at depth d) = mean over the responses through it of discount^(T_i - d) R_i
    V(turn)            = O(turn) + valid_weight * share of its calls that are valid
    step               = z(V(turn)) among the turns that follow the same beginning  +  blend * z(R_i) in the group

A call in JSON is valid if it can be read and has right arguments; in any form, tags too, one is not to which the tool's
turn says `"ok": false`.  A turn without calls has the share 1, and one in which the assistant wrote a tool's result
itself 0.  `Score.value` is R_i; the steps carry the rest, one for each turn.

PORTool (arXiv 2510.26020) has no public code.  That a step's reward is made of discounted outcomes of the leaves below
it and of a part for valid calls, and that advantages relative to siblings and to trajectories are blended, is from the
paper; `discount`, `valid_weight` and `blend` have defaults of ours, and so has counting each sibling once.

Not covered: sampling the tree.  Responses that were drawn apart share what they happen to share.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from adjudge.options import Range
from adjudge.protocol import Sample, Score
from adjudge.responses.trajectories.reading import read_trajectory
from adjudge.responses.trajectories.trajectory import Turn, steps_at
from adjudge.responses.trajectories.tree_values import node_values, prefix_paths, sibling_scores, z_scores
from adjudge.runtime.contract import grouped, score_checked, validate_sample
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.nested import HasInnerScorers
from adjudge.verifiers.agents.scoring import Weight
from adjudge.verifiers.agents.tools.arguments import NoSchemasError, Tools, plain, read_tools
from adjudge.verifiers.agents.tools.reading import ReadsCalls, calls_of_turn, check_response, meant, with_spans


@dataclass(frozen=True, kw_only=True)
class ToolTreeScorer(ReadsCalls, HasInnerScorers):
    """The outcome of each response of a group, with steps that say what each turn added.

    The reference is what the `outcome` scorer takes; `Sample.extra["tools"]` may hold the JSON schemas of the tools.
    `Sample.group` names the prompt; where `Sample.extra` has `group_size`, a smaller group fails with
    `cohort_incomplete`, and a group with one response that has an outcome with `group_too_small`.

    Attributes:
        outcome: a scorer of whole responses.
        discount: what an outcome loses for each turn between a turn and the end, in (0, 1]; ours.
        valid_weight: what valid calls add to a turn's value; ours.
        blend: the weight of the z-score of the whole trajectory; ours.
    """

    name: ClassVar[str] = "tool_tree"
    version: ClassVar[str] = "7"
    groupwise: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False
    inner: ClassVar[tuple[str, ...]] = ("outcome",)

    outcome: Any
    discount: Annotated[float, Range(ge=1e-6, le=1)] = 0.9
    valid_weight: Weight = 0.2
    blend: Weight = 1.0

    def __post_init__(self) -> None:
        HasInnerScorers.__post_init__(self)
        super().__post_init__()
        if self.outcome is None:
            raise ValueError(f"{self.name} option outcome=None; give a scorer of whole responses")

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the group is missing, or what the outcome or the reading of turns needs."""
        if not sample.group:
            raise ValueError(f"{self.name}: the sample has no group; set Sample.group, one for each prompt")
        size: Any = sample.extra.get("group_size")
        if size is not None and (type(size) is not int or size < 1):
            raise ValueError(f"{self.name}: extra's group_size is {size!r}; it must be a whole number from 1")
        try:
            _tools(sample)
        except (BadReferenceError, NoSchemasError) as error:
            raise ValueError(f"{self.name}: {error}") from error
        check_response(sample, self.shape)
        validate_sample(self.outcome, sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; `parts["outcome"]` is the outcome by itself."""
        outcomes = await score_checked(self.outcome, samples, called=f"the outcome of {self.name!r}")
        groups = grouped({place: sample.group for place, sample in enumerate(samples)})
        scores = dict[int, Score]()
        for members in groups.values():
            of_group = self._of_group([samples[at] for at in members], [outcomes[at] for at in members])
            scores.update(zip(members, of_group, strict=True))
        origin = self.origin
        return [
            replace(scores[at], parts={"outcome": outcome}, provenance=origin, cost=outcome.cost)
            for at, outcome in enumerate(outcomes)
        ]

    def _of_group(self, samples: Sequence[Sample], outcomes: Sequence[Score]) -> list[Score]:
        sizes = [size for sample in samples if type(size := sample.extra.get("group_size")) is int]
        if sizes and len(samples) < max(sizes):
            return [Score.failed("cohort_incomplete", members=len(samples), group_size=max(sizes)) for _ in samples]
        read: dict[int, list[_Move]] = {}
        scores: dict[int, Score] = {}
        for at, (sample, outcome) in enumerate(zip(samples, outcomes, strict=True)):
            if not sample.group:
                scores[at] = Score.failed("bad_sample", error="the sample has no group")
                continue
            if outcome.value is None:
                scores[at] = replace(outcome, steps=(), parts={}, evidence={"part": "outcome"})
                continue
            try:
                read[at] = self._moves(sample)
            except (ValueError, NoSchemasError) as error:
                scores[at] = Score.failed("bad_sample", error=str(error))
        if len(read) == 1:
            (alone,) = read
            scores[alone] = Score.failed("group_too_small", error="one response has an outcome; two are needed")
        elif read:
            ready = [(samples[at], outcomes[at], moves) for at, moves in read.items()]
            scores.update(zip(read, self._compared(ready), strict=True))
        return [scores[at] for at in range(len(samples))]

    def _compared(self, ready: Sequence[tuple[Sample, Score, list[_Move]]]) -> list[Score]:
        rewards = [outcome.value or 0.0 for _, outcome, _ in ready]
        keys = [[move.key for move in moves] for *_, moves in ready]
        paths = prefix_paths(keys, [repr(sample.prompt) for sample, *_ in ready])
        values = node_values(paths, rewards, self.discount)
        for path, (*_, moves) in zip(paths, ready, strict=True):
            for node, move in zip(path[1:], moves, strict=True):
                move.node = node
        shares = {move.node: move.valid for *_, moves in ready for move in moves}
        values |= {node: values[node] + self.valid_weight * share for node, share in shares.items()}
        siblings = sibling_scores(paths, values)
        users = Counter(node for path in paths for node in path)
        return [
            Score(
                value=reward,
                reason=outcome.reason,
                steps=steps_at(
                    moves,
                    (siblings[move.node] + self.blend * whole for move in moves),
                    ("shared" if users[move.node] > 1 else "own" for move in moves),
                ),
                evidence={"values": [values[move.node] for move in moves], "trajectory": whole},
            )
            for (_, outcome, moves), reward, whole in zip(ready, rewards, z_scores(rewards), strict=True)
        ]

    def _moves(self, sample: Sample) -> list[_Move]:
        tools = _tools(sample)
        turns = read_trajectory(with_spans(sample), self.shape).turns
        return [self._move(turn, tools) for turn in turns if turn.acted]

    def _move(self, turn: Turn, tools: Tools | None) -> _Move:
        calls = calls_of_turn(turn, self.shape, bare=self.bare, names=() if tools is None else tools.validators)
        if tools is not None:
            calls = [meant(call, tools) for call in calls]
        faults = [call.fault or ("" if tools is None else tools.fault(call.name, call.arguments)) for call in calls]
        valid = faults.count("") / len(faults) if faults else 1.0
        if turn.results:
            valid = min(valid, sum(result.ok for result in turn.results) / len(turn.results))
        said = [[call.name, "" if call.fault else plain(call.arguments), call.fault] for call in calls]
        heard = [[result.name, result.text] for result in turn.results]
        key = json.dumps([turn.text, said, heard, turn.replies], sort_keys=True)
        return _Move(key=key, valid=0.0 if turn.forged else valid, start=turn.start, end=turn.end)


@dataclass(slots=True, kw_only=True)
class _Move:
    """One turn: what tells it from others, and the share of its calls that are valid."""

    key: str
    valid: float
    start: int
    end: int
    node: int = -1


def _tools(sample: Sample) -> Tools | None:
    given = sample.extra.get("tools")
    return None if given is None else read_tools(given)
