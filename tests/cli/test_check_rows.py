"""`adjudge check` on files of one's own: what their columns are, a few rows scored, and what to run next."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adjudge.cli import exits
from adjudge.io.columns import Column
from adjudge.io.positions import refuse_position

Adjudge = Callable[..., Any]

ANSWERS = [
    {"question": "2+2?", "response": "It is \\boxed{4}", "answer": "4", "source": "a"},
    {"question": "3+3?", "response": "It is \\boxed{7}", "answer": "6", "source": "b"},
    {"question": "4+4?", "response": "It is \\boxed{8}", "answer": "8", "source": "a"},
    {"question": "5+5?", "response": "It is \\boxed{10}", "answer": "10", "source": "a"},
]
CHAT = [{"role": "user", "content": "Hi?"}]
GOOD, BAD = ({"role": "assistant", "content": text} for text in ("Hello, how can I help?", "No."))
PAIRS: dict[str, dict[str, Any]] = {
    "explicit": {"prompt": "Hi?", "chosen": GOOD["content"], "rejected": BAD["content"]},
    "implicit": {"chosen": [*CHAT, GOOD], "rejected": [*CHAT, BAD]},
    "whole chats": {"prompt": "Hi?", "chosen": [*CHAT, GOOD], "rejected": [*CHAT, BAD]},
    "transcripts": {
        "chosen": f"\n\nHuman: Hi?\n\nAssistant: {GOOD['content']}",
        "rejected": f"\n\nHuman: Hi?\n\nAssistant: {BAD['content']}",
    },
    "labelled": {"prompt": "Hi?", "response_a": BAD["content"], "response_b": GOOD["content"], "winner": "b"},
    "listed": {"prompt": "Hi?", "responses": [BAD["content"], GOOD["content"]], "scores": [1, 5]},
}
CODE = {"tests": [{"args": [2], "expected": 4}], "entry_point": "f", "solution": "def f(x):\n    return 2 * x"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")


def write(name: str, rows: list[dict[str, Any]]) -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def roles(data: Any) -> dict[str, str]:
    return {column["name"]: column["role"] for column in data["columns"]}


def steps(data: Any) -> dict[str, Any]:
    return {step["what"]: step for step in data["next"]}


def test_columns_rows_checks_and_what_is_next(adjudge: Adjudge) -> None:
    ran = adjudge("check", write("mine.jsonl", ANSWERS))
    assert ran.code == exits.FINE, ran.err
    places = [
        ran.out.index(text)
        for text in (
            "mine.jsonl: all 4 rows were looked at; they hold responses and references",
            "question   prompt (guessed)",
            "4 answers (math)",
            "--extra-column NAME",
            "0, wrong: the answer was understood and is not the reference",
            "4 responses scored, mean 0.75: 3 x 1, 1 x 0 (wrong)",
            "scorer math (math:",
            "probes ",
            "0 failed",
            "adjudge label mine.jsonl mine_scores.jsonl --scorer math --prompt-column question",
            "# run.yaml",
            "from adjudge.trl import Reward",
        )
    ]
    assert places == sorted(places)
    assert "probe: empty" not in ran.out


def test_what_is_named_is_not_guessed(adjudge: Adjudge) -> None:
    path = write("mine.jsonl", [{"q": row["question"], "a": row["response"], "nested": {"g": "4"}} for row in ANSWERS])
    named = ("--prompt-column", "q", "--response-column", "a", "--reference-column", "nested.g")
    data = adjudge("check", path, *named, "--json").json
    assert roles(data) == {"q": "prompt", "a": "response", "nested.g": "reference"}
    assert not any(column["guessed"] for column in data["columns"])
    assert all(flag in steps(data)["score every response"]["text"] for flag in named)


_SEEN: dict[str, Any] = {}
"""What is told of the answers as JSON lines, with which the other formats are compared."""


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl.gz", "folder", "saved", "*.jsonl"])
def test_any_format_reads_the_same(adjudge: Adjudge, name: str) -> None:
    path = write("mine.jsonl", ANSWERS)
    seen = _SEEN.get("answers") or _SEEN.setdefault("answers", adjudge("check", path, "--json").json)
    if name == "rows.jsonl.gz":
        Path(name).write_bytes(gzip.compress(Path("mine.jsonl").read_bytes()))
    elif name == "folder":
        Path(name).mkdir()
        Path("mine.jsonl").rename("folder/part.jsonl")
    elif name != "*.jsonl":
        dataset = pytest.importorskip("datasets").Dataset.from_list(ANSWERS)
        {"rows.csv": dataset.to_csv, "rows.parquet": dataset.to_parquet, "saved": dataset.save_to_disk}[name](name)
    other = adjudge("check", name, "--json").json
    same = ("kind", "columns", "references", "responses", "rows", "total_rows")
    assert {key: other[key] for key in same} == {key: seen[key] for key in same}
    assert [each["sample"] for each in other["graded"]] == [each["sample"] for each in seen["graded"]]


def test_a_file_of_several_kinds_is_checked_kind_by_kind(adjudge: Adjudge) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": "Double x.", "reference": CODE},
        {"prompt": "2+2?", "reference": "4"},
        {"prompt": "Pick.", "reference": {"choices": ["red", "blue"], "answer": "B"}},
        {"prompt": "Say hi."},
    ]
    path = write("mixed.jsonl", rows)
    data = adjudge("check", path, "--json").json
    assert data["references"] == {"code": 1, "math": 1, "choice": 1, "none": 1}
    assert [(one["scorer"], one["rows"]) for one in data["scorers"]] == [("code", 1), ("math", 1), ("choice", 1)]
    assert {check["scorer"] for check in data["checks"] if check["name"] == "golds" and check["outcome"] == "ok"} == {
        "code", "math", "choice",
    }  # fmt: skip
    assert [score["score"]["value"] for score in data["graded"]] == [1.0, 1.0, 1.0]
    assert data["ok"]
    assert steps(data)["train a policy"]["text"].splitlines()[3] == "reward: auto"
    (holds,) = (column["holds"] for column in data["columns"] if column["role"] == "reference")
    assert holds == "1 tests (code), 1 answers (math), 1 choice, 1 rows without one"


def test_the_page_shows_what_is_printed(adjudge: Adjudge, root: Path) -> None:
    (shown,) = re.findall(r"```console\n\$ (adjudge .*?)```", (root / "docs/check.md").read_text(), re.DOTALL)
    command, *lines = shown.splitlines()
    references: list[Any] = ["4", "6", CODE, None]
    write("mixed.jsonl", [{"prompt": "?", "reference": reference} for reference in references])
    printed = [line.rstrip() for line in adjudge(*shlex.split(command)[1:]).out.splitlines()]
    assert [line for line in lines if line != "..." and line not in printed] == []
    assert any(re.match(r"code +golds", line) for line in printed)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"choices": ["1", "4", "5"], "answer": 1}, "--reference-column choices+answer"),
        ({"options": ["Rome", "Paris"], "target": "(b)"}, '{"choices": [...], "answer": ...}'),
    ],
)
def test_a_position_among_options_is_not_taken_for_the_answer(
    adjudge: Adjudge, given: dict[str, Any], remedy: str
) -> None:
    file = write("mmlu.jsonl", [{"question": "Which?", "response": "B", **given}] * 3)
    for command in (("check", file), ("label", file, "out.jsonl")):
        ran = adjudge(*command)
        said = " ".join(ran.err.split())
        assert ran.code == exits.USER
        assert "only points to one of the texts in" in said
        assert remedy in said


@pytest.mark.parametrize(
    ("row", "scorer"),
    [
        ({"choices": {"text": ["3", "5"], "label": ["A", "B"]}, "answerKey": "B"}, "choice"),
        ({"choices": ["3", "4", "5"], "answer": 1}, "choice"),
        ({"choices": ["Rome", "Paris"], "answer": "B"}, "choice"),
        ({"choices": '["Rome", "Paris"]', "answer": "1"}, "choice"),
        ({"options": {"A": "Rome", "B": "Paris"}, "answer": "B"}, "choice"),
        ({"options": ["A)1 hour", "B)2 hours"], "correct": "B"}, "choice"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{"num": None}]}, ""),
    ],
)
def test_rows_of_published_data_sets_need_no_options(adjudge: Adjudge, row: dict[str, Any], scorer: str) -> None:
    file = write("row.jsonl", [{"question": "Which?", "response": "B", **row}] * 3)
    data = adjudge("check", file, "--json").json
    assert data["scorer"] == (scorer or "instructions")
    assert data["graded"][0]["score"]["value"] == 1.0
    golds = [check for check in data["checks"] if check["name"] == "golds" and scorer]
    assert all(check["outcome"] == "ok" for check in golds)
    adjudge("label", file, "out.jsonl", "--scorer", "auto")
    assert {json.loads(line)["value"] for line in Path("out.jsonl").read_text().splitlines()} == {1.0}


def test_samples_saved_as_messages_are_told(adjudge: Adjudge) -> None:
    said = [{"role": "assistant", "content": content} for content in ("7", "9")]
    ran = adjudge("check", write("n.jsonl", [{"prompt": "6+1?", "responses": said, "answer": "7"}]))
    assert "each is read as a response of its own" in ran.out
    assert re.search("^0/1 ", ran.out, re.MULTILINE)


def test_a_gold_that_nothing_but_itself_can_be_compared_with_is_told(adjudge: Adjudge) -> None:
    file = write("golds.jsonl", [{"prompt": "?", "answer": gold} for gold in (r"\frac{13n(n+1)}{", "7")])
    assert "only the gold itself can be judged: gold_unparsable" in " ".join(adjudge("check", file).out.split())


@pytest.mark.parametrize("answer", [7, "Paris", "4", None, True, 1.5, "b c"])
def test_an_answer_beside_options_is_one_where_it_points_to_none(answer: object) -> None:
    rows = [{"choices": ["4", "Paris", "x"], "answer": answer}, {"choices": ["4", "b"], "answer": 9}]
    refuse_position(Column("answer"), rows)
    refuse_position(Column("answer"), [{"choices": [{"text": "a"}, {"text": "b"}], "answer": 1}])
    refuse_position(None, rows)
    with pytest.raises(ValueError, match="only points"):
        refuse_position(Column("answer"), [{"choices": "['a' 'b']", "answer": "1"}])


def test_references_that_no_scorer_is_known_for_are_found(adjudge: Adjudge) -> None:
    ran = adjudge("check", write("odd.jsonl", [*ANSWERS, ANSWERS[0] | {"answer": {"colour": "red"}}]), "--json")
    assert ran.code == exits.FOUND
    (check,) = (check for check in ran.json["checks"] if check["findings"] and check["name"] == "references")
    assert [finding["row"] for finding in check["findings"]] == ["4"]
    assert "colour" in check["findings"][0]["problem"]


def test_rows_of_another_kind_are_no_failures_of_a_named_scorer(adjudge: Adjudge) -> None:
    rows: list[dict[str, Any]] = [
        *ANSWERS,
        {"question": "Double x.", "response": "?", "answer": CODE},
        {"question": "Hi", "response": "Ho"},
    ]
    ran = adjudge("check", write("mixed.jsonl", rows), "--scorer", "math", "--json")
    assert ran.code == exits.FINE
    assert ran.json["checks"][0]["detail"] == "every row has one that can be read; 2 rows are not for math"


def test_rows_that_cannot_be_read_are_listed(adjudge: Adjudge) -> None:
    odd: dict[str, Any] = {"question": {"odd": 1}, "response": "x", "answer": "1"}
    path = Path(write("mine.jsonl", [*ANSWERS, odd]))
    path.write_text(path.read_text() + "{broken\n")
    ran = adjudge("check", str(path), "--json")
    assert ran.code == exits.FOUND
    assert ran.json["checks"][0]["name"] == "rows"
    assert [finding["row"] for finding in ran.json["checks"][0]["findings"]] == ["4", "5"]
    assert "malformed JSON" in ran.json["checks"][0]["findings"][1]["problem"]


@pytest.mark.parametrize("layout", list(PAIRS))
def test_preferences_of_every_layout_are_shown_as_they_are_read(adjudge: Adjudge, layout: str) -> None:
    ran = adjudge("check", write("pairs.jsonl", [PAIRS[layout]] * 3))
    assert ran.code == exits.FINE, ran.err
    assert "they hold preferences" in ran.out
    (line,) = (line for line in ran.out.splitlines() if line.startswith("0 "))
    cells = [cell.strip().removeprefix("user: ") for cell in line.split("   ") if cell.strip()]
    assert cells == ["0", "Hi?", GOOD["content"], BAD["content"]]
    assert "the longer response is the better one in 100.0% of pairs" in ran.out
    data = adjudge("check", "pairs.jsonl", "--json").json
    assert {name for name, role in roles(data).items() if not role} == set()
    assert [step["what"] for step in data["next"]] == ["train a reward model", "say how often a scorer is right"]


def test_a_scorer_is_tried_on_pairs(adjudge: Adjudge) -> None:
    path = write("pairs.jsonl", [PAIRS["implicit"]] * 3)
    data = adjudge("check", path, "--scorer", "{length: {kind: linear, unit: words, max_length: 9}}", "--json").json
    assert [each["sample"]["response"] for each in data["graded"][:2]] == [GOOD["content"], BAD["content"]]
    assert data["graded"][0]["score"]["value"] < data["graded"][1]["score"]["value"]
    assert {"pairs", "hostile responses"} <= {check["name"] for check in data["checks"] if check["outcome"] == "ok"}


def test_pairs_of_equal_texts_are_found(adjudge: Adjudge) -> None:
    same = {"prompt": "Hi?", "chosen": "Hello", "rejected": "Hello"}
    ran = adjudge("check", write("pairs.jsonl", [PAIRS["explicit"], same]), "--json")
    assert ran.code == exits.FOUND
    assert [finding["row"] for finding in ran.json["checks"][0]["findings"]] == ["1"]


def test_labels_of_ones_own_are_named(adjudge: Adjudge) -> None:
    rows = [{"input": "Hi?", "output_1": "a", "output_2": "bb", "label": label} for label in ("one", "two", "one")]
    path = write("pairs.jsonl", rows)
    ran = adjudge("check", path)
    assert ran.code == exits.USER
    assert "--first-label" in ran.err
    data = adjudge("check", path, "--first-label", "one", "--second-label", "two", "--json").json
    assert data["checks"][0]["detail"] == "the longer response is the better one in 33.3% of pairs"
    assert "--first-label one" in steps(data)["say how often a scorer is right"]["text"]


def test_prompts_alone_and_responses_without_references(adjudge: Adjudge) -> None:
    prompts = adjudge("check", write("prompts.jsonl", [{"messages": CHAT}, {"messages": CHAT}]), "--json")
    assert (prompts.code, prompts.json["kind"], prompts.json["checks"]) == (exits.FINE, "prompts", [])
    assert "chat: true" not in steps(prompts.json)["train a policy"]["text"]
    path = write("chats.jsonl", [{"messages": [*CHAT, GOOD]}, {"messages": [*CHAT, BAD]}])
    ran = adjudge("check", path)
    assert "prompt and response (guessed)" in ran.out
    assert "There is no reference, so nothing is scored" in ran.out
    data = adjudge("check", path, "--scorer", "{length: {kind: linear, unit: words, max_length: 9}}", "--json").json
    assert [each["sample"]["prompt"][0]["content"] for each in data["graded"]] == ["Hi?", "Hi?"]
    assert data["graded"][0]["score"]["value"] < data["graded"][1]["score"]["value"]


def test_without_a_limit_the_first_thousand_rows_are_looked_at(adjudge: Adjudge) -> None:
    path = write("many.jsonl", [{"question": f"{n}?", "answer": str(n)} for n in range(1200)])
    ran = adjudge("check", path)
    assert "many.jsonl: the first 1,000 rows were looked at" in ran.out
    assert "on 1000 references" in ran.out
    data = adjudge("check", path, "--limit", "0", "--json").json
    assert (data["rows"], data["total_rows"], data["checks"][0]["tried"]) == (1200, 1200, 1200)


def test_all_lists_what_held(adjudge: Adjudge) -> None:
    path = write("mine.jsonl", ANSWERS)
    assert {"probe: empty", "protocol: any order"} <= {
        line.split("   ")[0].strip() for line in adjudge("check", path, "--all").out.splitlines()
    }


def test_solutions_of_gsm8k_are_references(adjudge: Adjudge) -> None:
    rows = [{"question": f"{n}+1?", "answer": f"Add 1 to {n}.\n#### {n + 1}"} for n in (10, 27, 388)]
    data = adjudge("check", write("gsm8k.jsonl", rows), "--json").json
    assert data["ok"]
    assert [each["sample"]["response"] for each in data["graded"]] == ["11", "28", "389"]


UNKNOWN = '{"foo": 1, "bar": "x"}\n'


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.jsonl", b"", "empty.jsonl holds no rows"),
        ("empty.csv", b"", "its first line must name the columns"),
        ("binary.jsonl", b"\x00\xff\xfe\x01" * 50, "not UTF-8"),
        ("binary.parquet", b"\x00\xff" * 50, "is not a readable Parquet file"),
        ("rows.txt", UNKNOWN.encode(), "one of .jsonl, .ndjson"),
        ("list.jsonl", b"[1, 2]\n", "none of the first 1 rows of list.jsonl can be read"),
        ("rows.jsonl.gz", UNKNOWN.encode(), "Not a gzipped file"),
        ("unknown.jsonl", UNKNOWN.encode(), "no column of unknown.jsonl has a usual name (prompt: prompt, question"),
        ("unknown.jsonl", UNKNOWN.encode(), "The columns are: foo, bar."),
        ("typed.jsonl", b'{"prompt": {"x": 1}, "answer": "1"}\n', "none of 1 rows can be used: the prompt in 'prompt'"),
        ("typed.jsonl", b'{"prompt": "a", "response": {"x": 1}}\n', "the response in 'response' is an object"),
        ("typed.jsonl", b'{"prompt": "a", "answer": true}\n', "the reference in column 'answer': scorer=\"auto\""),
        ("pairs.jsonl", b'{"prompt": "a", "chosen": "b"}\n', "none of the columns rejected, reject"),
    ],
)
def test_a_wrong_file_is_one_sentence(adjudge: Adjudge, name: str, content: bytes, says: str) -> None:
    Path(name).write_bytes(content)
    ran = adjudge("check", name)
    assert (ran.code, ran.out) == (exits.USER, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_a_scorer_that_needs_references_says_which_columns_were_tried(adjudge: Adjudge) -> None:
    ran = adjudge(
        "check", write("mine.jsonl", [{"prompt": "a", "response": "b", "gold_answer": "c"}]), "--scorer", "math"
    )
    assert ran.code == exits.USER
    assert "name it with --reference-column. The columns are: prompt, response, gold_answer" in ran.err


def test_a_judge_that_is_down_is_one_sentence(adjudge: Adjudge) -> None:
    path = write("mine.jsonl", [{"prompt": "Say hi.", "response": "hello there"}] * 3)
    judge = '{judge: {engine: {openai: {model: m, base_url: "http://127.0.0.1:9/v1", attempts: 1}}}}'
    ran = adjudge("check", path, "--scorer", judge)
    assert (ran.code, ran.out) == (exits.USER, "")
    assert "the scorer 'judge' scored none of 3 rows: engine_unavailable" in ran.err


def test_the_next_commands_of_answers_work(adjudge: Adjudge) -> None:
    rows = [
        {"prompt": f"{n}+1?", "responses": [f"\\boxed{{{n + 1}}}", "\\boxed{0}"], "answer": n + 1} for n in range(9)
    ]
    path = write("my answers.jsonl", rows)
    data = adjudge("check", path, "--json").json
    for what in ("score every response", "make preference pairs of the scores"):
        name, *words = shlex.split(steps(data)[what]["text"])
        assert name == "adjudge"
        assert adjudge(*words).code == exits.FINE, what
    pairs = adjudge("check", "my_answers_pairs.jsonl", "--json").json
    assert (pairs["kind"], pairs["rows"]) == ("preferences", 9)


@pytest.mark.parametrize("layout", list(PAIRS))
def test_the_next_commands_of_pairs_work(adjudge: Adjudge, layout: str) -> None:
    pytest.importorskip("torch")
    text = json.dumps(PAIRS[layout])
    path = write("pairs.jsonl", [json.loads(text.replace("Hi?", f"Hi, number {n}?")) for n in range(20)])
    found = steps(adjudge("check", path, "--json").json)
    Path("rm.yaml").write_text(found["train a reward model"]["text"])
    for command in (found["train a reward model"]["command"], found["say how often a scorer is right"]["text"]):
        ran = adjudge(*shlex.split(command)[1:])
        assert ran.code == exits.FINE, ran.err


def test_the_next_commands_of_ratings_work(adjudge: Adjudge) -> None:
    pytest.importorskip("torch")
    rows = [{"question": f"{n}?", "response": "a b" * n, "help": n % 5, "verbosity": n} for n in range(1, 30)]
    data = adjudge("check", write("rated.jsonl", rows), "--json").json
    assert [name for name, role in roles(data).items() if role == "rating"] == ["help", "verbosity"]
    Path("rm.yaml").write_text(steps(data)["train a reward model"]["text"])
    ran = adjudge(*shlex.split(steps(data)["train a reward model"]["command"])[1:])
    assert ran.code == exits.FINE, ran.err


def test_the_file_of_a_policy_is_one(adjudge: Adjudge) -> None:
    from adjudge.rl_integration.trainer.rollouts.rollouts_config import TaskFiles
    from adjudge.rl_integration.trainer.rollouts.task_reader import read_tasks

    rows = [{"problem": f"{n}+1?", "answer": str(n + 1)} for n in range(30)]
    text = steps(adjudge("check", write("mine.jsonl", rows), "--json").json)["train a policy"]["text"]
    config = yaml.safe_load(text)
    Path("run.yaml").write_text(text)
    assert config["reward"] == "math"
    tasks = read_tasks(TaskFiles(**config["data"] | {"path": (config["data"]["path"],)}), accept=lambda sample: None)
    assert tasks.train[0].reference in {row["answer"] for row in rows}


@pytest.mark.parametrize("mixed", [False, True])
def test_the_lines_for_trl_run_as_they_are(
    adjudge: Adjudge, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mixed: bool
) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rows: list[dict[str, Any]] = [{"question": f"{n}+1?", "answer": str(n + 1), "tests": None} for n in range(4)]
    if mixed:
        rows += [{"question": "Double x.", "answer": None, "tests": json.dumps(CODE)}] * 2
    step = steps(adjudge("check", write("mine.jsonl", rows), "--json").json)["reward a run of TRL"]
    capsys.readouterr()
    exec(compile(step["text"], "trl", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.count("scored") == len(rows)
    assert ("code" in shown) is mixed
