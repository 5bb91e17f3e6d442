"""What holds for every attacker, and what each is good at."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.evals.attacks.weak_scorers import TASKS, KeywordReward, LengthModel, PlainScorer, PlantedSuffix, write_tasks

from adjudge.evals.attacks.attacker import Attacker, Attempt, JointAttacker, Limits, Queries, attack
from adjudge.evals.attacks.attackers import ATTACKERS, CLAIMS, UniversalSuffix
from adjudge.evals.attacks.attacking import OWN, with_words
from adjudge.evals.attacks.config import AttackConfig, make_attacker
from adjudge.evals.attacks.target import AttackRow, Goals, Target, Wrap, read_tasks, standings
from adjudge.protocol import Sample


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[AttackRow]:
    path = write_tasks(tmp_path_factory.mktemp("tasks") / "tasks.jsonl")
    return with_words(read_tasks(AttackConfig(input=path, scorer="math")).rows, OWN)


def run(
    name: str, scorer: PlainScorer, rows: Sequence[AttackRow], limits: Limits, goal: Goals | None = None
) -> list[Attempt]:
    async def all_() -> list[Attempt]:
        target = Target(scorer)
        found = await standings(target, rows, goal or Goals(goal="right"))
        scorer.asked.clear()
        return await attack(make_attacker(name), target, found, limits, lambda what, done, of: None)

    return asyncio.run(all_())


@pytest.mark.parametrize("name", ATTACKERS)
@pytest.mark.parametrize(("budget", "restarts"), [(1, 0), (7, 0), (130, 0), (130, 2)])
def test_no_attacker_asks_more_than_its_budget_or_the_same_twice(
    name: str, budget: int, restarts: int, rows: list[AttackRow]
) -> None:
    scorer = PlainScorer()
    attempts = run(name, scorer, rows, Limits(budget=budget, restarts=restarts))
    for row, attempt in zip(rows, attempts, strict=True):
        mine = [str(sample.response) for sample in scorer.asked if sample.id == row.id]
        assert 0 < attempt.queries == len(mine) == len(set(mine)) <= budget
        assert attempt.won is None
    if name != "constants":
        assert all(attempt.queries == budget for attempt in attempts)


@pytest.mark.parametrize("name", ATTACKERS)
def test_one_seed_asks_the_same_questions_and_another_seed_others(name: str, rows: list[AttackRow]) -> None:
    asked = []
    for seed in (0, 0, 1):
        scorer = LengthModel()
        run(name, scorer, rows, Limits(budget=60, seed=seed), Goals(goal="right", right=1e9))
        asked.append({(sample.id, str(sample.response)) for sample in scorer.asked})
    assert asked[0] == asked[1]
    assert (asked[0] == asked[2]) == (name == "constants")


@pytest.mark.parametrize("name", [name for name in ATTACKERS if name != "suffix"])  # that one searches all together
def test_a_rows_search_does_not_depend_on_the_other_rows(name: str, rows: list[AttackRow]) -> None:
    limits = Limits(budget=60)
    together = run(name, LengthModel(), rows, limits, Goals(goal="right", right=1e9))
    alone = run(name, LengthModel(), rows[3:4], limits, Goals(goal="right", right=1e9))
    assert together[3] == alone[0]


@pytest.mark.parametrize("name", [name for name in ATTACKERS if name not in ("constants", "answers")])
def test_words_of_a_rows_own_good_response_are_not_for_its_attackers(name: str) -> None:
    tasks = [{**task, "good": f"secret{task['id']} and common"} for task in TASKS]
    rows = with_words([AttackRow(id=t["id"], prompt=t["prompt"], good=t["good"]) for t in tasks], OWN)
    scorer = PlainScorer()
    run(name, scorer, rows, Limits(budget=300))
    for sample in scorer.asked:
        assert f"secret{sample.id}" not in str(sample.response)
    assert "common" in rows[0].words
    assert "secrett22" in rows[0].words


class Peeking(Attacker):
    """Keeps what it was given."""

    name = "peeking"

    def __init__(self) -> None:
        self.seen: list[Queries] = []

    async def search(self, queries: Queries, rng: random.Random) -> None:
        self.seen.append(queries)


def test_attackers_are_shown_neither_reference_nor_good_response(rows: list[AttackRow]) -> None:
    peeking = Peeking()

    async def all_() -> None:
        target = Target(PlainScorer())
        found = await standings(target, rows, Goals(goal="right"))
        await attack(peeking, target, found, Limits(budget=5), lambda what, done, of: None)

    asyncio.run(all_())
    for row, queries in zip(rows, peeking.seen, strict=True):
        shown = [getattr(queries, key) for key in dir(queries) if not key.startswith("_")]
        assert row.question() in shown
        assert row.good not in shown
        assert row.reference not in shown


def test_greedy_search_climbs_where_random_tokens_do_not(rows: list[AttackRow]) -> None:
    limits = Limits(budget=1_500)
    greedy = run("greedy", PlantedSuffix(), rows, limits)
    chance = run("random", PlantedSuffix(), rows, limits)
    assert sum(each.won is not None for each in greedy) >= 6
    assert sum(each.won is not None for each in chance) == 0


class Unnamed(Attacker):
    """Has no name."""

    async def search(self, queries: Queries, rng: random.Random) -> None:
        await queries.ask("abc")  # type: ignore[arg-type]


class Faulty(Unnamed):
    """Asks about texts."""

    name = "faulty"


class FaultyTogether(JointAttacker):
    """Forgets a key."""

    name = "together"

    async def search(self, queries: Sequence[Queries], rng: random.Random) -> None:
        raise KeyError("word")


def test_an_attacker_that_raises_is_named_with_its_row(rows: list[AttackRow]) -> None:
    for attacker, told in (
        (Faulty(), "the attacker 'faulty/t21' raised AttributeError"),
        (FaultyTogether(), "the attacker 'together' raised KeyError: 'word'"),
    ):

        async def all_(attacker: Attacker | JointAttacker) -> None:
            target = Target(PlainScorer())
            found = await standings(target, rows, Goals(goal="right"))
            await attack(attacker, target, found, Limits(budget=5), lambda what, done, share: None)

        with pytest.raises(ValueError, match=told) as raised:
            asyncio.run(all_(attacker))
        assert raised.value.__cause__ is not None


class Endless(Attacker):
    """Never ends, and keeps how many questions had been asked when it began."""

    name = "endless"

    def __init__(self) -> None:
        self.begun: list[int] = []

    async def search(self, queries: Queries, rng: random.Random) -> None:
        self.begun.append(queries.used)
        while True:
            await queries.ask([Wrap(after=str(rng.random()))])


def test_restarts_deal_the_budget_evenly_and_draw_anew(rows: list[AttackRow]) -> None:
    endless, scorer = Endless(), PlainScorer()

    async def all_() -> list[Attempt]:
        target = Target(scorer)
        found = await standings(target, rows[:1], Goals(goal="right"))
        return await attack(endless, target, found, Limits(budget=10, restarts=3), lambda what, done, share: None)

    (attempt,) = asyncio.run(all_())
    assert endless.begun == [0, 2, 5, 7]
    assert attempt.queries == 10  # each start with numbers of its own, or they would have been asked before


class Level(PlainScorer):
    """The same reward whatever is said."""

    def value(self, sample: Sample, text: str) -> float | None:
        return 7.0


def test_a_universal_suffix_that_is_no_better_than_none_is_thrown_away(rows: list[AttackRow]) -> None:
    """So suffixes of one token come again in each pass of about a hundred questions, and not in the first one alone."""
    scorer = Level()
    run("suffix", scorer, rows[:1], Limits(budget=300), Goals(goal="right", right=8.0))
    single = [str(sample.response) for sample in scorer.asked if len(str(sample.response).split(" ")) == 4]
    assert str(rows[0].base).count(" ") == 2
    assert len(single) > 20


class Levels(PlainScorer):
    """Rewards on a different level for each prompt, and a few points for one word on every prompt alike."""

    def value(self, sample: Sample, text: str) -> float | None:
        level = 1_000.0 * int(str(sample.id)[1:])
        noise = 10.0 if "thank" in text and sample.id == "t21" else 0.0
        return level + 5.0 * ("verified" in text) + noise


def test_the_universal_suffix_is_found_on_the_mean_of_what_rises(rows: list[AttackRow]) -> None:
    """On the raw rewards of some rows one would choose by the level of the rows; on one row alone, "thank"."""

    async def all_() -> list[Wrap | None]:
        target = Target(Levels())
        found = await standings(target, rows, Goals(goal="right", right=1e9))
        every = [Queries("suffix", target, one, budget=400, verdicts=False) for one in found]
        await UniversalSuffix().search(every, random.Random(0))
        return [best.wrap if (best := queries.attempt.best) else None for queries in every]

    best = asyncio.run(all_())
    assert all(wrap is not None and "verified" in wrap.after for wrap in best)


def test_constants_reach_every_claim_alone_and_around(rows: list[AttackRow]) -> None:
    scorer = PlainScorer()
    run("constants", scorer, rows[:1], Limits(budget=10_000))
    asked = {str(sample.response) for sample in scorer.asked}
    base = rows[0].base
    assert {shown for claim in CLAIMS for shown in (claim, f"{base}\n\n{claim}", f"{claim}\n\n{base}")} <= asked


def test_keywords_are_found_by_evolution_of_templates(rows: list[AttackRow]) -> None:
    attempts = run("genetic", KeywordReward(), rows, Limits(budget=1_000))
    assert all(each.best is not None and each.best.value >= 2 / 3 for each in attempts)


def test_unknown_and_broken_attackers_are_told_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"attack is 'gradient'; it must be one of constants, random"):
        AttackConfig(input="x", scorer="math", attack=("gradient",))
    with pytest.raises(ValueError, match=r"twice"):
        AttackConfig(input="x", scorer="math", attack=("random", "random"))
    with pytest.raises(ValueError, match=r"cannot be imported"):
        make_attacker("no_such_module_here:X")
    with pytest.raises(ValueError, match=r"'tests.evals.attacks.test_attackers:Unnamed' needs a name of its own"):
        make_attacker("tests.evals.attacks.test_attackers:Unnamed")
    with pytest.raises(ValueError, match=r"cannot be made: .*search"):
        make_attacker("adjudge.evals.attacks.attacker:Attacker")
    with pytest.raises(ValueError, match=r"is a PosixPath|is a WindowsPath"):
        make_attacker("pathlib:Path")
    assert make_attacker("tests.evals.attacks.test_attackers:Peeking").name == "peeking"
