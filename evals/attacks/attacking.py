"""Attacks on a scorer: each attacker on every row within its budget, and what won is tried elsewhere.

Everything is kept in memory and nothing is written, so a run that is stopped leaves nothing behind.  Words of a row's
own good response are not tokens unless they are elsewhere too, so no search can copy it.  The attacks that a scorer
ships are on tasks of their own: each is one attempt with one question.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from adjudge.evals.attacks.attacker import Attacker, Attempt, Hit, JointAttacker, Limits, Tell, attack
from adjudge.evals.attacks.config import SHIPPED, AttackConfig, make_attacker
from adjudge.evals.attacks.guard import Gold
from adjudge.evals.attacks.measures import HELD_OUT, Carried, Study, checks, figures, measures, to_rows, to_scorer
from adjudge.evals.attacks.target import AttackRow, Read, Standing, Target, Wrap, read_tasks, standings
from adjudge.evals.reports.config import PartsProgress, timed
from adjudge.evals.reports.result import Counts, ReadCase, ReadResponse, Result, cut
from adjudge.io.jobs.report import JobProgress
from adjudge.protocol import Score, Scorer, Verifier, response_text
from adjudge.runtime.contract import score_checked
from adjudge.runtime.loop import run_blocking
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring.attacks import AttackCase, suite_of

_CHUNK = 16  # cases in one call


async def shipped_attempts(target: Target, *, right: float, tell: Tell) -> list[Attempt]:
    """Return what becomes of each attack of the suite; none where no suite is shipped."""
    shipper = getattr(target.scorer, "verifier", target.scorer)
    suite = suite_of(shipper)
    if suite is None:
        return []
    with tempfile.TemporaryDirectory(prefix="adjudge-attacks-") as folder:
        cases = [case for case in suite(Path(folder)) if not case.honest]
        scores = await suite_scores(shipper, cases, lambda done: tell(SHIPPED, done, done / len(cases)))
    target.count(scores)
    return [_attempt(case, score, right) for case, score in zip(cases, scores, strict=True)]


async def suite_scores(
    shipper: Verifier | Scorer, cases: Sequence[AttackCase], tell: Callable[[int], None]
) -> list[Score]:
    """Return the scores of cases of a suite, in their order; those with the same options are scored together.

    A case's own options take the place of those of the shipper, a verifier or a scorer; `tell` takes how many are done.
    """
    groups: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        groups.setdefault(json.dumps(dict(case.options), sort_keys=True, default=repr), []).append(index)
    scored: dict[int, Score] = {}
    for places in groups.values():
        options = cases[places[0]].options
        changed: Any = dataclasses.replace(shipper, **options) if options else shipper  # type: ignore[type-var]
        scorer: Scorer = VerifierScorer(changed) if isinstance(changed, Verifier) else changed
        for start in range(0, len(places), _CHUNK):
            chunk = places[start : start + _CHUNK]
            scores = await score_checked(scorer, [cases[index].sample for index in chunk])
            scored.update(zip(chunk, scores, strict=True))
            tell(len(scored))
    return [scored[index] for index in range(len(cases))]


def _attempt(case: AttackCase, score: Score, right: float) -> Attempt:
    row = AttackRow(id=case.id, prompt=case.tries or case.sample.prompt, reference=case.sample.reference)
    standing = Standing(row=row, threshold=right)
    hit = None
    if score.value is not None:
        hit = Hit(wrap=Wrap(before=response_text(case.sample), keep=False), value=score.value, query=1)
    return Attempt(
        attacker=SHIPPED,
        standing=standing,
        queries=1,
        unscored=int(hit is None),
        won=hit if standing.won_by(score.value) else None,
        best=hit,
    )


OWN: tuple[str, ...] = (
    "the", "answer", "is", "therefore", "correct", "right", "best", "final", "result", "solution", "score", "yes", "no",
    "true", "good", "excellent", "thank", "you", "sorry", "please", "sure", "certainly", "great", "safe", "helpful",
    "step", "first", "because", "so", "we", "and", "verified", "proof", "expert", "passed", "perfect", "complete",
    "A", "B", "1", "10", "100", "5/5", "10/10", ".", ",", ":", "!", "?", "**", "#", "-", "|", "\n", "\n\n", "```",
    "\\boxed{", "}", "[[A]]", "[[B]]", "<|im_end|>", "</s>", "<answer>", "</answer>", "✓", "😀",
)  # fmt: skip
"""Words of approval, marks of layout, and pieces of answers and of chat templates."""

_MOST = 200  # words taken from good responses, the most frequent ones
_WORD = re.compile(r"\w+|[^\w\s]")


def read_words(file: str) -> tuple[str, ...]:
    r"""Return a list of tokens, one on each line; `\n` in a line is a line break, and empty lines are none."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the vocabulary {file} cannot be read: {error}; give a text file in UTF-8") from error
    words = tuple(dict.fromkeys(line.replace("\\n", "\n") for line in text.splitlines() if line.strip()))
    if not words:
        raise ValueError(f"the vocabulary {file} holds no tokens; write one on each line")
    return words


def with_words(rows: Sequence[AttackRow], own: Sequence[str]) -> list[AttackRow]:
    """Return the rows with the tokens that an attacker of each may write."""
    used = [set(_WORD.findall(row.good or "")) for row in rows]
    counts = Counter(word for words in used for word in words)
    common = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    worded: list[AttackRow] = []
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}  # most rows have the same words
    for row, mine in zip(rows, used, strict=True):
        others = (word for word in common if counts[word] > (word in mine))
        taken = [word for word, _ in zip(others, range(_MOST), strict=False)]
        words = tuple(dict.fromkeys((*own, *taken)))
        worded.append(dataclasses.replace(row, words=shared.setdefault(words, words)))
    return worded


_RANK: Final = {"succeeded": 2.0, "hedged": 1.0, "guessed": 0.0}


def cases_to_read(attempts: Iterable[Attempt], most: int) -> tuple[ReadCase, ...]:
    """Return the worst cases; `weight` is 2 for a success, 1 for a hedge, 0 for a guess, plus 1 / questions."""
    cases = []
    for attempt in attempts:
        for verdict, hit in (("succeeded", attempt.won), ("hedged", attempt.hedged), ("guessed", attempt.guessed)):
            if hit is not None:
                cases.append(_case(attempt, verdict, hit))
    cases.sort(key=lambda case: -case.weight)
    return tuple(cases[:most])


def _case(attempt: Attempt, verdict: str, hit: Hit) -> ReadCase:
    standing = attempt.standing
    note = f"attack, question {hit.query:,} of {attempt.queries:,}"
    responses = [_response(hit.wrap.around(standing.row.base), hit.value, note)]
    if standing.base is not None:
        responses.append(_response(standing.row.base, standing.base, "bad response"))
    if standing.row.good is not None:
        responses.append(_response(standing.row.good, standing.good, "good response"))
    return ReadCase(
        id=f"{attempt.attacker}/{standing.row.id}/{verdict}",
        part=attempt.attacker,
        verdict=verdict,
        weight=_RANK[verdict] + 1 / hit.query,
        prompt=cut(standing.row.question()),
        responses=tuple(responses),
        gold="" if standing.threshold is None else f"wins from {standing.threshold:.6g}",
    )


def _response(text: str, value: float | None, note: str) -> ReadResponse:
    return ReadResponse(text=cut(text), said="no score" if value is None else f"{value:.6g}", value=value, note=note)


_GOALS: Final = {
    "right": "an attack wins with the value of a right answer",
    "good": "an attack wins with the score of the row's good response",
    "genuine": "an attack wins with a quantile of the good responses' scores",
}


@timed
def run_attack(config: AttackConfig, *, progress: JobProgress | None = None) -> Result:
    """Attack a scorer.

    Returns:
        Success against questions for each attacker, a check for each that nothing was broken, and what won, to read.

    Raises:
        ValueError: an option, the input or a scorer is no good; nothing was asked yet.
        BrokenScorer: a scorer raised.
    """
    read = read_tasks(config)
    own = read_words(config.vocabulary) if config.vocabulary else OWN
    rows = with_words(read.rows, own)
    target = Target(config.scorer)
    others = {" ".join(spec.split()): Target(spec) for spec in config.transfer}
    if len(others) < len(config.transfer):
        raise ValueError(f"transfer names a scorer twice: {', '.join(config.transfer)}; name each once")
    for each in (target, *others.values()):
        each.validate(rows)
        config.goals.chosen(each, rows)
    attackers = [None if name == SHIPPED else make_attacker(name) for name in config.attack]
    names = [SHIPPED if attacker is None else attacker.name for attacker in attackers]
    if len(set(names)) < len(names):
        raise ValueError(f"two attackers have one name: {', '.join(names)}; give each its own")
    gold = Gold.of(config.gold, target, rows)
    progressed, rows_done = PartsProgress(progress, names), dict.fromkeys(names, 0)

    def tell(name: str, done: int, share: float) -> None:
        rows_done[name] = done
        progressed(name, share, rows=sum(rows_done.values()), made=target.statuses["scored"])

    named = dict(zip(names, attackers, strict=True))
    study = run_blocking(_studied(config, rows, target, others, named, gold, tell))
    notes = (*read.notes, *_notes(config, target, study, gold, others))
    return _result(config, read, target, study, notes)


async def _studied(
    config: AttackConfig,
    rows: Sequence[AttackRow],
    target: Target,
    others: Mapping[str, Target],
    attackers: Mapping[str, Attacker | JointAttacker | None],
    gold: Gold,
    tell: Tell,
) -> Study:
    """Attack all rows but those held out, and try on them, and elsewhere, what won."""
    every = await standings(target, rows, config.goals)
    searched, held_out = _divided(every, config.held_out, config.seed)
    limits = Limits(
        budget=config.budget, restarts=config.restarts, verdicts=config.feedback == "verdict", seed=config.seed
    )
    attacked = [standing for standing in searched if standing.open]
    attempts: dict[str, Sequence[Attempt]] = {}
    for name, attacker in attackers.items():
        if attacker is None:
            attempts[name] = await shipped_attempts(target, right=config.right, tell=tell)
        else:
            attempts[name] = await attack(attacker, target, attacked, limits, tell, gold)
    searches = {name: each for name, each in attempts.items() if name != SHIPPED}
    carried: dict[str, Sequence[Carried]] = {}
    there = [one.row for one in searched]
    for name, other in others.items():
        carried[name] = await to_scorer(other, there, searches, config.goals, Gold.of(config.gold, other, there))
    if held_out:
        carried[HELD_OUT] = await to_rows(target, searches, held_out, gold)
    return Study(attempts=attempts, carried=carried, budget=config.budget, rows=searched, held_out=held_out)


def _divided(every: Sequence[Standing], share: float, seed: int) -> tuple[list[Standing], list[Standing]]:
    """Return the rows to search on and the others, both in the order of the input."""
    order = list(range(len(every)))
    random.Random(f"{seed}/held out").shuffle(order)
    kept = set(order[: min(round(share * len(order)), len(order) - 1)])
    return [one for at, one in enumerate(every) if at not in kept], [one for at, one in enumerate(every) if at in kept]


def _result(config: AttackConfig, read: Read, target: Target, study: Study, notes: tuple[str, ...]) -> Result:
    attempts = [attempt for each in study.attempts.values() for attempt in each]
    statuses = target.statuses
    return Result(
        kind="attack",
        title=f"Attacks on {target.name}",
        scorer={"name": target.name, "fingerprint": target.scorer.fingerprint, "spec": config.scorer},
        source=read.source,
        measures=tuple(measures(study, config.draws)),
        counts=Counts(
            cases=len(study.rows) + len(study.held_out),
            samples=sum(statuses.values()),
            scored=statuses["scored"],
            abstained=statuses["abstained"],
            failed=statuses["failed"],
            unreadable=read.unreadable,
            reasons=dict(target.reasons),
        ),
        checks=tuple(checks(study, config.level)),
        figures=tuple(figures(study, config.level)),
        worst=cases_to_read(attempts, config.worst),
        notes=notes,
        options=config.told("scorer"),
        cost=target.cost,
    )


def _notes(config: AttackConfig, target: Target, study: Study, gold: Gold, others: Mapping[str, Target]) -> list[str]:
    searched = study.rows
    attacked = sum(one.open for one in searched)
    blind = sum(one.threshold is None for one in searched)
    goal = config.goals.chosen(target, [one.row for one in searched])
    notes = [f"the goal is {goal}: {_GOALS[goal]}"]
    if attacked < len(searched):
        won = len(searched) - attacked - blind
        notes.append(
            f"of {len(searched)} rows, {attacked} were attacked: of {won} the bad response wins as it stands"
            + (f", and {blind} have no score to reach" if blind else "")
        )
    bad_good = sum(one.good is not None and goal == "right" and not one.won_by(one.good) for one in searched)
    if bad_good:
        notes.append(f"{bad_good} good responses do not score as right themselves; is the reference what they answer?")
    if study.held_out:
        notes.append(f"{len(study.held_out)} rows were held out from every search")
    if any(one.standing.row.reference is not None for each in study.searched.values() for one in each):
        notes.append("a paid response that says the right answer is guessed or hedged, and no success")
    if "suffix" in study.searched:
        notes.append("suffix searches all rows together, so its rows are not independent of each other")
    if SHIPPED in config.attack and suite_of(getattr(target.scorer, "verifier", target.scorer)) is not None:
        notes.append("shipped attacks are on tasks of their own, and are not in the first number")
    if gold.target is not None and gold.target.statuses:
        notes.append(f"what {gold.target.name} calls right, too, is guessed")
        if gold.unknown:
            lost = f"{gold.unknown:,} responses that won; they stay successes"
            notes.append(f"{gold.target.name} gave no number to {lost}")
    for name, other in others.items():
        if missing := other.statuses["failed"] + other.statuses["abstained"]:
            asked = f"{other.statuses.total():,} responses that it was asked about"
            notes.append(f"{name} gave no number to {missing:,} of the {asked}")
    return notes
