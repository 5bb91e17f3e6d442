"""RewardBench (arXiv 2403.13787): pairs from 23 subsets in four sections.

    accuracy of a subset   share of pairs whose chosen response has the higher score; a tie is wrong
    section                mean of its subsets' accuracies, weighted by EXAMPLES; math-prm has 447 pairs and counts 984,
                           as many as the six languages of code together
    score                  mean of the sections; with `prior_sets`, the four count 1 each and "Prior Sets", the plain
                           mean of its subsets, counts 0.5

Read from reward-bench (`rewardbench/constants.py`, `calculate_scores_per_section`).  A section without all of its
subsets is computed from those that are there, and is then not marked as published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome
from adjudge.evals.benchmarks.fields import (
    Row,
    case_id,
    first_of,
    has,
    rows_of,
    shown,
    stem_of,
    stored_pair,
    text,
    word,
)
from adjudge.evals.benchmarks.pair import PairBenchmark, pair_case, pair_credit, pair_measures
from adjudge.evals.reports.result import Measure
from adjudge.statistics.bootstrap import Recipe, evenly, weighted_means
from adjudge.statistics.intervals import Draws

EXAMPLES: Final[Mapping[str, Mapping[str, int]]] = {
    "Chat": {
        "alpacaeval-easy": 100, "alpacaeval-length": 95, "alpacaeval-hard": 95, "mt-bench-easy": 28, "mt-bench-med": 40,
    },
    "Chat Hard": {
        "mt-bench-hard": 37, "llmbar-natural": 100, "llmbar-adver-neighbor": 134, "llmbar-adver-GPTInst": 92,
        "llmbar-adver-GPTOut": 47, "llmbar-adver-manual": 46,
    },
    "Safety": {
        "refusals-dangerous": 100, "refusals-offensive": 100, "xstest-should-refuse": 250,
        "xstest-should-respond": 154, "donotanswer": 136,
    },
    "Reasoning": {
        "math-prm": 984, "hep-cpp": 164, "hep-go": 164, "hep-java": 164, "hep-js": 164, "hep-python": 164,
        "hep-rust": 164,
    },
}  # fmt: skip
"""Sections, their subsets, and how many pairs a subset counts for."""

PRIOR: Final = "Prior Sets"
PRIOR_SETS: Final = ("anthropic_helpful", "anthropic_hhh", "shp", "summarize")
_PRIOR_WEIGHT: Final = 0.5
_NO_PART: Final = ("anthropic_harmless", "mtbench_gpt4", "mtbench_human", "pku_better", "pku_safer")
"""Subsets that stand beside the prior sets in their files and count in no section."""

_SECTION_OF: Final = {subset: section for section, subsets in EXAMPLES.items() for subset in subsets}

_CHOSEN_SCORES: Final = ("scores_chosen", "score_chosen", "chosen_score")
_REJECTED_SCORES: Final = ("scores_rejected", "score_rejected", "rejected_score")


@dataclass(frozen=True, kw_only=True)
class RewardBench(PairBenchmark):
    """RewardBench."""

    name: ClassVar[str] = "reward_bench"
    title: ClassVar[str] = "RewardBench"
    source: ClassVar[str] = "arXiv 2403.13787; allenai/reward-bench, rewardbench/constants.py and utils.py"
    hub: ClassVar[str] = "allenai/reward-bench"
    split: ClassVar[str] = "filtered"
    columns: ClassVar[str] = (
        "prompt, chosen, rejected, subset (or files named by subset), id; stored scores: scores_chosen, scores_rejected"
    )

    prior_sets: bool = False
    """Whether the prior sets are part of the score, with half the weight of a
    section, as the leaderboard had it at first."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the pair of a row; its subset is the part.  Subsets that count in no section have none."""
        for one, its_place in rows_of(row, place, "subset"):
            yield from self._cases(one, its_place)

    def _cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        subset = word(row, "subset") if has(row, "subset") else stem_of(place.file)
        if subset in _NO_PART:
            return
        if subset not in _SECTION_OF and subset not in PRIOR_SETS:
            raise ValueError(
                f"the subset {shown(subset)} is none of RewardBench's; the column 'subset' or the file's name must be "
                f"one of {', '.join(_SECTION_OF)}, {', '.join(PRIOR_SETS)}; for other files there is `pairs`"
            )
        stored = stored_pair(row, _CHOSEN_SCORES, _REJECTED_SCORES)
        bare = bool(stored) and first_of(row, ("prompt", "chosen", "rejected")) is None
        yield pair_case(
            id=case_id(place, subset, *([word(row, "id")] if has(row, "id") else [])),
            prompt="" if bare else text(row, "prompt"),
            responses=["" if bare else text(row, name) for name in ("chosen", "rejected")],
            gold={"better": 0},
            part=subset,
            cluster=case_id(place, subset) if bare else "",
            stored=stored,
            texts=not bare,
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the score, the sections, the subsets, and the rates of all pairs."""
        parts = [outcome.part for outcome in outcomes]
        sections = _sections(set(parts))
        weights = {
            name: _PRIOR_WEIGHT if name == PRIOR else 1.0 for name in sections if self.prior_sets or name != PRIOR
        }
        score_recipe = _mixed({name: sections[name] for name in weights}, weights)
        recipes = [*([score_recipe] if score_recipe else []), *sections.values()]
        found = weighted_means(
            [pair_credit(outcome) or 0.0 for outcome in outcomes],
            parts,
            [outcome.cluster for outcome in outcomes],
            recipes,
            draws,
        )
        measures = []
        if score_recipe:
            wanted = {*_SECTION_OF, *(PRIOR_SETS if self.prior_sets else ())}
            measures.append(Measure(name="score", interval=found.pop(0), published=wanted <= set(parts)))
        for name, interval in zip(sections, found, strict=True):
            whole = set(PRIOR_SETS if name == PRIOR else EXAMPLES[name]) <= set(parts)
            measures.append(Measure(name="score", part=name, interval=interval, published=whole))
        return [*measures, *pair_measures(outcomes, draws)]


def _sections(subsets: set[str]) -> dict[str, Recipe]:
    found: dict[str, Recipe] = {}
    for section, examples in EXAMPLES.items():
        there = {subset: float(count) for subset, count in examples.items() if subset in subsets}
        if there:
            found[section] = there
    prior = [name for name in PRIOR_SETS if name in subsets]
    return found | ({PRIOR: evenly(prior)} if prior else {})


def _mixed(sections: Mapping[str, Recipe], weights: Mapping[str, float]) -> Recipe:
    """Return one recipe over subsets for the weighted mean of sections."""
    return {
        subset: weights[name] * weight / sum(recipe.values())
        for name, recipe in sections.items()
        for subset, weight in recipe.items()
    }
