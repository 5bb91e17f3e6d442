"""StepSearch's reward (arXiv 2505.15107; `Zillwang/StepSearch`): new evidence in each turn, and the answer at the end.

    turn  = gain - repeat_weight * repeat               (`adjudge.responses.trajectories.gains`), on the search
    value = answer F1 + key_weight * key-word score + the turns' values

Only what tools returned is evidence, and only queries that a tool answered are asked.

Where the released code differs: it reads results that the model wrote itself; it lets a later query take the place of
a better one for a sub-question; a document counts as another one if a blank or the document after it differs; text
after the answer spares what repeats cost; it rounds each F1 to four digits.  Its reward for single tags is left out;
the scorer `format` says whether a response has its form.

Not covered: PPO; the turns' values reach tokens by `Score.steps` (docs/credit.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from adjudge.attacks import AttackCase
from adjudge.protocol import Sample, Score, content_text
from adjudge.responses.trajectories.gains import evidence_gains, repeats
from adjudge.responses.trajectories.searches import Search
from adjudge.verifiers.agents.search.evidence_text import identity, words
from adjudge.verifiers.agents.search.reference import SearchReference, read_reference
from adjudge.verifiers.agents.search.steps_keywords import keyword_score
from adjudge.verifiers.agents.search.steps_similarity import similarities
from adjudge.verifiers.agents.search.trajectory_verifier import Episode, TrajectoryVerifier
from adjudge.verifiers.text.answer_span import shorten
from adjudge.verifiers.text.answer_verifier import require_choice


@dataclass(frozen=True, kw_only=True)
class SearchStepsVerifier(TrajectoryVerifier):
    """StepSearch: answer F1, key words, and for each search new gold evidence less repeated documents.

    The reference is `{"answer": .., "documents": [gold texts], "keywords": [[ways to ask sub-question 1], ..]}`;
    without `keywords` the key-word score is left out.

    Attributes:
        malformed: the value of a trajectory without one answer at its end, less what its repeats cost.
        key_weight: weight of the key-word score.
        repeat_weight: weight of the share of documents that were there before.
        prompt_words: "count" compares queries with key words as released; "ignore" leaves out the words that the
            prompt gives away.
    """

    name: ClassVar[str] = "search_steps"
    version: ClassVar[str] = "1"

    malformed: float = -1.0
    key_weight: float = 0.618
    repeat_weight: float = 1.0
    prompt_words: Literal["count", "ignore"] = "count"

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        require_choice(self, "prompt_words", ("count", "ignore"))
        self.require_number("key_weight")
        self.require_number("repeat_weight")

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        from adjudge.verifiers.agents.search.turn_attacks import attack_cases

        del folder  # the cases need no files
        yield from attack_cases("search_steps")

    def read_reference(self, reference: Any) -> SearchReference:
        """Return the reference; `BadReferenceError` if it cannot be read."""
        return read_reference(reference, lists="documents", keywords=True)

    def gains_and_costs(self, searches: Sequence[Search], gold: SearchReference) -> tuple[list[float], list[float]]:
        """Return each search's new evidence, and its share of repeated documents times their weight."""
        again = repeats([[identity(document) for document in search.documents()] for search in searches])
        return evidence_gains(_similarities(searches, gold.documents)), [self.repeat_weight * share for share in again]

    def judge(self, episode: Episode, gold: SearchReference) -> Score:
        """Return answer and key words."""
        queries = [line for search in episode.searches if search.answered for line in search.query.splitlines()]
        ignored = frozenset(words(_prompt_text(episode.sample))) if self.prompt_words == "ignore" else frozenset()
        key_score = keyword_score(queries, gold.keywords, ignored)
        f1 = gold.answer_f1(episode.answer.text)
        return Score.scored(
            f1 + self.key_weight * key_score,
            "" if f1 else "wrong",
            answer=shorten(episode.answer.text),
            answer_f1=f1,
            key_score=key_score,
        )


def _similarities(searches: Sequence[Search], golds: tuple[str, ...]) -> list[list[float]]:
    """For each search, the best similarity of its documents to each gold text; a document is compared once."""
    known: dict[tuple[str, str], list[float]] = {}
    rows = []
    for search in searches:
        best = [0.0] * len(golds)
        for document in search.documents():
            key = identity(document)
            if key not in known:
                known[key] = similarities(document.text, golds)
            best = [max(pair) for pair in zip(best, known[key], strict=True)]
        rows.append(best)
    return rows


def _prompt_text(sample: Sample) -> str:
    if isinstance(sample.prompt, str):
        return sample.prompt
    return "\n".join(content_text(turn.get("content")) for turn in sample.prompt)
