"""Rewards at the boundary of what a search agent knows: answer alone where that is enough, search where it is not.

The answer is right by SQuAD's exact match, or by token F1 from `threshold` on, or as far as F1 says.  Searches that
were tried cost; only those that a tool answered can earn.  An agent that writes a tool's result itself, that gives
different answers, or that goes on after its answer is malformed.  What a tool answered though no search can be read
there was a search that was tried.  docs/agents.md has the cases.

| policy | where the numbers are from |
|---|---|
| `ikea` | the released code, hzy312/knowledge-r1 @ 0b254e2: 1.6, 1.4, 1.2, 1.0 for 0, 1, 2, 3 searches; 0.05; -1 |
| `sem` | the order is the paper's (arXiv 2505.07903); the numbers are ours |
| `adasearch` | the second stage of arXiv 2512.16883; 1 and 0 are its outcome reward, the rest is ours |
| `search_r1` | a copy of the code of arXiv 2505.15117, quanwei0/Search-R1 @ 616dc94, `qa_em_format.py` |
| `tool_star` | code that goes back to theirs, threegold116/Tool-Star-OCT @ 0ac7f61 |

Not covered: the value of single searches (`search_steps`, `search_gain`), and finding out what the direct answer is:
answer each question once without tools, and write whether that was right into a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from adjudge.options import Count, Range
from adjudge.protocol import Sample, Score
from adjudge.responses.answer_span import find_spans, shorten
from adjudge.responses.trajectories.searches import FinalAnswer, Search, final_answer, searches_of
from adjudge.responses.trajectories.trajectory import Trajectory, TrajectoryForm, Turn
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import fields_of, shown
from adjudge.verifiers.agents.scoring import TrajectoryVerifier, case_values
from adjudge.verifiers.agents.search.signals import SearchReference, holds, read_answers
from adjudge.verifiers.math.verifier import MathVerifier

Gold: TypeAlias = tuple[SearchReference, bool | None]
Policy: TypeAlias = Literal["ikea", "sem", "adasearch", "tool_star", "search_r1"]

THRIFT = "thrift"
"""The key of a table for what a right answer gets beside: times 1 - searches / `max_searches`, never below 0."""

TABLES: Mapping[Policy, Mapping[str, float]] = MappingProxyType(
    {
        "ikea": {"malformed": -1.0, "wrong": 0.0, "wrong_searched": 0.05, "right": 1.0, THRIFT: 0.6},
        "sem": {
            "malformed": -1.0,
            "wrong": 0.0,
            "wrong_needless": -0.2,
            "right": 1.0,
            "right_needed": 0.8,
            "right_needless": 0.4,
        },
        "adasearch": {"malformed": 0.0, "decision_wrong": 0.0, "decision_right": 1.0},
        "search_r1": {
            "malformed": 0.0,
            "malformed_wrong": 0.1,
            "malformed_right": 0.8,
            "wrong": 0.2,
            "wrong_found": 0.2,
            "right": 1.0,
        },
        "tool_star": {"malformed": -1.0, "wrong": 0.0, "right": 1.0, "right_tools": 1.1},
    }
)
_DECISION = "decision"
_WORDS = {"yes": True, "no": False}


@dataclass(frozen=True, kw_only=True)
class SearchBoundaryVerifier(TrajectoryVerifier[Gold]):
    """A search agent's answer by what it had to search for: IKEA, SEM, AdaSearch, Tool-Star, Search-R1.

    The reference is the answer or a list of accepted ones, or `{"answer": .., "direct": ..}`; `direct`, there or in
    `Sample.extra`, is true or false for the answer without a search, or that answer itself ("sem", "adasearch"), all
    of the response with it, if it is marked by its tag.

    Attributes:
        policy: whose table is used.
        values: values, by case, in the place of the table's.
        max_searches: with "ikea", the number of searches from which thrift pays nothing; 3 as released.
        thought: whether a trajectory without a thought is malformed, as for IKEA.
        tools: names of tools beside the search, such as "python", by tag or by call; "tool_star" counts no others, and
            calls of others cost what searches do.
        metric: how an answer is compared: "exact_match", or "f1"; with "graded_f1" any F1 above 0 is right, and what is
            missing to 1 is taken off the value; with "math" it is right if the scorer `math` says so.
        threshold: the least value of "f1" that is right.
        max_characters: most characters that the agent may write; more is malformed (`too_complex`).
    """

    name: ClassVar[str] = "search_boundary"
    version: ClassVar[str] = "4"

    policy: Policy = "ikea"
    values: Mapping[str, float] = field(default_factory=dict)
    max_searches: Count = 3
    thought: bool = False
    tools: tuple[str, ...] = ()
    metric: Literal["exact_match", "f1", "graded_f1", "math"] = "exact_match"
    threshold: Annotated[float, Range(gt=0, le=1)] = 1.0
    max_characters: Count = 200_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(one, str) and one for one in self.tools):
            raise ValueError(f"{self.name} option tools={self.tools!r}; give a list of names")
        object.__setattr__(self, "values", case_values(self.name, self.values, TABLES[self.policy]))

    @property
    def more_tags(self) -> tuple[str, ...]:
        """The tags of tools, and with "adasearch" the one in which the agent says whether it knows the answer."""
        return (*self.tools, *((_DECISION,) if self.policy == "adasearch" else ()))

    @cached_property
    def table(self) -> dict[str, float]:
        """The policy's values by case, and those that take their place."""
        return {**TABLES[self.policy], **self.values}

    def judge_trajectory(self, sample: Sample, trajectory: Trajectory, gold: Gold) -> Score:
        """Return the value of the case; `Score.evidence` has the case and the counts."""
        answers, direct = gold
        decides = self.policy == "adasearch"
        final = final_answer(trajectory, self.shape)
        searches = searches_of(trajectory, self.shape)
        unread = sum(_unread(turn, self.shape, self.tools) for turn in trajectory.turns)
        attempted = len(searches) + unread
        answered = sum(bool(search.query.strip()) and search.answered for search in searches)
        used = _tools(trajectory, self.shape, self.tools)

        def scored(case: str, reason: str, *, short: float = 0.0, **evidence: Any) -> Score:
            thrift = self.table.get(THRIFT, 0.0) if case.startswith("right") else 0.0
            value = self.table[case] - short + thrift * max(0.0, 1.0 - attempted / self.max_searches)
            counts = {"attempted": attempted, "answered": answered, "tools": list(used)}
            return Score.scored(value, reason, case=case, **counts, **evidence)

        if fault := self._fault(sample, trajectory, None if decides else final, searches):
            if fault == "bad_format" and self.policy == "search_r1":
                right = self._right(final.text, answers)
                return scored("malformed_right" if right is True else "malformed_wrong", fault)
            return scored("malformed", fault)
        if decides:
            knows, fault = read_decision(trajectory)
            if fault or (knows and attempted):  # it says that it knows, and searches
                return scored("malformed", fault or "bad_format")
            right = knows == direct
            case = "decision_right" if right else "decision_wrong"
            return scored(case, "" if right else "wrong", knows=knows, direct=direct)
        answer = self._answer(final)
        right = self._right(answer, answers)
        if isinstance(right, Score):
            return right
        case = self._case(right=right, direct=direct, attempted=attempted, answered=answered, tools=len(used))
        if case == "wrong" and self.policy == "search_r1" and _found(searches, answers):
            case = "wrong_found"
        short = 1.0 - answers.answer_f1(answer) if right and self.metric == "graded_f1" else 0.0
        return scored(case, "" if right else "wrong", short=short, answer=shorten(answer))

    def _fault(
        self, sample: Sample, trajectory: Trajectory, final: FinalAnswer | None, searches: Sequence[Search]
    ) -> str:
        """Why a trajectory is malformed; without a `final` answer none is asked for."""
        if trajectory.written > self.max_characters:
            return "too_complex"
        if sample.finish_reason == "length":
            return "truncated"
        if trajectory.forged():
            return "tampering"
        if final is not None:
            if final.reason:
                return final.reason
            ends = [*(call.end for call in trajectory.calls()), *(search.end for search in searches)]
            if any(end >= final.end for end in ends):
                return "bad_format"  # it went on; a call beside a message's text ends where that does
        return "bad_format" if self.thought and not _has_thought(trajectory, self.shape) else ""

    def _case(self, *, right: bool, direct: bool | None, attempted: int, answered: int, tools: int) -> str:
        """The case of a well-formed answer: searches that were tried cost, those that a tool answered can earn."""
        if self.policy == "ikea":
            return "right" if right else "wrong_searched" if answered else "wrong"
        if self.policy == "search_r1":
            return "right" if right else "wrong"
        if self.policy == "tool_star":
            return ("right_tools" if tools > 1 else "right") if right else "wrong"
        if not attempted:
            return "right" if right else "wrong"
        if right:
            return "right_needless" if direct else "right_needed"
        return "wrong_needless" if direct else "wrong"

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the value of a malformed trajectory."""
        return Score.scored(min(0.0, self.table["malformed"]), reason)

    def _answer(self, final: FinalAnswer) -> str:
        """What is compared: with "tool_star" what the answer's last box holds, if it has one."""
        boxes = find_spans(final.text, "boxed") if self.policy == "tool_star" else []
        return boxes[0].texts[-1] if boxes else final.text

    def _right(self, answer: str, gold: SearchReference) -> bool | Score:
        """Whether an answer is right; the score of `math`, where that cannot tell."""
        if self.metric == "math":
            score = MathVerifier().verify(Sample(prompt="", response=answer, reference=list(gold.answers)))
            return score if score.value is None else score.value == 1.0
        value = float(gold.is_answer(answer)) if self.metric == "exact_match" else gold.answer_f1(answer)
        return value > 0 if self.metric == "graded_f1" else value >= self.threshold

    def read_reference(self, reference: Any) -> Gold:
        """Return the same as `gold_of`, of a sample without columns."""
        return self.gold_of(Sample(prompt="", response="", reference=reference))

    def gold_of(self, sample: Sample) -> Gold:
        """Return the accepted answers, and whether the direct answer is right, None if nobody says so."""
        reference = sample.reference
        direct = sample.extra.get("direct")
        if isinstance(reference, Mapping):
            reference = fields_of(reference, (), ("answer", "direct"), give='{"answer": .., "direct": ..}')
            direct = reference.get("direct", direct)
            reference = reference.get("answer")
        gold = read_answers(reference)
        if direct is not None and not isinstance(direct, bool | str):
            raise ReferenceFormError(f"direct is {shown(direct)}; give true, false, or the answer without a search")
        if direct is None and self.policy in ("sem", "adasearch"):
            raise ReferenceFormError(
                f'{self.policy} asks whether the answer without a search is right: give {{"answer": .., "direct": '
                'true}, or extra["direct"]'
            )
        if not isinstance(direct, str):
            return gold, direct
        flags = ("true", "false")  # texts that mean a flag, unless the question asks for one of them
        if direct.strip().casefold() in flags and not any(self._right(flag, gold) is True for flag in flags):
            raise ReferenceFormError(f"direct is the text {direct!r}; give true or false itself")
        told = find_spans(direct, "tag")  # all that was said, where the policy answered in its usual form
        right = self._right(told[0].texts[-1] if told else direct, gold)
        if isinstance(right, Score):
            raise BadReferenceError(f"nobody can tell whether the direct answer {shown(direct)} is right")
        return gold, right


def _found(searches: Sequence[Search], gold: SearchReference) -> bool:
    """Whether a document that a search returned holds an accepted answer."""
    return any(holds(document.text, gold.answers) for search in searches for document in search.documents())


def decision_f1(knows: Sequence[bool], direct: Sequence[bool]) -> float:
    """Return AdaSearch's metric: the F1 of "I know" beside right direct answers, in [0, 1].

    It is 0 where no decision is a true "I know", also if none could be.

    Raises:
        ValueError: there are no decisions, or not as many answers.
    """
    if not knows or len(knows) != len(direct):
        raise ValueError(f"{len(knows)} decisions and {len(direct)} direct answers; give one for each, at least one")
    hits = sum(said and true for said, true in zip(knows, direct, strict=True))
    return 2 * hits / (sum(knows) + sum(direct)) if hits else 0.0


def read_decision(trajectory: Trajectory) -> tuple[bool | None, str]:
    """Return whether the agent says that it knows the answer, and "" or the reason why it says neither yes nor no."""
    words = {block.text.strip().rstrip(".!").casefold() for block in trajectory.blocks(_DECISION)}
    if len(words) != 1:
        return None, "several_answers" if words else "no_answer"
    said = _WORDS.get(words.pop())
    return said, "" if said is not None else "unparsable_answer"


def _has_thought(trajectory: Trajectory, form: TrajectoryForm) -> bool:
    close = f"</{form.think}>"
    thoughts = trajectory.blocks(form.think)
    return any(block.text and trajectory.text[block.start : block.end].endswith(close) for block in thoughts)


def _unread(turn: Turn, form: TrajectoryForm, tools: Sequence[str]) -> int:
    """How many searches a turn may have made that cannot be read as such.

    They are calls of tools that nobody named, or that are not JSON; and, in a turn without a search, one for results
    that nothing asked for: what ran the agent read a search inside a thought, or in a tag that was never closed.
    """
    strange = sum(call.name not in (*form.search_tools, *tools) for call in turn.calls)
    written = [block.tag for block in turn.blocks]
    searches = form.search in written or any(call.name in form.search_tools for call in turn.calls)
    asked = len(turn.calls) + sum(tag in tools for tag in written)
    answered = sum(bool(result.text.strip()) for result in turn.results)
    return strange + (bool(turn.text.strip()) and not searches and answered > asked)


def _tools(trajectory: Trajectory, form: TrajectoryForm, tools: Sequence[str]) -> tuple[str, ...]:
    known = {form.search, *form.search_tools, *tools}
    names = [name for turn in trajectory.turns for name in _tools_of(turn, form, tools) if name in known]
    return tuple(dict.fromkeys(form.search if name in form.search_tools else name for name in names))


def _tools_of(turn: Turn, form: TrajectoryForm, tools: Sequence[str]) -> list[str]:
    """The tools that answered a turn.

    A result that names its tool or its call stands for that; one that names neither stands for the next tool that
    the turn called, so that a turn with one result has used one tool, however many it named.
    """
    called = {call.id: call.name for call in turn.calls if call.id}
    answered = [result.name or called.get(result.call_id, "") for result in turn.results if result.text.strip()]
    written = [(block.start, block.tag) for block in turn.blocks if block.tag in (form.search, *tools) and block.text]
    written += [(call.start, call.name) for call in turn.calls if not call.fault]
    waiting = [name for _, name in sorted(written) if name not in answered]
    return [*answered, *waiting[: answered.count("")]]
