"""Answers of a model: what is asked, what is written, what is not, and that the commands behind it read them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import Said, ScriptedEngine

from adjudge.cli import main
from adjudge.data_pipelines.answers.config import SampleConfig
from adjudge.data_pipelines.answers.sampling import make_sample
from adjudge.engines.interface import Completion, Fault, Prompt
from adjudge.io.errors import JobError
from adjudge.io.jobs.report import JobReport
from adjudge.protocol import Sample, Score

ROWS = [{"question": f"{one}+{one}?", "answer": str(2 * one), "source": "sums"} for one in range(1, 5)]
Rows = list[dict[str, Any]]


def answers(prompt: Prompt, index: int) -> Said:
    """Right at even draws, cut off at draw 3."""
    assert not isinstance(prompt, str)
    total = 2 * int(str(prompt[-1]["content"]).split("+")[0]) + index % 2
    ended = "length" if index == 3 else "stop"
    return Completion(text=f"It is \\boxed{{{total}}}.", finish_reason=ended, tokens=4)


def written(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


def sampled(
    folder: Path, given_rows: Sequence[Mapping[str, Any]], say: Callable[[Prompt, int], Said] = answers, **options: Any
) -> tuple[JobReport, Rows, ScriptedEngine]:
    given, out = folder / "in.jsonl", folder / "out.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in given_rows)
    if not given.exists() or given.read_text() != text:  # a file that was written again has changed, says a job
        given.write_text(text)
    engine = ScriptedEngine(say)
    report = make_sample(SampleConfig(input=str(given), output=str(out), **options), engine=engine)
    return report, written(out), engine


def test_a_row_keeps_its_columns_and_gets_a_list_of_answers(tmp_path: Path) -> None:
    report, made, engine = sampled(tmp_path, ROWS, n=4, seed=2, top_p=0.9, temperature=0.5, max_tokens=7)
    assert [{name: row[name] for name in ROWS[0]} for row in made] == ROWS
    assert [len(row["response"]) for row in made] == [4] * 4
    asked = engine.samplings[0]
    assert (asked.n, asked.top_p, asked.temperature, asked.max_tokens) == (4, 0.9, 0.5, 7)
    assert engine.asked[0] == [{"role": "user", "content": "1+1?"}]
    assert report.counts["answers"] == 16
    assert report.cost.completion_tokens == 64
    other = make_sample(
        SampleConfig(input=str(tmp_path / "in.jsonl"), output=str(tmp_path / "b.jsonl"), n=4), engine=engine
    )
    assert engine.samplings[-1].seed != asked.seed
    assert other.fingerprint != report.fingerprint


def test_one_answer_is_a_text_and_rows_have_names(tmp_path: Path) -> None:
    _, made, _ = sampled(tmp_path, ROWS, overwrite=True)
    assert made[1]["response"] == "It is \\boxed{4}."
    assert made[1]["finish_reason"] == "stop"
    _, made, _ = sampled(tmp_path, [{**ROWS[0], "id": "a"}, ROWS[1]], n=2, rows=True, overwrite=True)
    assert [(row["id"], row["group"], row["response"]) for row in made] == [
        ("a/0", "a", "It is \\boxed{2}."),
        ("a/1", "a", "It is \\boxed{3}."),
        ("1/0", "1", "It is \\boxed{4}."),
        ("1/1", "1", "It is \\boxed{5}."),
    ]


def test_what_is_no_answer_is_counted_and_never_written(tmp_path: Path) -> None:
    def refuses(prompt: Prompt, index: int) -> Said:
        if "2+2" in str(prompt):
            return Fault(reason="engine_error", detail="no", too_long=True)
        return Fault(reason="engine_error", detail="no") if "3+3" in str(prompt) else answers(prompt, index)

    report, made, _ = sampled(tmp_path, [*ROWS, {"question": "  ", "answer": "1"}], refuses, n=4)
    assert [row["question"] for row in made] == ["1+1?", "4+4?"]
    assert report.dropped == {"bad_prompt": 1, "generation_failed": 1, "too_long": 1}
    assert report.counts["cut_off"] == 2
    assert made[0]["finish_reason"] == ["stop", "stop", "stop", "length"]


def test_an_engine_that_is_gone_stops_the_job_which_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    sampled(tmp_path, ROWS, n=2)
    whole = (tmp_path / "out.jsonl").read_bytes()
    (tmp_path / "out.jsonl").unlink()

    def leaves(prompt: Prompt, index: int) -> Said:
        gone = "3+3" in str(prompt)
        return Fault(reason="engine_unavailable", detail="away") if gone else answers(prompt, index)

    with pytest.raises(JobError, match="is gone"):
        sampled(tmp_path, ROWS, leaves, n=2, in_flight=1)
    assert not (tmp_path / "out.jsonl").exists()
    report, _, engine = sampled(tmp_path, ROWS, n=2, in_flight=1)
    assert report.resumed_rows
    assert len(engine.asked) < len(ROWS)
    assert (tmp_path / "out.jsonl").read_bytes() == whole


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ({"question": "?", "response": "x"}, {}, "column 'response' already"),
        ({"text": "?"}, {}, "no column looks like a prompt"),
        ({"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}, {}, "gone on with"),
        ({"question": "?"}, {"prompt_column": "qestion"}, "Did you mean 'question'"),
        ({"question": "?"}, {"template": ("{{hint}}",)}, "field 'hint', and there is no such column"),
        ({"question": "?"}, {"template": ("judges/pairwise",)}, "trusted fields"),
        ({"question": "?"}, {"template": ("Solve it",)}, "names no template"),
        ({"question": "?"}, {"template": ("data_pipelines/answers/chain",), "chat": False}, "does not fit"),
        ({"question": "?"}, {"again": ("{{previous}}",)}, "name who says so with --scorer"),
        ({"question": "?"}, {"scorer": "math", "n": 2}, "add --rows"),
    ],
)
def test_a_call_that_would_lose_or_mistake_something_is_refused(
    tmp_path: Path, row: Mapping[str, Any], options: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sampled(tmp_path, [row], **options)
    with pytest.raises(ValueError, match="all would be the same"):
        SampleConfig(input="a.jsonl", output="b.jsonl", n=2, temperature=0)


def test_a_turn_that_was_begun_and_plain_text_are_gone_on_with(tmp_path: Path) -> None:
    begun = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Well"}]
    _, _, engine = sampled(tmp_path, [{"p": begun}], lambda prompt, index: "!", prompt_column="p", overwrite=True)
    assert engine.asked == [begun]
    report, _, engine = sampled(
        tmp_path, [{"p": "Once"}, {"p": begun}], lambda *_: "!", prompt_column="p", chat=False, overwrite=True
    )
    assert engine.asked == ["Once"]
    assert report.dropped == {"chat_prompt": 1}


@pytest.mark.parametrize("rows", [False, True])
def test_what_is_written_needs_no_flag_behind_it(
    tmp_path: Path, rows: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    sampled(tmp_path, ROWS, n=4, rows=rows)
    out, scores, pairs = (str(tmp_path / name) for name in ("out.jsonl", "scores.jsonl", "pairs.jsonl"))
    assert main.main(["label", out, scores, "--scorer", "math", "--keep-columns"]) == 0
    assert [row["value"] for row in written(Path(scores))][:4] == [1.0, 0.0, 1.0, 0.0]
    assert main.main(["data", "pairs", scores, pairs]) == 0
    made = written(Path(pairs))
    assert len(made) == 4
    assert made[0]["chosen"].endswith("{2}.")
    assert made[0]["rejected"].endswith("{3}.")
    rated = str(tmp_path / "rated.jsonl")
    assert main.main(["data", "difficulty", scores, rated]) == 0
    assert {row["pass_rate"] for row in written(Path(rated))} == {0.5}
    capsys.readouterr()
    assert main.main(["eval", "best_of_n", out, "--proxy", "math", "--gold", "math", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["cases"], counts["samples"]) == (4, 16)


def test_reasoning_that_a_server_separates_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    def thinks(prompt: Prompt, index: int) -> Said:
        return Completion(text="4", reasoning="2 and 2" if "2+2" in str(prompt) else "", finish_reason="stop", tokens=1)

    assert [row["response"] for row in sampled(tmp_path, ROWS[:2], thinks)[1]] == ["4", "4"]
    _, made, _ = sampled(tmp_path, ROWS[:2], thinks, think=True, overwrite=True)
    assert [row["response"] for row in made] == ["4", "<think>\n2 and 2\n</think>\n\n4"]


class Sums:
    """Knows sums without a reference: a judge that a test can plant."""

    name = "sums"
    fingerprint = "sums:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.scored(float(self._right(str(one.prompt), str(one.response)))) for one in samples]

    def _right(self, question: str, answer: str) -> bool:
        return str(sum(map(int, re.findall(r"\d+", question)))) in answer


SUMS = Sums()


def test_tasks_that_a_model_proposes_stay_where_they_are_of_medium_difficulty(tmp_path: Path) -> None:
    def proposes(prompt: Prompt, index: int) -> Said:
        return f"{index}+{index}?"

    def solves(prompt: Prompt, index: int) -> Said:
        """Always right about 0 + 0, never about 3 + 3, and half of the time between."""
        assert not isinstance(prompt, str)
        number = int(str(prompt[-1]["content"]).split("+")[0])
        return str(2 * number if number == 0 or (number < 3 and index % 2) else 99)

    options = {"n": 4, "rows": True, "response_column": "question"}
    _, tasks, _ = sampled(tmp_path, [{"prompt": "Write a sum."}], proposes, **options)
    assert [row["question"] for row in tasks] == ["0+0?", "1+1?", "2+2?", "3+3?"]
    sampled(tmp_path, tasks, solves, n=4, prompt_column="question", overwrite=True)
    labels, kept = str(tmp_path / "labels.jsonl"), str(tmp_path / "kept.jsonl")
    named = ["--prompt-column", "question", "--group-column", "question", "--keep-columns"]
    assert main.main(["label", str(tmp_path / "out.jsonl"), labels, "--scorer", f"{__name__}:SUMS", *named]) == 0
    wanted = ["--lowest", "0.25", "--highest", "0.75", "--one-per-prompt"]
    assert main.main(["data", "difficulty", labels, kept, *wanted]) == 0
    assert [row["input"]["question"] for row in written(Path(kept))] == ["1+1?", "2+2?"]


def test_problems_that_were_made_of_one_row_are_voted_on_one_by_one(tmp_path: Path) -> None:
    """Three of four answers to each problem are right; all together, "99" would win."""

    def solves(prompt: Prompt, index: int) -> Said:
        assert not isinstance(prompt, str)
        return f"\\boxed{{{99 if index == 3 else 2 * int(str(prompt[-1]['content']).split('+')[0])}}}"

    options: dict[str, Any] = {"n": 4, "rows": True, "overwrite": True}
    weak = [{"id": "w/0", "group": "w", "prompt": "Write a sum."}]
    _, made, _ = sampled(tmp_path, weak, lambda _, index: f"{index}+{index}?", **options, response_column="question")
    _, tries, _ = sampled(tmp_path, made, solves, **options, prompt_column="question")
    labels = tmp_path / "labels.jsonl"
    named = ["--scorer", "ttrl", "--prompt-column", "question"]
    assert main.main(["label", str(tmp_path / "out.jsonl"), str(labels), *named]) == 0
    assert [row["group"] for row in tries[::4]] == ["w/0/0", "w/0/1", "w/0/2", "w/0/3"]
    assert [row["value"] for row in written(labels)] == [1.0, 1.0, 1.0, 0.0] * 4


def test_rows_without_a_name_keep_their_group(tmp_path: Path) -> None:
    _, made, _ = sampled(tmp_path, [{**ROWS[0], "group": "sums"}], n=2, rows=True)
    assert [(row["id"], row["group"]) for row in made] == [("0/0", "sums"), ("0/1", "sums")]


def test_a_text_with_columns_in_it_is_asked(tmp_path: Path) -> None:
    rows = [{"question": "1+1?", "hint": "Count {{fingers}}.", "at": 3}, {"question": "", "hint": "x", "at": 4}]
    report, made, engine = sampled(
        tmp_path, rows, lambda *_: "2", template=("Into \\boxed{}: {{question}} {{at}} {{hint}}",)
    )
    assert engine.asked == [[{"role": "user", "content": "Into \\boxed{}: 1+1? 3 Count {{fingers}}."}]]
    assert [row["question"] for row in made] == ["1+1?"]
    assert report.dropped == {"bad_prompt": 1}
    _, _, engine = sampled(tmp_path, rows[:1], lambda *_: "2", template=("{{at}}",), chat=False, overwrite=True)
    assert engine.asked == ["3"]


def test_answers_that_a_scorer_fails_are_left_out_or_gone_on_from(tmp_path: Path) -> None:
    """The second row cannot be judged, so nobody tells the model that it is wrong."""
    rows = [
        {"question": "1+1?", "answer": "2"},
        {"question": "2+2?", "answer": "["},
        {"question": "3+3?", "answer": "6"},
    ]

    def says(prompt: Prompt, index: int) -> Said:
        text = prompt if isinstance(prompt, str) else str(prompt[-1]["content"])
        return "\\boxed{2}" if "1+1?" in text else "\\boxed{6}" if text == "No: \\boxed{7}" else "\\boxed{7}"

    options: dict[str, Any] = {"scorer": "math", "overwrite": True}
    report, made, _ = sampled(tmp_path, rows, says, **options)
    assert [(row["question"], row["response"]) for row in made] == [("1+1?", "\\boxed{2}")]
    assert report.dropped == {"not_passed": 1, "unjudged": 1}
    report, made, engine = sampled(tmp_path, rows, says, **options, again=("No: {{previous}}",))
    assert [row["response"] for row in made] == ["\\boxed{2}", "\\boxed{7}\n\n\\boxed{6}"]
    assert (report.counts["further_rounds"], len(engine.asked)) == (1, 4)
    _, made, _ = sampled(tmp_path, rows, says, **options, n=2, rows=True)
    assert [row["id"] for row in made] == ["0/0", "0/1"]
