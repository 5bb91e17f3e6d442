"""Lines: every field, no seconds, the same bytes whether or not a score came from a cache."""

from __future__ import annotations

import json
from dataclasses import replace

from adjudge.data_pipelines.label.bench import Written
from adjudge.data_pipelines.label.outputs import LineWriter, ScoreWriter
from adjudge.data_pipelines.label.samples import Item
from adjudge.protocol import Cost, Provenance, Score, StepScore

WHO = Provenance(scorer="fake", fingerprint="fake:1")
FULL = Score(
    value=0.5,
    reason="wrong",
    steps=(StepScore(value=1.0, label="ok", start=0, end=3),),
    parts={"b": Score(value=1.0, cost=Cost(seconds=3.0)), "a": Score.failed("undecided")},
    evidence={"z": (1, 2), "a": {"y": float("inf"), "b": "é\u2028"}},
    uncertainty=0.25,
    provenance=Provenance(scorer="math", fingerprint="math:9", engine="vllm", revision="r"),
    cost=Cost(seconds=1.5, prompt_tokens=7, completion_tokens=3),
)


def item(error: str = "", line: int = 0, keep: dict[str, object] | None = None) -> Item:
    return Item(3, "q", "g", "r", None, error, line, keep)


def written(score: Score, timings: bool = False) -> Written:
    return ScoreWriter(WHO, timings=timings).write(score)


def settled(item: Item, verdict: Score | Written | None) -> Written:
    return ScoreWriter(WHO, timings=False).settle(item, verdict)


def line(item: Item, score: Written, columns: bool = False) -> bytes:
    return LineWriter(columns=columns).line(item, score)


def score_of(written: Written) -> Score:
    return Score.from_dict(json.loads(f"{{{written.text}}}"))


def test_a_line_holds_the_whole_score() -> None:
    text = line(item(keep={"x": [1, None]}), written(FULL, timings=True), columns=True)
    assert text.endswith(b"}\n")
    assert text.count(b"\n") == 1
    data = json.loads(text)
    assert {key: data.pop(key) for key in ("row", "id", "group", "sample_hash", "prompt_hash", "column", "input")} == {
        "row": 3,
        "id": "q",
        "group": "g",
        "sample_hash": None,
        "prompt_hash": None,
        "column": "r",
        "input": {"x": [1, None]},
    }
    assert Score.from_dict(data) == FULL
    assert written(FULL)[1:] == (0.5, "scored", "wrong", "math", FULL.cost, "", False)


def test_a_row_that_an_earlier_job_wrote_is_kept_as_it_was() -> None:
    kept: dict[str, object] = {
        "nan": {"$adjudge": "float", "value": "nan"},
        "b": {"$adjudge": "bytes", "value": "AA=="},
    }
    assert json.loads(line(item(keep=kept), written(FULL)))["input"] == kept


def test_the_fields_stand_in_this_order() -> None:
    """Whoever reads lines as text, or compares outputs of two versions, relies on it."""
    assert list(json.loads(line(item(keep={}), written(FULL), columns=True))) == (
        "row id group sample_hash prompt_hash column value status reason cost evidence parts provenance steps "
        "uncertainty input".split()
    )


def test_seconds_are_left_out_everywhere() -> None:
    text = line(item(), written(FULL))
    assert b"seconds" not in text
    data = json.loads(text)
    assert data["cost"] == {"completion_tokens": 3, "prompt_tokens": 7}
    assert "column" not in data
    assert "input" not in data


def test_a_score_from_the_cache_gives_the_same_bytes() -> None:
    cached = Score.from_dict(json.loads(json.dumps(FULL.to_dict(), sort_keys=True)))
    assert written(cached, timings=True) == written(FULL, timings=True)


def test_text_that_is_no_utf_8_survives_as_an_escape() -> None:
    text = line(Item(0, "a\ud800é", "", "r", None, "", 0), written(Score.scored(1.0, text="\udfff")))
    assert "\\ud800é" in text.decode()
    data = json.loads(text)
    assert (data["id"], data["evidence"]) == ("a\ud800é", {"text": "\udfff"})


def test_a_score_that_json_cannot_hold_is_the_scorers_fault_and_stops_nothing() -> None:
    found = settled(item(), Score.scored(1.0, thing=object()))
    assert found[1:5] == (None, "failed", "verifier_error", "fake")
    assert "which JSON cannot hold" in found.error
    assert score_of(found).provenance == WHO
    assert "which JSON cannot hold" in score_of(found).evidence["error"]


def test_an_item_without_a_sample_is_a_bad_sample_of_this_scorer() -> None:
    score = score_of(settled(item("no JSON", line=8), None))
    assert score.evidence == {"error": "no JSON", "row": 3, "line": 8}
    assert (score.reason, score.provenance) == ("bad_sample", WHO)
    assert score_of(settled(item("no field"), None)).evidence == {"error": "no field", "row": 3}


def test_a_score_keeps_who_gave_it() -> None:
    assert score_of(settled(item(), FULL)).provenance == FULL.provenance
    assert score_of(settled(item(), Score.scored(1.0))).provenance == WHO


def test_what_a_worker_wrote_is_taken_as_it_is() -> None:
    assert settled(item(), written(FULL)) == written(FULL)


def test_scores_by_name_with_those_that_were_not_asked() -> None:
    writer = LineWriter(columns=False)
    data = json.loads(writer.named_line(item(keep={"x": 1}), {"math": written(FULL), 'a "b"': None}, "math"))
    assert list(data) == [
        "row",
        "id",
        "group",
        "sample_hash",
        "prompt_hash",
        "scores",
        "not_asked",
        "settled_by",
        "input",
    ]
    assert list(data["scores"]) == ["math", 'a "b"']
    assert Score.from_dict(data["scores"]["math"]) == score_of(written(FULL))
    assert (data["scores"]['a "b"'], data["not_asked"]) == (None, ['a "b"'])
    everybody = json.loads(writer.named_line(item(), {"math": written(FULL)}, None))
    assert (everybody["not_asked"], everybody["settled_by"]) == ([], None)


def test_a_failure_says_what_the_server_said_and_a_composite_what_its_part_said() -> None:
    server = Score.failed("engine_error", fault="status 400: max_tokens is too large")
    whole = Score(value=None, status="failed", reason="part_failed", parts={"a": Score.scored(1.0), "judge": server})
    assert written(server).error == "status 400: max_tokens is too large"
    for same in (whole, replace(whole, reason="engine_error")):  # a transient reason of a part is the whole's
        assert written(same).error == "judge: engine_error: status 400: max_tokens is too large"
    prose = Score.failed("judge_unparsable", fault="no verdict", text="I like it.")
    assert written(prose).error == "no verdict: 'I like it.'"
    gold = Score(value=None, status="failed", reason="part_failed", parts={"m": Score.failed("gold_unparsable")})
    assert [written(score).of_the_row for score in (server, whole, gold)] == [False, False, True]
