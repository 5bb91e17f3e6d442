"""InForage's reward: the outcome, the gold evidence that each turn finds first, and what turns cost.

    turn  = gain * share of gold evidence newly covered - cost, the cost from search `free` + 1 on
    value = outcome * answer + the turns' values

The coefficients were not found in public text; the defaults are ours.  Evidence is covered where what a tool returned
holds it (`how`), and it is covered once: no sum of gains passes 1.

Not covered: evidence that a page has in other words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from adjudge.attacks import AttackCase
from adjudge.protocol import Score
from adjudge.responses.trajectories.gains import evidence_gains
from adjudge.responses.trajectories.searches import Search
from adjudge.verifiers.agents.search.evidence_text import holds, words
from adjudge.verifiers.agents.search.reference import SearchReference, read_reference
from adjudge.verifiers.agents.search.trajectory_verifier import Episode, TrajectoryVerifier
from adjudge.verifiers.nested.number import check_count
from adjudge.verifiers.text.answer_span import shorten
from adjudge.verifiers.text.answer_verifier import require_choice


@dataclass(frozen=True, kw_only=True)
class SearchGainVerifier(TrajectoryVerifier):
    """InForage: outcome, plus the share of gold evidence that each search finds first, less a cost for turns.

    The reference is `{"answer": .., "evidence": [texts that must be found]}`.

    Attributes:
        metric: what an answer is worth: "exact_match" 0 or 1, "f1" between them.
        outcome: weight of the answer (ours).
        gain: weight of the evidence (ours).
        cost: what each search beyond `free` costs (ours); attempts count, whether answered or not.
        free: how many searches cost nothing (ours).
        how: "phrase": a result holds the evidence in its own words, in a row; "words": it holds at least `least` of the
            evidence's different words.
        least: the share of words that is enough for "words" (ours).
    """

    name: ClassVar[str] = "search_gain"
    version: ClassVar[str] = "1"

    metric: Literal["exact_match", "f1"] = "exact_match"
    outcome: float = 1.0
    gain: float = 0.5
    cost: float = 0.05
    free: int = 1
    how: Literal["phrase", "words"] = "phrase"
    least: float = 0.8

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        require_choice(self, "metric", ("exact_match", "f1"))
        require_choice(self, "how", ("phrase", "words"))
        for option in ("outcome", "gain", "cost"):
            self.require_number(option)
        self.require_number("least", 0.0, 1.0)
        if not self.least:
            raise ValueError(f"{self.name}: least is 0, so that every result would hold everything; give a share above")
        check_count(self.free, 0, f"{self.name}: free")

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        from adjudge.verifiers.agents.search.turn_attacks import attack_cases

        del folder  # the cases need no files
        yield from attack_cases("search_gain")

    def read_reference(self, reference: Any) -> SearchReference:
        """Return the reference; `BadReferenceError` if it cannot be read."""
        return read_reference(reference, lists="evidence")

    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return each search's share of new evidence times its weight, and the cost of searches beyond `free`."""
        found = [[float(self._covers(search, text)) for text in gold.documents] for search in searches]
        gains = [self.gain * share for share in evidence_gains(found)]
        return gains, [self.cost * (number >= self.free) for number in range(len(searches))]

    def judge(self, episode: Episode, gold: SearchReference) -> Score:
        """Return what the answer is worth."""
        text = episode.answer.text
        right = gold.answer_f1(text) if self.metric == "f1" else float(gold.is_answer(text))
        return Score.scored(
            self.outcome * right,
            "" if right else "wrong",
            answer=shorten(text),
            answer_value=right,
            searches=len(episode.searches),
        )

    def _covers(self, search: Search, evidence: str) -> bool:
        texts = [f"{document.title}\n{document.text}" for document in search.documents()]
        if self.how == "phrase":
            return any(holds(text, [evidence]) for text in texts)
        wanted = set(words(evidence))
        enough = self.least * len(wanted) - 1e-9  # 0.56 * 25 is a little more than 14
        return any(len(wanted & set(words(text))) >= enough for text in texts)
