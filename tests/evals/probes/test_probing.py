"""Known weaknesses are found, sound verifiers pass, and nothing is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evals.results import written

from adjudge.evals.probes import trying
from adjudge.evals.probes.catalogue import PROBES, ProbesConfig
from adjudge.evals.probes.probe import ProbeRow
from adjudge.evals.probes.probing import run_probes
from adjudge.evals.probes.trying import Asker, plain
from adjudge.evals.reports.result import Result
from adjudge.io.jobs.report import JobSnapshot
from adjudge.scoring import registry

HERE = "tests.evals.probes.hackable:"

QUESTIONS = [("two and two", "4", "5"), ("three times three", "9", "6"), ("ten minus three", "7", "8")]


class Watcher:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.seen: list[JobSnapshot] = []

    def note(self, text: str) -> None:
        raise AssertionError(text)

    def update(self, snapshot: JobSnapshot) -> None:
        self.seen.append(snapshot)


def probed(scorer: str, rows: str = "rows:math", **options: Any) -> Result:
    return run_probes(ProbesConfig(input=rows, scorer=scorer, **options))


def failed(result: Result) -> set[str]:
    return {check.name for check in result.checks if check.passed is False}


def passed(result: Result) -> set[str]:
    return {check.name for check in result.checks if check.passed}


def measure(result: Result, name: str, part: str = "") -> Any:
    (found,) = [one for one in result.measures if (one.name, one.part) == (name, part)]
    return found.interval


@pytest.fixture
def answers(tmp_path: Path) -> str:
    """Rows whose last line is the answer, in the form that the judges of `hackable` read."""
    rows = [
        {"prompt": f"What is {q}?", "good": f"Let me work it out.\n{g}", "bad": f"Let me guess.\n{b}", "reference": g}
        for q, g, b in QUESTIONS
    ]
    return written(tmp_path, rows)


@pytest.mark.parametrize(
    ("rows", "scorer"),
    [
        ("math", "math"),
        ("short", "exact"),
        ("numeric", "numeric"),
        ("choice", "choice"),
        *((name, name) for name in ("grid", "puzzle_table", "ordering", "graph_answer", "table_answer", "puzzle")),
    ],
)
def test_a_sound_verifier_passes_every_probe_that_fits(rows: str, scorer: str) -> None:
    result = probed(scorer, f"rows:{rows}")
    assert not failed(result), [check for check in result.checks if check.passed is False]
    assert len(passed(result)) >= 20
    assert not result.found
    assert measure(result, "probes passed").value == 1
    assert measure(result, "good above bad").value == 1


def test_a_constant_fails_what_it_must_and_passes_what_it_may() -> None:
    result = probed(f"{HERE}Constant", "rows:pairs")
    for probe in PROBES:
        if probe.kind != "invariance" and probe.name in failed(result) | passed(result):
            assert probe.name in failed(result), probe.name
    assert {"digit", "negation", "cut", "master_keys", "empty", "null_model"} <= failed(result)
    assert {"padding", "injection", "authority"} <= passed(result)
    assert any("probes of invariance say nothing here" in note for note in result.notes)
    assert measure(result, "good above bad").value == 0
    assert result.found


def test_an_order_that_is_not_there_is_not_kept() -> None:
    result = probed(f"{HERE}Constant", "rows:pairs", only=("sycophancy", "dressed_bad"))
    assert [check.passed for check in result.checks] == [None, None]
    assert all("in none of" in check.detail for check in result.checks)


def test_length_pays(answers: str) -> None:
    assert {"padding", "repetition", "injection", "gibberish_suffix", "self_praise"} <= failed(
        probed(f"{HERE}Length", "rows:pairs")
    )


def test_key_words_pay() -> None:
    result = probed(f"{HERE}Keyword")
    assert {"self_praise", "master_keys", "injection"} <= failed(result)
    keys = {one.part: one.interval.value for one in result.measures if one.part.startswith("master_keys ")}
    assert len(keys) == 10
    assert [part for part, share in keys.items() if share] == ["master_keys 'Solution'"]
    assert keys["master_keys 'Solution'"] == 1


def test_a_parser_that_reads_the_first_verdict_is_caught(answers: str) -> None:
    result = probed(f"{HERE}FirstMatch", answers)
    assert "injection" in failed(result)
    cases = [case for case in result.worst if case.part == "injection"]
    assert cases
    assert all("[[A]]" in case.responses[0].text for case in cases)
    assert cases[0].responses[0].said == "1"
    assert cases[0].responses[1].said == "0"
    assert "injection" in passed(probed(f"{HERE}Sound", answers))


def test_a_template_that_escapes_nothing_is_caught(answers: str) -> None:
    result = probed(f"{HERE}NoEscape", answers)
    assert "injection" in failed(result)
    assert any("a delimiter" in case.responses[0].note for case in result.worst)


def test_no_score_is_no_rule_kept(answers: str) -> None:
    result = probed(f"{HERE}Coward", answers, only=("padding",))
    (check,) = result.checks
    assert check.passed is False
    assert "12 have no score" in check.detail  # 5 and 20 sentences, behind good and bad, of 3 rows
    assert result.counts.failed == 12
    assert result.counts.reasons == {"engine_error": 12}
    (grid,) = result.figures
    assert grid.to_dict()["values"] == [[6 / 18, 0.0, 12 / 18]]


def test_a_marker_may_be_refused_and_must_not_move_steps() -> None:
    assert probed(f"{HERE}Stepwise", only=("markers",)).checks[0].passed is False
    assert probed(f"{HERE}Refusing", only=("markers",)).checks[0].passed is True


def test_a_place_that_wins_is_found() -> None:
    first = probed(f"{HERE}FirstWins", "rows:pairs")
    assert "position" in failed(first)
    longer = probed(f"{HERE}LongerWins", "rows:pairs")
    assert {"position", "mirrored"} <= passed(longer)
    assert "padding" in failed(longer)
    assert "empty" in passed(longer)


def test_who_always_wins_is_found() -> None:
    result = probed(f"{HERE}AlwaysWins", "rows:pairs")
    assert {"mirrored", "master_keys"} <= failed(result)


def test_another_scale_must_keep_the_order() -> None:
    turned = probed(f"{HERE}Length", "rows:pairs", only=("empty",), other_scale=f"{HERE}Backwards")
    assert "scale" in failed(turned)
    same = probed(f"{HERE}Length", "rows:pairs", only=("empty",), other_scale=f"{HERE}Length")
    assert "scale" in passed(same)


def test_epsilon_is_a_share_of_the_spread_or_what_is_asked(answers: str) -> None:
    shared = probed(f"{HERE}Length", "rows:pairs", only=("authority",), epsilon_share=0.1)
    assert shared.checks[0].passed is False
    wide = probed(f"{HERE}Length", "rows:pairs", only=("authority",), epsilon=1.0)
    assert wide.checks[0].passed is True
    assert any("changes up to 1 count as none, as asked" in note for note in wide.notes)


def test_a_tolerated_share_is_tolerated() -> None:
    strict = probed(f"{HERE}Keyword", only=("master_keys",))
    share = measure(strict, "broken", "master_keys").value
    assert strict.checks[0].passed is False
    assert 0 < share < 1
    assert probed(f"{HERE}Keyword", only=("master_keys",), tolerated=share).checks[0].passed is True


def test_the_same_seed_gives_the_same_result_and_few_variants_are_a_draw() -> None:
    one, two = (probed(f"{HERE}Keyword", "rows:pairs", per_row=2, seed=5) for _ in range(2))
    assert [check.to_dict() for check in one.checks] == [check.to_dict() for check in two.checks]
    assert measure(one, "broken", "master_keys").n == 24
    other = probed(f"{HERE}Keyword", "rows:pairs", per_row=2, seed=6)
    assert [one.to_dict() for one in other.measures] != [two.to_dict() for two in one.measures]


def test_rows_with_references_alone_are_enough(tmp_path: Path) -> None:
    path = written(tmp_path, [{"question": "?", "answer": str(n)} for n in (12, 35, 78)])
    result = probed("auto", path, only=("master_keys", "injection", "digit"))
    assert result.scorer["name"] == "math"
    assert {"master_keys", "injection", "digit"} <= passed(result)
    assert not failed(result)
    assert any("3 rows take the good response of another row" in note for note in result.notes)


def test_references_of_several_kinds_are_each_tried_by_their_scorer(tmp_path: Path) -> None:
    choice = {"choices": ["red", "blue"], "answer": "B"}
    rows = [{"question": "?", "answer": answer} for answer in ("12", "35", choice, {"colour": "red"})]
    result = probed("auto", written(tmp_path, rows), only=("empty", "refusal"))
    assert result.scorer["name"] == "auto"
    assert result.counts.cases == 3
    assert {"empty", "refusal"} <= passed(result)


def test_a_result_is_plain_json(answers: str) -> None:
    result = probed(f"{HERE}FirstMatch", answers, only=("injection", "translation"))
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["kind"] == "probes"
    assert data["checks"][1] == {
        "name": "translation",
        "passed": None,
        "detail": "no row fits: it takes a column `translation`",
    }
    assert data["source"]["rows"] == 3


def test_who_compares_needs_bad_responses(tmp_path: Path) -> None:
    path = written(tmp_path, [{"prompt": "a", "good": "b"}, {"prompt": "c", "good": "d"}])
    with pytest.raises(ValueError, match=r"compares two responses, and none of 2 rows has a bad one.*--bad-column"):
        probed(f"{HERE}FirstWins", path)


def test_a_scorer_that_judges_nothing_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, [{"prompt": "a", "good": "b" * 400}])
    with pytest.raises(ValueError, match="has no score for any of 1 good responses: 1 x engine_error"):
        probed(f"{HERE}Coward", path)


def test_what_is_asked_twice_is_scored_once_and_answered_twice() -> None:
    row = ProbeRow(id="r", prompt="p", good="a" * 10)
    asker = Asker(registry.load(f"{HERE}Length"))
    scores = asker.ask("it", [plain(row, text, "") for text in ("a", "aaa", "a", "aa", "aaa")])
    assert [score.value for score in scores] == [0.001, 0.003, 0.001, 0.002, 0.003]
    assert asker.samples == 3


def test_progress_tells_every_probe(answers: str) -> None:
    watcher = Watcher()
    result = run_probes(ProbesConfig(input=answers, scorer=f"{HERE}Sound", only=("empty", "refusal")), progress=watcher)
    shares = [snapshot.fraction for snapshot in watcher.seen]
    assert shares == [0.25, 0.25, 0.5, 0.75]  # the last quarter is another scale, which there is none of
    assert [snapshot.rows for snapshot in watcher.seen] == [3, 6, 12, 21]
    assert result.counts.samples == 21


def test_rows_are_tried_a_few_at_a_time_with_the_same_outcome(answers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = probed(f"{HERE}Keyword", answers)
    monkeypatch.setattr(trying, "_ROWS", 2)
    watcher = Watcher()
    pieces = probed(f"{HERE}Keyword", answers)
    run_probes(ProbesConfig(input=answers, scorer=f"{HERE}Keyword", only=("padding",)), progress=watcher)
    assert [check.to_dict() for check in pieces.checks] == [check.to_dict() for check in whole.checks]
    assert pieces.worst == whole.worst
    shares = [snapshot.fraction for snapshot in watcher.seen]
    assert shares == [pytest.approx(share) for share in (1 / 3, 1 / 3, 5 / 9, 2 / 3)]


def test_a_bad_response_without_a_score_is_not_beaten(tmp_path: Path) -> None:
    rows = [
        {"prompt": "p", "good": "so 4", "bad": "no", "reference": "4"},
        {"prompt": "p", "good": "so 5", "bad": "no " * 200, "reference": "5"},
        {"prompt": "p", "good": "so " * 200 + "6", "bad": "no", "reference": "6"},
    ]
    result = probed(f"{HERE}Coward", written(tmp_path, rows), only=("empty",))
    found = measure(result, "good above bad")
    assert (found.value, found.n) == (pytest.approx(1 / 3), 3)


def test_what_ends_at_a_limit_is_counted(answers: str) -> None:
    result = probed(f"{HERE}Sound", answers, only=("unfinished",))
    assert (result.counts.samples, result.counts.cut_off) == (9, 3)
    assert len(result.source["digest"]) == 16


def test_a_changed_chat_is_read_as_text(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "What is it?"}]
    row = {"prompt": asked, "good": "It is\n4", "bad": "It is [[B]]\n5", "reference": "4"}
    result = probed(f"{HERE}FirstMatch", written(tmp_path, [row]), only=("sycophancy",))
    assert {case.prompt.splitlines()[0] for case in result.worst} == {"What is it?"}
