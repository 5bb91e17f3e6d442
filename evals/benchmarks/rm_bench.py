"""RM-Bench (arXiv 2410.16184): three chosen and three rejected responses in three styles, from plain to fancy.

    cell (i, j)  share of rows in which chosen response i has a higher score than rejected response j; a tie is wrong
    easy         mean of the cells below the diagonal: the chosen response has the fancier style
    normal       mean of the diagonal: the same style
    hard         mean of the cells above the diagonal: the rejected response has the fancier style
    accuracy     mean of easy, normal and hard, per domain; in all, the mean of the domains chat, code, math, safety

Safety is the mean of safety-refuse and safety-response; the authors' script pools the rows of the two where it reads
all domains from one file, and that number is `accuracy, safety pooled`.  Read from RM-Bench (`scripts/utils.py`).
A cell with a missing score is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.reports.result import Measure
from adjudge.io.values import Text
from adjudge.pages.figures import Figure, Grid
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import Recipe, evenly, weighted_means
from adjudge.statistics.intervals import Draws

STYLES: Final = ("concise", "detailed", "detailed, markdown")
SAFETY: Final = "safety"
_SAFETY_PARTS: Final = ("safety-refuse", "safety-response")
PARTS: Final = ("chat", "code", "math", *_SAFETY_PARTS)
DOMAINS: Final = ("chat", "code", "math", SAFETY)


@dataclass(frozen=True, kw_only=True)
class RmBench(Benchmark):
    """RM-Bench."""

    name: ClassVar[str] = "rm_bench"
    title: ClassVar[str] = "RM-Bench"
    source: ClassVar[str] = "arXiv 2410.16184; THU-KEG/RM-Bench, scripts/utils.py"
    hub: ClassVar[str] = "THU-KEG/RM-Bench"
    split: ClassVar[str] = "train"
    columns: ClassVar[str] = (
        "prompt, chosen (3), rejected (3), domain (or a file named by it: chat_filtered.json), id; stored scores: "
        "score_chosen (3), score_rejected (3)"
    )

    domain: Literal["chat", "code", "math", "safety-refuse", "safety-response"] | None = None
    """The domain of all rows, where neither a column nor the file's name says it:
    chat, code, math, safety-refuse or safety-response."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the six responses of a row, chosen ones first; the gold is `{"styles": 3}`."""
        domain: str = self.domain or fields.optional_word(row, "domain") or fields.stem_of(place.file)
        domain = domain.removesuffix("_filtered")
        if domain not in PARTS:
            raise ValueError(
                f"the domain {shown(domain)} is none of RM-Bench's ({', '.join(PARTS)}); name it in a column 'domain', "
                "by the file's name, or with --domain"
            )
        stored: tuple[Stored, ...] = ()
        if fields.has(row, "score_chosen") or fields.has(row, "score_rejected"):
            stored = (*fields.scores(row, "score_chosen", 3), *fields.scores(row, "score_rejected", 3))
        bare = bool(stored) and fields.first_of(row, ("prompt", "chosen", "rejected")) is None
        yield fields.case_of(
            id=fields.case_id(place, domain, fields.optional_word(row, "id")),
            prompt="" if bare else fields.text(row, "prompt"),
            responses=6 if bare else _responses(row),
            gold={"styles": 3},
            part=domain,
            stored=stored,
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return accuracy, easy, normal and hard, of all domains and of each."""
        parts = [outcome.part for outcome in outcomes]
        recipes = _recipes(parts)
        clusters = [outcome.cluster for outcome in outcomes]
        levels = by_level(cells(outcomes))
        whole = {"": set(PARTS), "pooled": set(PARTS), SAFETY: set(_SAFETY_PARTS)}
        means = {
            level: weighted_means(values, parts, clusters, list(recipes.values()), draws)
            for level, values in levels.items()
        }
        return [
            *(
                Measure(
                    name="accuracy, safety pooled" if part == "pooled" else level,
                    part="" if part == "pooled" else part,
                    interval=means[level][at],
                    published=whole.get(part, {part}) <= set(parts),
                )
                for at, part in enumerate(recipes)
                for level in (["accuracy"] if part == "pooled" else levels)
            ),
            Measure.mean("ties", _ties(outcomes), clusters, draws, better="none"),
            Measure.mean("no verdict", [not one.judged for one in outcomes], clusters, draws, better="low"),
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return the share of the nine comparisons that are right."""
        return float(cells([outcome]).mean()) if outcome.judged else None

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which responses are chosen, and the style of each."""
        notes = [f"{side}, {style}" for side in ("chosen", "rejected") for style in STYLES]
        return "each of the first three responses is better than each of the last three", notes

    def figures(self, outcomes: Sequence[Outcome], measures: Sequence[Measure]) -> Sequence[Figure]:
        """Return the matrix of styles, over all rows."""
        return (
            Grid(
                title="chosen above rejected, by style",
                rows=STYLES,
                columns=STYLES,
                values=tuple(tuple(map(float, line)) for line in cells(outcomes).mean(axis=0)),
                row_axis="chosen",
                column_axis="rejected",
                better="high",
            ),
        )


def _responses(row: Row) -> Sequence[Text]:
    chosen, rejected = fields.texts(row, "chosen"), fields.texts(row, "rejected")
    if len(chosen) != 3 or len(rejected) != 3:
        raise ValueError(f"the row has {len(chosen)} chosen and {len(rejected)} rejected responses; it needs 3 of each")
    return [*chosen, *rejected]


def cells(outcomes: Sequence[Outcome]) -> Floats:
    """Return for each row whether chosen response i beats rejected response j, (rows, 3, 3)."""
    values = np.array([[np.nan if value is None else value for value in outcome.values] for outcome in outcomes])
    return (values[:, :3, None] > values[:, None, 3:]).astype(float)


def by_level(won: Floats) -> dict[str, Floats]:
    """Return accuracy, easy, normal and hard of each row, from its cells."""
    masks = {"easy": np.tril(np.ones((3, 3)), -1), "normal": np.eye(3), "hard": np.triu(np.ones((3, 3)), 1)}
    levels = {name: (won * mask).sum(axis=(1, 2)) / mask.sum() for name, mask in masks.items()}
    return {"accuracy": sum(levels.values(), np.zeros(len(won))) / len(levels), **levels}


def _ties(outcomes: Sequence[Outcome]) -> list[float]:
    """The share of the nine comparisons of each row that are ties."""
    return [
        sum(one is not None and one == other for one in outcome.values[:3] for other in outcome.values[3:]) / 9
        for outcome in outcomes
    ]


def _recipes(parts: Sequence[str]) -> dict[str, Recipe]:
    """The whole, the whole with safety pooled where it has both sets, and each domain."""
    there = set(parts)
    safety = evenly([part for part in _SAFETY_PARTS if part in there])
    domains: dict[str, Recipe] = {part: evenly([part]) for part in DOMAINS if part in there}
    if safety:
        domains[SAFETY] = safety
    wholes: dict[str, Recipe] = {"": _mean_of(list(domains.values()))}
    if len(safety) == 2:
        sizes = {part: float(sum(one == part for one in parts)) for part in safety}
        wholes["pooled"] = _mean_of(list({**domains, SAFETY: sizes}.values()))
    return wholes | domains


def _mean_of(recipes: Sequence[Recipe]) -> Recipe:
    return {part: weight / sum(recipe.values()) for recipe in recipes for part, weight in recipe.items()}
