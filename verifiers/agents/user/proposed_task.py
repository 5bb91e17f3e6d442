"""The reward of a proposer: how often a solver fails at the task that it wrote (Multi-Agent Evolve, Search Self-play).

    value = 1 - mean over n of the solver's answers of what `scorer` gives them

A response without one task, or with a result that the proposer wrote itself, gets 0; so does, with `documents`, a task
that the solver does not answer right once it is shown all that the proposer's searches returned: nobody shows that it
has the answer it is said to have.

Without that check, a task that nobody can solve pays best.  Multi-Agent Evolve adds half of a judge's rating of the
task, which is `weighted` here (the recipe `multi_agent_evolve`).

A solver that may search stops behind a query, which stands in a tag as policies of `rollouts.tools` with `style: tags`
write it; what is found is a tool's turn, which `engine: policy` reads as it does in its run.  Each answer goes on by
itself, with random numbers of its own.

Source: ulab-uiuc/Multi-agent-evolve at 06e6626 (`reward_managers.py`); Alibaba-Quark/SSP at 7b083da
(`examples/train_ssp.sh`: `reward_type=1-acc`, `format_penalty=0`, `use_rag_filter=True`).

Not covered: other tools of a solver than a search; of SSP, the four documents of other tasks in the check, and what
it asks of a proposal besides: ten words, not the answer, two different searches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final

from adjudge.engines.interface import Completion, Engine, Fault, Generation, Sampling
from adjudge.engines.loading import engine_of
from adjudge.fingerprints import fingerprint_of
from adjudge.io.passages import Passages
from adjudge.options import Count, Range, options_of
from adjudge.protocol import NO_COST, Cost, Message, Sample, Score, split_reasoning
from adjudge.reasons import of_parts
from adjudge.responses.trajectories.reading import read_trajectory
from adjudge.responses.trajectories.trajectory import Trajectory
from adjudge.scoring.nested import asked_each, cost_of
from adjudge.verifiers.agents.scoring import TrajectoryNestedScorer
from adjudge.verifiers.agents.tools.reading import check_response, with_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A task, what its answers are compared with, and what the proposer found; None for an answer nobody named."""

    task: str
    reference: Any
    found: str


@dataclass(frozen=True, kw_only=True)
class ProposedTask(TrajectoryNestedScorer):
    """How often a solver fails at the task that the response proposes (Multi-Agent Evolve, Search Self-play).

    The reference, if there is one, is the answer that the task is to have.

    Attributes:
        engine: the solver: a model, or in a run "policy", the one that learns.
        scorer: says how right an answer of the solver's is, from 0 to 1.
        n: answers to each task.
        tag: the tag around the task; "" where the whole response, less its reasoning, is the task.
        stated: whether the right answer is what the proposer writes in its answer tag, in place of the reference.
        documents: whether the solver must be right with what the proposer's searches returned in view.
        search: what the solver may search, without that view: `{documents: FILE.jsonl}`, as the search tool of rollouts
            takes it; None for a solver who does not.
        max_searches: most searches of one answer.
        system: what the solver is told before the task, such as how to write its answer; "" for nothing.
        max_tokens: most tokens of one answer.
        temperature: how freely the solver answers.
        seed: where its random numbers start.
    """

    name: ClassVar[str] = "proposed_task"
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool] = False
    inner: ClassVar[tuple[str, ...]] = ("scorer",)

    engine: Any
    scorer: Any
    n: Count = 4
    tag: str = "question"
    stated: bool = False
    documents: bool = False
    search: Mapping[str, Any] | None = None
    max_searches: Count = 10
    system: str = ""
    max_tokens: Count = 1024
    temperature: Annotated[float, Range(ge=0)] = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scorer is None:
            raise ValueError(f"{self.name} option scorer=None; give what judges the solver's answers")
        self._sampling(self.n)
        self._passages  # noqa: B018 a bad file is told before any work

    @cached_property
    def _passages(self) -> Passages | None:
        if self.search is None:
            return None
        known = [one.name for one in fields(Passages)]
        return Passages(**options_of(self.search, known, inside=f"search of {self.name}", required=("documents",)))

    @property
    def fingerprint(self) -> str:
        """Identifies scorer and options, and the texts that the solver may search."""
        return fingerprint_of(self, *([] if self._passages is None else [self._passages.digest]), without=("search",))

    @property
    def more_tags(self) -> tuple[str, ...]:
        """The tag of the task."""
        return (self.tag,) if self.tag else ()

    def gold(self, sample: Sample) -> Any:
        """Return what answers are compared with, where the proposer does not say it."""
        return sample.reference

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if what the rollout recorded is malformed."""
        check_response(sample, self.shape)

    def read_sample(self, sample: Sample) -> Proposal | Score:
        """Return the proposal, or the score of a response without one."""
        return self.read(sample, read_trajectory(with_spans(sample), self.shape))

    def read(self, sample: Sample, trajectory: Trajectory) -> Proposal | Score:
        """Return the proposal, or the score of a response without one."""
        if trajectory.forged():
            return Score.scored(0.0, "tampering")
        tasks = [block.text for block in trajectory.blocks(self.tag)] if self.tag else [_said(trajectory)]
        answers = [block.text for block in trajectory.blocks(self.shape.answer)]
        results = [result.text for turn in trajectory.turns for result in turn.results]
        if len(tasks) != 1 or not tasks[0].strip() or (self.stated and len(answers) != 1):
            return Score.scored(0.0, "bad_format", tasks=len(tasks), answers=len(answers))
        if self.documents and not results:
            return Score.scored(0.0, "bad_format", error="no search returned anything")
        reference = answers[0] if self.stated else self.gold(sample)
        return Proposal(task=tasks[0].strip(), reference=reference, found="\n\n".join(dict.fromkeys(results)))

    async def judge(self, read: Sequence[Proposal]) -> list[Score]:
        """Return one score per proposal: the check first, then the answers to those that pass."""
        scores: list[Score | None] = [None] * len(read)
        costs = [NO_COST] * len(read)
        for shown in (True, False) if self.documents else (False,):
            open_ones = [at for at, score in enumerate(scores) if score is None]
            judged = await self._answered([read[at] for at in open_ones], shown=shown)
            for at, (right, cost) in zip(open_ones, judged, strict=True):
                costs[at] += cost
                if isinstance(right, Score):
                    scores[at] = right
                elif shown:
                    scores[at] = None if right >= 0.5 else Score.scored(0.0, "wrong", confirmed=right)
                else:
                    scores[at] = Score.scored(1 - right, solved=right, task=read[at].task)
        return [replace(score, cost=cost) for score, cost in zip(scores, costs, strict=True) if score is not None]

    async def _answered(self, read: Sequence[Proposal], *, shown: bool) -> list[tuple[float | Score, Cost]]:
        """How right the solver is at each, or the score of one where nobody knows; and what it cost."""
        prompts, sampling = [self._prompt(one, shown=shown) for one in read], self._sampling(1 if shown else self.n)
        engine, given = engine_of(self.engine), []
        if read and self._passages is not None and not shown:
            given = await searched(engine, prompts, sampling, self._passages, most=self.max_searches)
        elif read:
            given = await engine.generate(prompts, sampling)
        tries = [
            [
                Sample(prompt=one.task, response=said.text, reference=one.reference, finish_reason=said.finish_reason)
                for said in (made.completions if isinstance(made, Generation) else ())
            ]
            for one, made in zip(read, given, strict=True)
        ]
        judged = await asked_each(self.scorer, tries, called=f"the scorer of {self.name!r}")
        return [
            (_share(made, scores), cost_of(scores) + (made.cost if isinstance(made, Generation) else NO_COST))
            for made, scores in zip(given, judged, strict=True)
        ]

    def _prompt(self, one: Proposal, *, shown: bool) -> list[Message]:
        asked = f"{one.found}\n\n{one.task}" if shown else one.task
        system = self.system if shown or self.search is None else f"{self.system} {HOW}".strip()
        told: list[Message] = [{"role": "system", "content": system}] if system else []
        return [*told, {"role": "user", "content": asked}]

    def _sampling(self, n: int) -> Sampling:
        return Sampling(n=n, max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed)


def _said(trajectory: Trajectory) -> str:
    """What is left of the last turn without its reasoning; "" where that does not end."""
    _, text, unfinished = split_reasoning(trajectory.turns[-1].text if trajectory.turns else "")
    return "" if unfinished else text


def _share(made: Generation | Fault, scores: Sequence[Score]) -> float | Score:
    """The mean of what the judged answers got; a score where there is none."""
    if isinstance(made, Fault):
        # A task that the solver's window cannot hold is the proposer's doing.
        return Score.scored(0.0, "too_complex") if made.too_long else Score.failed(made.reason, error=made.detail)
    known = [score.value for score in scores if score.value is not None]
    if not known:
        return Score.failed(
            of_parts(score.reason for score in scores), scores=[f"{score.status}: {score.reason}" for score in scores]
        )
    mean = math.fsum(known) / len(known)
    if not 0 <= mean <= 1:
        raise ValueError(f"the solver's answers got {mean} on average; give proposed_task a scorer from 0 to 1")
    return mean


HOW: Final = "You may search: write <search>the words</search>, and what is found comes next."
"""What a model is told."""

_CALL_END = "</search>"
_QUERY = re.compile(r"<search>([^<]*)\Z")


@dataclass(slots=True)
class _Talk:
    """One answer: its turns so far, and the newest piece that was written, or what went wrong."""

    turns: list[Message]
    said: Completion | Fault
    searched: bool = False

    def query(self) -> str | None:
        """Return what the newest piece ends by searching for; None if it does not."""
        if isinstance(self.said, Fault) or self.said.finish_reason != "stop":
            return None
        asked = _QUERY.search(self.said.text)
        return asked[1].strip() if asked else None


async def searched(
    engine: Engine, prompts: Sequence[list[Message]], sampling: Sampling, passages: Passages, *, most: int
) -> list[Generation | Fault]:
    """Return the last pieces of `sampling.n` answers to each prompt, each of which may search `most` times."""
    piece = replace(sampling, stop=(_CALL_END,))
    costs, rows = [], []
    for prompt, one in zip(prompts, await engine.generate(prompts, piece), strict=True):
        costs.append(one.cost if isinstance(one, Generation) else NO_COST)
        said = one.completions if isinstance(one, Generation) else (one,)
        rows.append([_Talk(turns=[*prompt], said=each) for each in said])
    for turn in range(1, most + 1):
        for number in range(sampling.n):
            going = [
                (at, row[number], query)
                for at, row in enumerate(rows)
                if number < len(row) and (query := row[number].query()) is not None
            ]
            for _, talk, query in going:
                assert isinstance(talk.said, Completion)
                found = passages.found(query) or "error: the query has no words"
                own: Message = {"role": "assistant", "content": talk.said.text + _CALL_END}
                talk.searched = True
                talk.turns += [own, {"role": "tool", "content": found}]
            seed = sampling.seed + turn * sampling.n + number
            asked = [talk.turns for _, talk, _ in going]
            given = await engine.generate(asked, replace(piece, n=1, seed=seed)) if asked else []
            for (at, talk, _), made in zip(going, given, strict=True):
                talk.said = made.completions[0] if isinstance(made, Generation) else made
                costs[at] += made.cost if isinstance(made, Generation) else NO_COST
    return [_together(row, cost) for row, cost in zip(rows, costs, strict=True)]


def _together(row: Sequence[_Talk], cost: Cost) -> Generation | Fault:
    """The answers of a prompt; the first fault, but for those that searched on until their window was full."""
    full = Completion(text="", finish_reason="length")
    said = [full if isinstance(one.said, Fault) and one.said.too_long and one.searched else one.said for one in row]
    fault = next((one for one in said if isinstance(one, Fault)), None)
    return fault or Generation(completions=tuple(one for one in said if isinstance(one, Completion)), cost=cost)
