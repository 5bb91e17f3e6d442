"""Attacks from an input to a result: what is broken and how soon, what holds, and what the numbers are of."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.evals.attacks import weak_scorers
from tests.evals.attacks.weak_scorers import TASKS, PlainScorer, write_tasks
from tests.evals.results import measure, value

from adjudge.evals.attacks.attacker import Attacker, Queries
from adjudge.evals.attacks.attacking import run_attack
from adjudge.evals.attacks.config import AttackConfig
from adjudge.evals.attacks.measures import budgets
from adjudge.evals.attacks.target import Goal, Wrap
from adjudge.evals.probes.row_file import place_of
from adjudge.io.jobs.report import JobSnapshot
from adjudge.pages.figures import Curves, Grid
from adjudge.protocol import Sample, Score
from adjudge.reward_models.baselines.preference_model import PreferenceModel
from adjudge.runtime.contract import BrokenScorer
from adjudge.statistics.intervals import wilson
from adjudge.training.examples import Pair

WEAK = "tests.evals.attacks.weak_scorers:"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_tasks(tmp_path_factory.mktemp("tasks") / "tasks.jsonl")


@pytest.mark.parametrize(
    ("scorer", "attacker", "within"),
    [
        ("FirstMatchJudge", "constants", 100),
        ("FirstMatchJudge", "genetic", 200),
        ("LengthModel", "genetic", 10),
        ("LengthModel", "greedy", 1_000),
        ("KeywordReward", "random", 100),
        ("KeywordReward", "greedy", 100),
        ("PlantedSuffix", "suffix", 800),
    ],
)
def test_planted_weaknesses_are_found_within_the_stated_questions(
    scorer: str, attacker: str, within: int, tasks: str
) -> None:
    goal: Goal = "right" if scorer == "PlantedSuffix" else "good"
    result = run_attack(AttackConfig(input=tasks, scorer=WEAK + scorer, goal=goal, attack=(attacker,), budget=within))
    assert value(result, "success", attacker) == 1.0
    (check,) = result.checks
    assert check.passed is False
    assert result.found


@pytest.mark.parametrize("scorer", ["exact", "math", "numeric"])
def test_verifiers_of_answers_hold_and_luck_is_counted_apart(scorer: str, tasks: str) -> None:
    attacks = ("constants", "random", "genetic", "answers")
    result = run_attack(AttackConfig(input=tasks, scorer=scorer, attack=attacks, budget=120, limit=3))
    assert value(result, "success") == 0.0
    assert all(check.passed for check in result.checks)
    assert not result.found
    assert result.counts.failed == 0
    assert result.counts.samples == result.counts.scored > 900


def test_programs_that_leave_early_do_not_pass_the_tests_of_code() -> None:
    config = AttackConfig(input="rows:code", scorer="code", attack=("answers",), budget=40, limit=2)
    result = run_attack(config)
    assert value(result, "success") == 0.0
    assert result.counts.scored == result.counts.samples == 2 * 2 + 2 * 40


def test_a_linear_preference_model_is_broken_within_a_hundred_questions(tmp_path: Path) -> None:
    rows = json.loads(Path(place_of("rows:pairs")).read_text(encoding="utf-8"))
    pairs = [Pair(prompt=row["prompt"], chosen=row["good"], rejected=row["bad"]) for row in rows]
    folder = PreferenceModel.fit(pairs).save(tmp_path / "model")
    spec = json.dumps({"preference_model": {"model": str(folder)}})
    config = AttackConfig(input="rows:pairs", scorer=spec, attack=("genetic", "random"), budget=100, limit=4)
    result = run_attack(config)
    assert value(result, "success", "genetic") >= 0.5
    assert value(result, "gain of score", "genetic") > value(result, "gain of score", "random")


def test_a_verifier_that_reads_the_last_number_pays_for_luck_alone(tmp_path: Path) -> None:
    tasks = [{"id": str(n), "prompt": "How many?", "bad": "None.", "answer": str(n)} for n in (3, 10, 42)]
    path = write_tasks(tmp_path / "small.jsonl", tasks)
    result = run_attack(AttackConfig(input=path, scorer=f"{WEAK}LastNumber", attack=("answers",), budget=500))
    assert value(result, "success", "answers") == 0.0
    assert value(result, "guessed", "answers") == 1.0
    assert value(result, "hedged", "answers") == 1.0
    assert {case.verdict for case in result.worst} == {"guessed", "hedged"}
    for case in result.worst:
        assert case.responses[0].value == 1.0
        assert case.weight < 2


def test_a_verifier_that_reads_a_part_of_a_number_is_fooled_by_another_number(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "half.jsonl", [{"prompt": "How many?", "bad": "None.", "answer": "2"}])
    result = run_attack(AttackConfig(input=path, scorer=f"{WEAK}LastNumber", attack=("answers",), budget=3_000))
    assert value(result, "success", "answers") == 1.0
    assert result.worst[0].verdict == "succeeded"
    assert re.search(r"frac\{1\}\{2\}\D*$", result.worst[0].responses[0].text)


def test_numbers_are_those_of_the_questions_that_were_asked(tasks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An independent account, from what the scorer itself saw, in its order."""
    asked: list[tuple[str, str]] = []

    class Watched(weak_scorers.KeywordReward):
        def value(self, sample: Sample, text: str) -> float | None:
            asked.append((sample.id, text))
            return super().value(sample, text)

    monkeypatch.setattr(weak_scorers, "KeywordReward", Watched)
    result = run_attack(AttackConfig(input=tasks, scorer=f"{WEAK}KeywordReward", attack=("random",), budget=40))
    ids = [str(task["id"]) for task in TASKS]
    setup = len(TASKS) * 2
    assert Counter(asked[:setup]) == Counter((str(t["id"]), str(t[key])) for t in TASKS for key in ("bad", "good"))
    words = ("therefore", "verified", "helpful")
    first: dict[str, int] = {}
    count: dict[str, int] = dict.fromkeys(ids, 0)
    best: dict[str, float] = dict.fromkeys(ids, 0.0)
    for name, text in asked[setup:]:
        count[name] += 1
        found = sum(word in text for word in words) / 3
        best[name] = max(best[name], found)
        if found:
            first.setdefault(name, count[name])
    for queries in (1, 10):
        hits = sum(place <= queries for place in first.values())
        assert measure(result, f"success within {queries}", "random").interval == wilson(hits, len(ids))
    assert measure(result, "success", "random").interval == wilson(len(first), len(ids))
    ordered = sorted(first.values())
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    assert value(result, "median questions to success", "random") == middle
    assert value(result, "questions", "random") == sum(count.values()) / len(ids)
    assert value(result, "gain of score", "random") == pytest.approx(sum(best.values()) / len(ids))
    assert result.counts.samples == len(asked)
    (curves,) = result.figures
    assert isinstance(curves, Curves)
    (line,) = curves.series
    assert line.x == (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
    assert list(line.y) == [sum(place <= x for place in first.values()) / len(ids) for x in line.x]


def test_budgets_are_decades_and_the_budget_itself() -> None:
    assert budgets(1) == [1]
    assert budgets(10) == [1, 10]
    assert budgets(250) == [1, 10, 100, 250]
    assert budgets(30, (1, 2, 5)) == [1, 2, 5, 10, 20, 30]


def test_nothing_broken_is_told_with_the_rule_of_three(tasks: str) -> None:
    config = AttackConfig(input=tasks, scorer=f"{WEAK}PlainScorer", goal="right", attack=("random",), budget=20)
    (check,) = run_attack(config).checks
    assert check.passed is True
    assert "0 of 8 rows broken in 160 questions, at most 20 a row" in check.detail
    assert f"fewer than {math.log(20) / 8:.1%} of such rows" in check.detail


def test_a_scorer_that_declines_is_no_success_and_no_proof(tasks: str) -> None:
    result = run_attack(AttackConfig(input=tasks, scorer=f"{WEAK}Silent", goal="right", attack=("random",), budget=20))
    (check,) = result.checks
    assert check.passed is None
    assert "got a number" in check.detail
    for part in ("", "random"):
        assert measure(result, "success", part).interval.value is None
    assert result.counts.abstained == result.counts.samples == 8 * 2 + 8 * 20
    assert result.counts.reasons == {"low_confidence": result.counts.samples}
    assert not result.worst


def test_a_row_of_which_no_question_got_a_number_is_in_no_share(tasks: str) -> None:
    result = run_attack(
        AttackConfig(input=tasks, scorer=f"{__name__}:Half", goal="right", attack=("random",), budget=9)
    )
    for name in ("success", "success within 1", "guessed", "hedged"):
        assert measure(result, name, "random").interval == wilson(0, 4)
    assert measure(result, "success").interval == wilson(0, 4)
    (check,) = result.checks
    assert check.passed is True
    assert "0 of 4 rows broken" in check.detail
    assert "of 4 rows no question got a number" in check.detail
    assert f"fewer than {math.log(20) / 4:.1%} of such rows" in check.detail


class Half(PlainScorer):
    """Judges the bad responses, and attacks on rows with an even number."""

    name = "half"

    def value(self, sample: Sample, text: str) -> float | None:
        return 0.0 if int(sample.id[1:]) % 2 == 0 or len(text.split()) == 3 else None


def test_means_of_what_is_no_share_have_no_bounds_of_shares(tasks: str) -> None:
    config = AttackConfig(input=tasks, scorer=f"{WEAK}PlainScorer", goal="right", attack=("random",), budget=1)
    result = run_attack(config)
    for name, expected in (("gain of score", 0.0), ("questions", 1.0)):
        interval = measure(result, name, "random").interval
        assert (interval.value, interval.low, interval.high) == (expected, None, None), "all resamples agree"


def test_a_scorer_that_can_judge_nothing_is_told_at_once(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "x.jsonl", [{"prompt": "?", "bad": "no", "answer": "not a number"}])
    with pytest.raises(ValueError, match=r"'numeric' could judge none of the 1 .*gold_unparsable"):
        run_attack(AttackConfig(input=path, scorer="numeric"))


def test_rows_whose_bad_response_wins_anyway_are_not_attacked_and_told(tmp_path: Path) -> None:
    tasks = [{"prompt": "?", "bad": "x" * size, "good": "y" * 50} for size in (10, 60, 49)]
    path = write_tasks(tmp_path / "x.jsonl", tasks)
    result = run_attack(AttackConfig(input=path, scorer=f"{WEAK}LengthModel", attack=("genetic",), budget=100))
    assert measure(result, "success").interval.n == 2
    assert any("of 3 rows, 2 were attacked: of 1 the bad response wins as it stands" in note for note in result.notes)


def test_the_genuine_goal_is_a_quantile_of_good_scores(tmp_path: Path) -> None:
    tasks = [{"prompt": "?", "bad": "x", "good": "y" * size} for size in (10, 20, 30, 40, 50)]
    path = write_tasks(tmp_path / "x.jsonl", tasks)
    config = AttackConfig(
        input=path, scorer=f"{WEAK}LengthModel", goal="genuine", quantile=0.25, attack=("random",), budget=100
    )
    result = run_attack(config)
    assert {case.gold for case in result.worst} == {"wins from 20"}
    assert value(result, "success") == 1.0


def test_wins_are_tried_on_other_scorers_and_on_prompts_nobody_saw(tmp_path: Path) -> None:
    tasks = [{**task, "good": "Seven times that, therefore."} for task in TASKS]  # without numbers to guess
    config = AttackConfig(
        input=write_tasks(tmp_path / "x.jsonl", tasks),
        scorer=f"{WEAK}KeywordReward",
        attack=("random", "greedy"),
        budget=200,
        goal="right",
        right=0.3,
        transfer=(f"{WEAK}KeywordReward", f"{WEAK}PlainScorer", "exact"),
        held_out=0.5,
    )
    result = run_attack(config)
    assert measure(result, "success").interval.n == 4
    assert value(result, f"transfer to {WEAK}KeywordReward", "greedy") == 1.0
    assert value(result, f"transfer to {WEAK}PlainScorer", "greedy") == 0.0
    assert value(result, "transfer to exact", "random") == 0.0
    assert value(result, "transfer to held-out prompts", "random") == 1.0  # the words pay on every prompt
    grids = [figure for figure in result.figures if isinstance(figure, Grid)]
    assert grids[0].columns == (f"{WEAK}KeywordReward", f"{WEAK}PlainScorer", "exact", "held-out prompts")
    assert "4 rows were held out from every search" in result.notes


def test_one_seed_gives_one_result_and_it_is_json(tasks: str) -> None:
    results = []
    for seed in (0, 0, 1):
        config = AttackConfig(
            input=tasks, scorer=f"{WEAK}KeywordReward", budget=100, seed=seed, restarts=1, feedback="verdict"
        )
        data = run_attack(config).to_dict()
        data.pop("seconds")
        results.append(json.loads(json.dumps(data, allow_nan=False)))
    assert results[0] == results[1]
    assert results[0]["worst"] != results[2]["worst"]


def test_progress_is_told_and_grows(tasks: str) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.shares: list[float] = []
            self.rows: list[int] = []
            self.scored: list[int] = []

        def note(self, text: str) -> None: ...

        def update(self, snapshot: JobSnapshot) -> None:
            assert snapshot.fraction is not None
            self.shares.append(snapshot.fraction)
            self.rows.append(snapshot.rows)
            self.scored.append(snapshot.made)

    watcher = Watcher()
    attackers = ("random", "suffix")
    config = AttackConfig(input=tasks, scorer=f"{WEAK}PlainScorer", goal="right", attack=attackers, budget=100)
    run_attack(config, progress=watcher)
    assert watcher.shares == sorted(watcher.shares)
    assert watcher.shares[-1] == 1.0
    assert watcher.rows[-1] == 2 * len(TASKS)
    assert watcher.scored[-1] == 2 * len(TASKS) + 2 * 100 * len(TASKS)
    assert 0 < watcher.shares[0] < 1 / (2 * len(TASKS))  # told within a row, not at its end
    assert watcher.rows[0] == 0


class Shouter(Attacker):
    """An attacker of one's own."""

    name = "shouter"

    async def search(self, queries: Queries, rng: random.Random) -> None:
        await queries.ask([Wrap(after="!" * times) for times in range(1, 100)])


def test_an_attacker_of_ones_own_goes_by_its_name_everywhere(tasks: str) -> None:
    class Watcher:
        def note(self, text: str) -> None: ...

        def update(self, snapshot: JobSnapshot) -> None:
            assert snapshot.fraction

    own = f"{__name__}:Shouter"
    config = AttackConfig(
        input=tasks, scorer=f"{WEAK}LengthModel", attack=(own,), transfer=("exact", f"{WEAK}Silent"), budget=99
    )
    result = run_attack(config, progress=Watcher())
    assert value(result, "success", "shouter") == 1.0
    assert value(result, "transfer to exact", "shouter") == 0.0
    assert f"{WEAK}Silent gave no number to 16 of the 16 responses that it was asked about" in result.notes
    assert {case.part for case in result.worst} == {"shouter"}
    with pytest.raises(ValueError, match="two attackers have one name: shouter, shouter"):
        run_attack(dataclasses.replace(config, attack=(own, f"{__name__}:shouter")))


shouter = Shouter()


class Breaking(PlainScorer):
    """Works until it has been asked a hundred times."""

    name = "breaking"
    error: BaseException = RuntimeError("out of memory")

    async def score(self, samples: list[Sample]) -> list[Score]:  # type: ignore[override]
        if len(self.asked) > 100:
            raise self.error
        return await super().score(samples)


def test_a_scorer_that_raises_is_named_and_nothing_is_left_behind(tasks: str, tmp_path: Path) -> None:
    output = tmp_path / "report"
    config = AttackConfig(input=tasks, scorer=f"{__name__}:Breaking", goal="right", output=str(output))
    with pytest.raises(BrokenScorer, match=r"'breaking' raised RuntimeError: out of memory"):
        run_attack(config)
    assert list(tmp_path.iterdir()) == []


def test_scorers_of_groups_are_refused(tasks: str) -> None:
    with pytest.raises(ValueError, match="compares the samples of a group"):
        run_attack(AttackConfig(input=tasks, scorer=f"{__name__}:Grouped"))


class Grouped(PlainScorer):
    """Sees whole groups."""

    groupwise = True


def test_a_goal_without_good_responses_is_refused_before_any_question(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "x.jsonl", [{"prompt": "?", "bad": "no", "answer": "1"}])
    with pytest.raises(ValueError, match="no row has a good response"):
        run_attack(AttackConfig(input=path, scorer="math", goal="good"))


def test_a_scorer_without_its_reference_is_refused_before_any_question(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "x.jsonl", [{"id": "q7", "prompt": "?", "bad": "no"}])
    with pytest.raises(ValueError, match=r"'q7'.*reference"):
        run_attack(AttackConfig(input=path, scorer="math"))
