"""Rewards at the boundary of what a search agent knows: answer alone where that is enough, search where it is not.

The answer is right by SQuAD's exact match, or by token F1 from `least` on.  Searches that were tried cost; only those
that a tool answered can earn.  An agent that writes a tool's result itself, that gives different answers, or that goes
on after its answer is malformed.  What a tool answered though no search can be read there was a search that was tried.

Not covered: the value of single searches (`search_steps`, `search_gain`), and finding out what the direct answer is:
answer each question once without tools, and write whether that was right into a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from adjudge.attacks import AttackCase
from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Sample, Score, Verifier
from adjudge.responses.trajectories.form import TrajectoryForm, plain_form
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.responses.trajectories.trajectory import Trajectory
from adjudge.verifiers.agents.search.boundary_cases import (
    POLICIES,
    TABLES,
    Policy,
    case_of,
    decision_case,
    value_of,
)
from adjudge.verifiers.agents.search.boundary_reading import Conduct, conduct_of, read_decision
from adjudge.verifiers.nested.number import check_count, check_number
from adjudge.verifiers.text.answer_span import Span, shorten
from adjudge.verifiers.text.token_f1 import TokenF1Verifier

_LARGEST = 1e6


@dataclass(frozen=True, kw_only=True)
class SearchBoundaryVerifier(Verifier):
    """A search agent's answer by what it had to search for: IKEA, SEM, AdaSearch, Tool-Star.

    The reference is the answer or a list of accepted ones, or `{"answer": .., "direct": ..}`; `direct`, there or in
    `Sample.extra`, is true or false for the answer without a search, or that answer itself ("sem", "adasearch").

    Attributes:
        policy: whose table is used; see `adjudge.verifiers.agents.search.boundary_cases`.
        values: values of the table that take the place of the policy's own, by case.
        most_searches: with "ikea", the number of searches from which thrift pays nothing; 3 as released.
        thought: whether a trajectory without a thought is malformed, as for IKEA.
        decision: with "adasearch", the tag in which the agent says yes (it knows the answer) or no.
        tools: names of tools beside the search, such as "python", by tag or by call; "tool_star" counts no others, and
            calls of others cost what searches do.
        metric: how an answer is compared: "exact_match", or "f1".
        least: the least value of the metric that is right.
        longest: most characters that the agent may write; more is malformed (`too_complex`).
        form: names of tags and tools, as `TrajectoryForm` has them.
    """

    name: ClassVar[str] = "search_boundary"
    version: ClassVar[str] = "1"

    policy: Policy = "ikea"
    values: Mapping[str, float] = field(default_factory=dict)
    most_searches: int = 3
    thought: bool = False
    decision: str = "decision"
    tools: tuple[str, ...] = ()
    metric: Literal["exact_match", "f1"] = "exact_match"
    least: float = 1.0
    longest: int = 200_000
    form: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject options out of range, and values of cases that the policy does not know."""
        for option, allowed in (("policy", POLICIES), ("metric", ("exact_match", "f1")), ("thought", (True, False))):
            if getattr(self, option) not in allowed:
                listed = ", ".join(map(str, allowed))
                raise ValueError(f"{self.name}: {option} is {getattr(self, option)!r}; it must be one of {listed}")
        for option in ("most_searches", "longest"):
            check_count(getattr(self, option), 1, f"{self.name}: {option}")
        check_number(self.least, 0.0, 1.0, f"{self.name}: least")
        if not self.least:
            raise ValueError(f"{self.name}: least is 0, so every answer would be right; give more than 0")
        if not isinstance(self.values, Mapping):
            raise ValueError(f"{self.name}: values is {self.values!r}; give a mapping of cases to numbers")
        known = TABLES[self.policy]
        for case, value in self.values.items():
            if case not in known:
                raise ValueError(f"{self.name}: {self.policy} has no case {case!r}; its cases are {', '.join(known)}")
            check_number(value, -_LARGEST, _LARGEST, f"{self.name}: values[{case!r}]")
        object.__setattr__(self, "values", dict(self.values))
        if not isinstance(self.tools, list | tuple) or not all(isinstance(one, str) and one for one in self.tools):
            raise ValueError(f"{self.name}: tools is {self.tools!r}; give a list of names")
        object.__setattr__(self, "tools", tuple(self.tools))
        object.__setattr__(self, "form", self._with_tags(plain_form(self.form, self.name)))

    def _with_tags(self, form: dict[str, Any]) -> dict[str, Any]:
        """The form with the further tags that the options name."""
        wanted = (*self.tools, *((self.decision,) if self.policy == "adasearch" else ()))
        given = TrajectoryForm.of(form)
        more = (*given.more, *(tag for tag in wanted if tag not in given.tags))
        return plain_form(asdict(replace(given, more=more)), self.name)

    @cached_property
    def table(self) -> dict[str, float]:
        """Case to value, with the values that were given."""
        return {**TABLES[self.policy], **self.values}

    @cached_property
    def shape(self) -> TrajectoryForm:
        """The form as a record."""
        return TrajectoryForm.of(self.form)

    @cached_property
    def _answers(self) -> TokenF1Verifier:
        return TokenF1Verifier(metric=self.metric)

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        from adjudge.verifiers.agents.search.boundary_attacks import attack_cases

        del folder  # the cases need no files
        yield from attack_cases()

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference, what the policy asks beside it, or the trajectory is malformed."""
        super().validate(sample)
        which = f"{self.name}{f', sample {sample.id!r}' if sample.id else ''}"
        try:
            self._gold(sample)
            check_trajectory(sample, self.shape)
        except BadReferenceError as error:
            if error.mistake:
                raise ValueError(f"{which}: {error}") from error
        except ValueError as error:
            raise ValueError(f"{which}: {error}") from error

    def verify(self, sample: Sample) -> Score:
        """Return the value of the case; `Score.evidence` has the case and the counts."""
        try:
            gold, direct = self._gold(sample)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        try:
            trajectory = read_trajectory(sample, self.shape)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
        decides = self.policy == "adasearch"
        conduct = conduct_of(trajectory, self.shape, thought=self.thought, tools=self.tools, answer=not decides)
        if sum(len(turn.text) for turn in trajectory.turns) > self.longest:
            return self._malformed("too_complex", conduct)
        if sample.finish_reason == "length":
            return self._malformed("truncated", conduct)
        if conduct.fault:
            return self._malformed(conduct.fault, conduct)
        if decides:
            return self._decided(trajectory, conduct, bool(direct))
        right = self._right(conduct.answer, gold)
        case = case_of(self.policy, conduct, right=right, direct=direct)
        return self._scored(case, "" if right else "wrong", conduct, answer=shorten(conduct.answer))

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the value of a malformed trajectory."""
        return Score.scored(min(0.0, self.table["malformed"]), reason)

    def _decided(self, trajectory: Trajectory, conduct: Conduct, direct: bool) -> Score:
        knows, fault = read_decision(trajectory, self.decision)
        if knows is None:
            return self._malformed(fault, conduct)
        if knows and conduct.attempted:
            return self._malformed("bad_format", conduct)  # it says that it knows, and searches
        case = decision_case(knows, direct)
        return self._scored(case, "" if case == "decision_right" else "wrong", conduct, knows=knows, direct=direct)

    def _malformed(self, reason: str, conduct: Conduct) -> Score:
        return self._scored("malformed", reason, conduct)

    def _scored(self, case: str, reason: str, conduct: Conduct, **evidence: Any) -> Score:
        value = value_of(self.table, case, conduct.attempted, self.most_searches)
        counts = {"attempted": conduct.attempted, "answered": conduct.answered, "tools": list(conduct.tools)}
        return Score.scored(value, reason, case=case, **counts, **evidence)

    def _right(self, answer: str, gold: tuple[tuple[str, ...], ...]) -> bool:
        found = self._answers.judge([Span("tag", (answer,))], gold).value
        return found is not None and found >= self.least

    def _gold(self, sample: Sample) -> tuple[tuple[tuple[str, ...], ...], bool | None]:
        """The accepted answers, and whether the direct answer is right."""
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
