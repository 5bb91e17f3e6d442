"""Rewards at the boundary of what a search agent knows: answer alone where that is enough, search where it is not.

The answer is right by SQuAD's exact match, or by token F1 from `least` on.  Searches that were tried cost; only those
that a tool answered can earn.  An agent that writes a tool's result itself, that gives different answers, or that goes
on after its answer is malformed.  What a tool answered though no search can be read there was a search that was tried.

| case | when |
|---|---|
| `malformed` | no answer that can be read, or a form that the policy does not allow |
| `wrong`, `wrong_searched` | wrong; a tool answered a search |
| `wrong_needless` | wrong after a search, and the direct answer was right |
| `right` | right; with "sem", without a search |
| `right_needed`, `right_needless` | right with a search, and the direct answer was wrong; was right, too |
| `right_tools` | right, and several different tools answered |
| `decision_right`, `decision_wrong` | the agent's word on whether it needs a search, beside its direct answer |

| policy | where the numbers are from |
|---|---|
| `ikea` | the released code, hzy312/knowledge-r1 @ 0b254e2: 1.6, 1.4, 1.2, 1.0 for 0, 1, 2, 3 searches; 0.05; -1 |
| `sem` | the order is the paper's (arXiv 2505.07903); the numbers are ours |
| `adasearch` | the second stage of arXiv 2512.16883; 1 and 0 are its outcome reward, the rest is ours |
| `tool_star` | from memory of arXiv 2505.16410 |

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
from adjudge.responses.answer_span import Span, shorten
from adjudge.responses.trajectories.searches import final_answer, searches_of
from adjudge.responses.trajectories.trajectory import Trajectory, TrajectoryForm, Turn
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.agents.scoring import TrajectoryVerifier, case_values
from adjudge.verifiers.text.token_f1 import TokenF1Verifier

Policy: TypeAlias = Literal["ikea", "sem", "adasearch", "tool_star"]

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
        "tool_star": {"malformed": -1.0, "wrong": 0.0, "right": 1.0, "right_tools": 1.1},
    }
)
_WORDS = {"yes": True, "no": False}


@dataclass(frozen=True, kw_only=True)
class SearchBoundaryVerifier(TrajectoryVerifier):
    """A search agent's answer by what it had to search for: IKEA, SEM, AdaSearch, Tool-Star.

    The reference is the answer or a list of accepted ones, or `{"answer": .., "direct": ..}`; `direct`, there or in
    `Sample.extra`, is true or false for the answer without a search, or that answer itself ("sem", "adasearch").

    Attributes:
        policy: whose table is used; see the module.
        values: values of the table that take the place of the policy's own, by case.
        max_searches: with "ikea", the number of searches from which thrift pays nothing; 3 as released.
        thought: whether a trajectory without a thought is malformed, as for IKEA.
        decision: with "adasearch", the tag in which the agent says yes (it knows the answer) or no.
        tools: names of tools beside the search, such as "python", by tag or by call; "tool_star" counts no others, and
            calls of others cost what searches do.
        metric: how an answer is compared: "exact_match", or "f1".
        threshold: the least value of the metric that is right.
        max_characters: most characters that the agent may write; more is malformed (`too_complex`).
    """

    name: ClassVar[str] = "search_boundary"
    version: ClassVar[str] = "1"

    policy: Policy = "ikea"
    values: Mapping[str, float] = field(default_factory=dict)
    max_searches: Count = 3
    thought: bool = False
    decision: str = "decision"
    tools: tuple[str, ...] = ()
    metric: Literal["exact_match", "f1"] = "exact_match"
    threshold: Annotated[float, Range(gt=0, le=1)] = 1.0
    max_characters: Count = 200_000

    def __post_init__(self) -> None:
        """Reject options out of range, and values of cases that the policy does not know."""
        if not isinstance(self.tools, list | tuple) or not all(isinstance(one, str) and one for one in self.tools):
            raise ValueError(f"{self.name} option tools={self.tools!r}; give a list of names")
        object.__setattr__(self, "tools", tuple(self.tools))
        super().__post_init__()
        object.__setattr__(self, "values", case_values(self.name, self.values, TABLES[self.policy]))

    @property
    def more_tags(self) -> tuple[str, ...]:
        """The tags of tools and of the decision."""
        return (*self.tools, *((self.decision,) if self.policy == "adasearch" else ()))

    @cached_property
    def table(self) -> dict[str, float]:
        """Case to value, with the values that were given."""
        return {**TABLES[self.policy], **self.values}

    @cached_property
    def _answers(self) -> TokenF1Verifier:
        return TokenF1Verifier(metric=self.metric)

    def judged(
        self, sample: Sample, trajectory: Trajectory, gold: tuple[tuple[tuple[str, ...], ...], bool | None]
    ) -> Score:
        """Return the value of the case; `Score.evidence` has the case and the counts."""
        answers, direct = gold
        decides = self.policy == "adasearch"
        conduct = conduct_of(trajectory, self.shape, thought=self.thought, tools=self.tools, answer=not decides)
        if trajectory.written > self.max_characters:
            return self._scored("malformed", "too_complex", conduct)
        if sample.finish_reason == "length":
            return self._scored("malformed", "truncated", conduct)
        if conduct.fault:
            return self._scored("malformed", conduct.fault, conduct)
        if decides:
            return self._decided(trajectory, conduct, bool(direct))
        right = self._right(conduct.answer, answers)
        case = case_of(self.policy, conduct, right=right, direct=direct)
        return self._scored(case, "" if right else "wrong", conduct, answer=shorten(conduct.answer))

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the value of a malformed trajectory."""
        return Score.scored(min(0.0, self.table["malformed"]), reason)

    def _decided(self, trajectory: Trajectory, conduct: Conduct, direct: bool) -> Score:
        knows, fault = read_decision(trajectory, self.decision)
        if knows is None:
            return self._scored("malformed", fault, conduct)
        if knows and conduct.attempted:
            return self._scored("malformed", "bad_format", conduct)  # it says that it knows, and searches
        right = knows == direct
        case = "decision_right" if right else "decision_wrong"
        return self._scored(case, "" if right else "wrong", conduct, knows=knows, direct=direct)

    def _scored(self, case: str, reason: str, conduct: Conduct, **evidence: Any) -> Score:
        thrift = self.table.get(THRIFT, 0.0) if case.startswith("right") else 0.0
        value = self.table[case] + thrift * max(0.0, 1.0 - conduct.attempted / self.max_searches)
        counts = {"attempted": conduct.attempted, "answered": conduct.answered, "tools": list(conduct.tools)}
        return Score.scored(value, reason, case=case, **counts, **evidence)

    def _right(self, answer: str, gold: tuple[tuple[str, ...], ...]) -> bool:
        value = self._answers.judge([Span("tag", (answer,))], gold).value
        return value is not None and value >= self.threshold

    def gold(self, sample: Sample) -> tuple[tuple[tuple[str, ...], ...], bool | None]:
        """Return the accepted answers, and whether the direct answer is right.

        Raises:
            BadReferenceError: one of them is missing or malformed.
        """
        reference = sample.reference
        direct = sample.extra.get("direct")
        if isinstance(reference, Mapping):
            for key in reference:
                if key not in ("answer", "direct"):
                    raise BadReferenceError(
                        f"the reference has the key {key!r}; known are answer and direct", mistake=True
                    )
            direct = reference.get("direct", direct)
            reference = reference.get("answer")
        gold = self._answers.read_reference(reference)
        if direct is not None and not isinstance(direct, bool | str):
            raise BadReferenceError(
                f"direct is {shorten(repr(direct), 60)}; give true, false, or the answer without a search", mistake=True
            )
        if direct is None and self.policy in ("sem", "adasearch"):
            raise BadReferenceError(
                f'{self.policy} asks whether the answer without a search is right: give {{"answer": .., "direct": '
                'true}, or extra["direct"]',
                mistake=True,
            )
        if not isinstance(direct, str):
            return gold, direct
        flags = ("true", "false")  # texts that mean a flag, unless the question asks for one of them
        if direct.strip().casefold() in flags and not any(self._right(flag, gold) for flag in flags):
            raise BadReferenceError(f"direct is the text {direct!r}; give true or false itself", mistake=True)
        return gold, self._right(direct, gold)


def case_of(policy: Policy, conduct: Conduct, *, right: bool, direct: bool | None) -> str:
    """Return the case of a well-formed trajectory; "adasearch" has its own.

    Args:
        policy: whose table is used.
        conduct: what the agent did: searches that it tried cost, those that a tool answered can earn.
        right: whether the answer is right.
        direct: whether the answer without a search is right; None if nobody looked.
    """
    if policy == "ikea":
        return "right" if right else "wrong_searched" if conduct.answered else "wrong"
    if policy == "tool_star":
        return ("right_tools" if len(conduct.tools) > 1 else "right") if right else "wrong"
    if not conduct.attempted:
        return "right" if right else "wrong"
    if right:
        return "right_needless" if direct else "right_needed"
    return "wrong_needless" if direct else "wrong"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """How an agent came to its answer.

    Attributes:
        answer: the answer, "" without one.
        fault: why the trajectory is malformed, a code of `adjudge.reasons`; "" if it is not.
        attempted: how many searches were tried; empty ones count, and so does what may have been one (`_unread`).
        answered: how many of those that can be read said something and were answered.
        tools: the different tools that answered, by name; only those that there are.
    """

    answer: str
    fault: str
    attempted: int
    answered: int
    tools: tuple[str, ...]


def conduct_of(
    trajectory: Trajectory, form: TrajectoryForm, *, thought: bool, tools: Sequence[str], answer: bool = True
) -> Conduct:
    """Return how an agent came to its answer.

    Args:
        trajectory: what it did.
        form: the names of tags and tools.
        thought: whether a trajectory without a closed thought that says something is malformed.
        tools: the tools beside the search, by the name of their tag or call.
        answer: whether an answer is asked for.
    """
    final = final_answer(trajectory, form)
    searches = searches_of(trajectory, form)
    ends = [call.end for call in trajectory.calls()] + [search.end for search in searches]
    fault = ""
    if trajectory.forged():
        fault = "tampering"
    elif answer and final.reason:
        fault = final.reason
    elif answer and any(end >= final.end for end in ends):
        fault = "bad_format"  # it went on after its answer; a call beside a message's text ends where that does
    elif thought and not _has_thought(trajectory, form):
        fault = "bad_format"
    return Conduct(
        answer=final.text,
        fault=fault,
        attempted=len(searches) + sum(_unread(turn, form, tools) for turn in trajectory.turns),
        answered=sum(bool(search.query.strip()) and search.answered for search in searches),
        tools=_tools(trajectory, form, tools),
    )


def read_decision(trajectory: Trajectory, tag: str) -> tuple[bool | None, str]:
    """Return whether the agent says that it knows the answer, and "" or the reason why it says neither yes nor no."""
    words = {block.text.strip().rstrip(".!").casefold() for block in trajectory.blocks(tag)}
    if len(words) != 1:
        return None, "several_answers" if words else "no_answer"
    said = _WORDS.get(words.pop())
    return said, "" if said is not None else "unparsable_answer"


def _has_thought(trajectory: Trajectory, form: TrajectoryForm) -> bool:
    close = f"</{form.think}>"
    thoughts = trajectory.blocks(form.think) if form.think else ()
    return any(block.text and trajectory.text[block.start : block.end].endswith(close) for block in thoughts)


def _unread(turn: Turn, form: TrajectoryForm, tools: Sequence[str]) -> int:
    """How many searches a turn may have made that cannot be read as such.

    They are calls of tools that nobody named, or that are no JSON; and, in a turn without a search, one for results
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
