"""Published rewards for SQL, as functions of what was found out about a response.

Sources: Think2SQL `rewards_answer_content.py`, `rewards_reasoning_content.py` (e099208); SQL-R1 `synsql.py`;
Arctic-Text2SQL-R1 (1 / 0.1 / 0); BIRD mini-dev (4d970a9); QATCH.  Only "execution", "soft_f1_aligned" and "r_ves" pay
nothing for wrong results that are easy to come by; the others are here to reproduce what was published.

R-VES of BIRD mini-dev (`evaluation_ves.py`, 4d970a9): a right query's reward by how fast it is beside the reference.

The published ratio is of wall-clock seconds, 100 runs each, outliers beyond three standard deviations dropped.  Seconds
differ from run to run, so by default the ratio is of instructions of SQLite's machine, which do not.

The table scores of QATCH that Think2SQL trains with: cell precision, cell recall, tuple cardinality.

Formulas of spapicchio/QATCH and NL2SQLEvaluator (`qatch_metrics.py`): cells are compared as sets, whatever row or
column they stand in.  The published values are rounded to three digits; these are not.

Soft-F1 of BIRD mini-dev (`evaluation_f1.py`, 4d970a9): how much of the reference's table a wrong table holds.

As published, row i is compared with row i after duplicates are dropped, so the same rows in reverse can score 0, and
listing a column twice raises the score.  `aligned` pairs equal rows first and counts every cell once.

Not covered: rewards of a whole group (Think2SQL's length penalty) and of a language model's opinion.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any, Final, Literal, TypeAlias

from adjudge.verifiers.sql.engine import Engine, Fault, QueryLimits, Row, Table
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine

Stage: TypeAlias = Literal["extract", "refused", "run", "compare", "match"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How far a response came.

    Attributes:
        stage: where it ended: "extract" (no query), "refused" (a query that may not run, or reads nothing), "run" (the
            engine failed it), "compare" (it ran and the result is another one) or "match".
        reason: the reason code for a response that is not right.
        query: the candidate's query, "" when there is none.
        response: the whole response, for rewards of its form.
        pairs: for each accepted query the reference's and the candidate's table on each database; empty unless the
            query ran on all of them.
        ratio: reference cost / candidate cost; 0 unless it was asked for and the response is right.
        evidence: what a person needs to check the verdict.
    """

    stage: Stage
    reason: str = ""
    query: str = ""
    response: str = ""
    pairs: tuple[tuple[tuple[Table, Table], ...], ...] = ()
    ratio: float = 0.0
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether the results are the same on every database."""
        return self.stage == "match"

    @property
    def ran(self) -> bool:
        """Whether the query ran everywhere."""
        return self.stage in ("compare", "match")


# (least ratio of the reference's cost to the candidate's, reward)
STEPS: Final = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5), (0.0, 0.25))


def ves_reward(ratio: float) -> float:
    """Return the reward of a right query, 0.25 to 1.25, by reference cost / candidate cost.

    Raises:
        ValueError: the ratio is not a positive number.
    """
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"the cost ratio is {ratio!r}; it must be a positive number")
    return next(reward for least, reward in STEPS if ratio >= least)


def ves_value(ratio: float) -> float:
    """Return what one right query adds to R-VES / 100: the root of its reward, 0.5 to 1.118."""
    return math.sqrt(ves_reward(ratio))


def usual_ratio(golds: Sequence[float], candidates: Sequence[float]) -> float:
    """Return the mean ratio of paired costs, those beyond three standard deviations left out.

    Raises:
        ValueError: there are no pairs, or not as many of one as of the other.
    """
    if not golds or len(golds) != len(candidates):
        raise ValueError(f"{len(golds)} and {len(candidates)} costs; give as many of both, and at least one")
    ratios = [gold / candidate for gold, candidate in zip(golds, candidates, strict=True)]
    mean, deviation = statistics.fmean(ratios), statistics.pstdev(ratios)
    return statistics.fmean([ratio for ratio in ratios if abs(ratio - mean) < 3 * deviation] or ratios)


def cell_precision(gold: Sequence[Row], candidate: Sequence[Row]) -> float:
    """Return the share of the candidate's different cells that the reference has, in [0, 1]."""
    if not gold or not candidate:
        return float(not gold and not candidate)
    wanted, given = set(chain.from_iterable(gold)), set(chain.from_iterable(candidate))
    return len(wanted & given) / len(given) if given else 0.0


def cell_recall(gold: Sequence[Row], candidate: Sequence[Row]) -> float:
    """Return the share of the reference's different cells that the candidate has, in [0, 1]."""
    return cell_precision(candidate, gold)


def tuple_cardinality(gold: Sequence[Row], candidate: Sequence[Row]) -> float:
    """Return the smaller number of rows as a share of the larger, in [0, 1]."""
    if not gold and not candidate:
        return 1.0
    return min(len(gold), len(candidate)) / max(len(gold), len(candidate))


def qatch(gold: Sequence[Row], candidate: Sequence[Row]) -> float:
    """Return the mean of the three, in [0, 1] (`cp_cr_tc` in the evaluator); 0 when just one table is empty."""
    if not gold or not candidate:
        return float(not gold and not candidate)
    parts = (cell_precision(gold, candidate), cell_recall(gold, candidate), tuple_cardinality(gold, candidate))
    return sum(parts) / 3


def soft_f1(gold: Sequence[Row], candidate: Sequence[Row]) -> float:
    """Return the published Soft-F1 of two tables, in [0, 1]; 1 when both are empty."""
    if not gold and not candidate:
        return 1.0
    golds, candidates = list(dict.fromkeys(gold)), list(dict.fromkeys(candidate))
    matched = only_candidate = only_gold = 0.0
    for wanted, given in zip_longest(golds, candidates):
        if given is None:
            only_gold += 1
        elif wanted is None:
            only_candidate += 1
        else:
            hits = sum(cell in wanted for cell in given)
            matched += hits / len(wanted)
            only_candidate += (len(given) - hits) / len(wanted)
            only_gold += sum(cell not in given for cell in wanted) / len(wanted)
    return _f1(matched, only_candidate, only_gold)


def soft_f1_aligned(gold: Sequence[Row], candidate: Sequence[Row]) -> float:
    """Return a Soft-F1 that neither row order nor repeated columns change for the better, in [0, 1].

    Equal rows are paired first, each once; the others in order.  Within a pair every cell of the reference is matched
    once, and a row that is wider than the reference's pays for each further cell.
    """
    if not gold and not candidate:
        return 1.0
    left, right = Counter(gold), Counter(candidate)
    pairs: list[tuple[Row | None, Row | None]] = []
    for row, count in (left & right).items():
        pairs.extend([(row, row)] * count)
    pairs.extend(zip_longest((left - right).elements(), (right - left).elements()))
    matched = only_candidate = only_gold = 0.0
    for wanted, given in pairs:
        if wanted is None or given is None:
            only_gold += wanted is not None
            only_candidate += given is not None
            continue
        hits = sum((Counter(wanted) & Counter(given)).values())
        matched += hits / len(wanted)
        only_candidate += (len(given) - hits) / len(wanted)
        only_gold += (len(wanted) - hits) / len(wanted)
    return _f1(matched, only_candidate, only_gold)


def _f1(matched: float, only_candidate: float, only_gold: float) -> float:
    if not matched:
        return 0.0
    precision, recall = matched / (matched + only_candidate), matched / (matched + only_gold)
    return 2 * precision * recall / (precision + recall)


Reward = Callable[[Judgement], float]
TableScore = Callable[[Sequence[Row], Sequence[Row]], float]

_LENGTH: Final = 2048  # characters of thought and answer at which SQL-R1's length bonus is full
_SQL_BLOCK: Final = re.compile(r"```sql(.*?)```", re.DOTALL)


def execution(judgement: Judgement) -> float:
    """Return 1 for the right result, else 0: execution accuracy under the comparator in use."""
    return float(judgement.right)


def arctic(judgement: Judgement) -> float:
    """Return 1 for the right result, 0.1 for a query that runs, else 0.

    Think2SQL's code of it (05435d6) pays the 0.1 only where both tags, `<reasoning>` and `<answer>`, are closed.
    """
    return 1.0 if judgement.right else 0.1 if judgement.ran else 0.0


def r_ves(judgement: Judgement) -> float:
    """Return the root of BIRD's efficiency reward for the right result, else 0; its mean x 100 is R-VES."""
    return ves_value(judgement.ratio) if judgement.right else 0.0


def think2sql(judgement: Judgement) -> float:
    """Return 0.85 x execution accuracy + 0.15 x form; the published comparator is "bird"."""
    return 0.85 * judgement.right + 0.15 * has_form(judgement.response, "reasoning")


def staged(judgement: Judgement) -> float:
    """Return Think2SQL's staged reward: 0 for an error, else QATCH's mean and at least 0.1."""
    return max(0.1, _table_score(qatch, judgement)) if judgement.ran else 0.0


def sql_r1(judgement: Judgement) -> float:
    """Return SQL-R1's total, in [-1, 7.5].

    Form +1 or -1; with the right form +2 for a query that runs, -2 for one that does not; then +3 for the right
    result, -3 for another; for the right one also half the share of 2,048 characters that thought and answer fill,
    and the share of the answer that is SQL.
    """
    thought, answer = _element(judgement.response, "think"), _element(judgement.response, "answer")
    if thought is None or answer is None or not has_elements(judgement.response, ("think", "answer")):
        return -1.0
    if not judgement.ran:
        return 1.0 - 2.0
    if not judgement.right:
        return 1.0 + 2.0 - 3.0
    block = _SQL_BLOCK.findall(answer)
    sql = block[-1].strip() if block else judgement.query
    length = min(len(thought) + len(answer), _LENGTH) / _LENGTH * 0.5
    return 1.0 + 2.0 + 3.0 + length + len(sql) / max(1, len(answer))


def has_elements(text: str, tags: Sequence[str]) -> bool:
    """Return whether each tag opens once and closes once, in order (SQL-R1's rule)."""
    marks = [f"<{slash}{tag}>" for tag in tags for slash in ("", "/")]
    places = [text.find(mark) for mark in marks]
    return all(text.count(mark) == 1 for mark in marks) and places == sorted(places)


def has_form(text: str, thought: str) -> bool:
    """Return whether the text is a thought and an answer and nothing else (Think2SQL's rule)."""
    pattern = rf"\s*<{thought}>.*?</{thought}>\s*<answer>.*?</answer>\s*"
    return re.fullmatch(pattern, text, re.DOTALL | re.IGNORECASE) is not None


def _element(text: str, tag: str) -> str | None:
    start, end = text.find(f"<{tag}>"), text.find(f"</{tag}>")
    return text[start + len(tag) + 2 : end].strip() if 0 <= start < end else None


def _table_score(score: TableScore, judgement: Judgement) -> float:
    """Return the mean over databases, of the accepted query that fits best."""
    if not judgement.pairs:
        return 0.0
    return max(
        statistics.fmean(score(gold.rows, candidate.rows) for gold, candidate in pairs) for pairs in judgement.pairs
    )


def _of_tables(score: TableScore) -> Reward:
    def reward(judgement: Judgement) -> float:
        return _table_score(score, judgement) if judgement.ran else 0.0

    reward.__doc__ = score.__doc__
    return reward


REWARDS: Final[dict[str, Reward]] = {
    "execution": execution,
    "soft_f1": _of_tables(soft_f1),
    "soft_f1_aligned": _of_tables(soft_f1_aligned),
    "r_ves": r_ves,
    "cell_precision": _of_tables(cell_precision),
    "cell_recall": _of_tables(cell_recall),
    "tuple_cardinality": _of_tables(tuple_cardinality),
    "qatch": _of_tables(qatch),
    "think2sql": think2sql,
    "staged": staged,
    "arctic": arctic,
    "sql_r1": sql_r1,
}
NEEDS_ALL_RESULTS: Final = frozenset(
    {"soft_f1", "soft_f1_aligned", "cell_precision", "cell_recall", "tuple_cardinality", "qatch", "staged"}
)


WORST: Final = 0.01  # of a candidate that cannot be measured within the limits: below every step of the reward


def cost_ratio(
    gold: str,
    candidate: str,
    engines: Sequence[Engine],
    limits: QueryLimits,
    cost: Literal["steps", "seconds"],
    iterations: int,
) -> float:
    """Return reference cost / candidate cost, the mean over the databases.

    "steps" counts SQLite's instructions once; "seconds" times each query `iterations` times, in turns.
    """
    ratios = []
    for engine in engines:
        if cost == "steps" and isinstance(engine, SqliteEngine):
            wanted, taken = engine.steps(gold, limits), engine.steps(candidate, limits)
            ratios.append(WORST if isinstance(taken, Fault) or isinstance(wanted, Fault) else wanted / taken)
        else:
            ratios.append(_timed(gold, candidate, engine, limits, iterations))
    return statistics.fmean(ratios)


def _timed(gold: str, candidate: str, engine: Engine, limits: QueryLimits, iterations: int) -> float:
    golds: list[float] = []
    candidates: list[float] = []
    for _ in range(iterations):
        for sql, times in ((gold, golds), (candidate, candidates)):
            done = engine.run(sql, limits)
            if isinstance(done, Fault):
                return WORST
            times.append(max(done.seconds, 1e-7))
    return usual_ratio(golds, candidates)
