"""Questions of a benchmark are found however they are spelled, and nothing else is."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data_pipelines.hygiene.row_files import read, write

from adjudge.data_pipelines.hygiene.config import DecontaminateConfig
from adjudge.data_pipelines.hygiene.decontaminate import BenchmarkIndex, run_decontaminate

QUESTION = "A robe takes two bolts of blue fiber, and half that much white fiber: how many bolts in total does it take?"
CHINESE = "".join(chr(0x4E00 + 7 * number) for number in range(40))
CODE = "def add(a, b):\n    '''Return the sum of a and b, as the caller would expect it to be.'''\n    return a + b"
LATEX = r"Let $f(x) = \frac{x^2 - 1}{x + 1}$ for all $x \neq -1$. What is the value of $f(3) + f(5)$, as a fraction?"


def index(*questions: str, ngram: int = 8, frame: int = 0) -> BenchmarkIndex:
    return BenchmarkIndex([("test", at, text) for at, text in enumerate(questions)], ngram=ngram, frame=frame)


def noisy(text: str, draw: random.Random) -> str:
    """The text with other case, punctuation and white space."""
    for mark in ",.:?'":
        text = text.replace(mark, draw.choice(["", mark, f" {mark} ", f"{mark}\u200b"]))
    text = "".join(draw.choice([char, char.upper()]) for char in text)
    return "".join(draw.choice(["\n\t", "  ", "\u00a0"]) if char == " " else char for char in text)


@pytest.mark.parametrize("question", [QUESTION, CHINESE, CODE, LATEX])
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_question_is_found_through_noise_inside_a_longer_text(question: str, seed: int) -> None:
    draw = random.Random(seed)
    found = index("something else " * 9, question).search(f"Please think. {noisy(question, draw)} And explain.")
    assert [(hit.benchmark, hit.row, hit.share) for hit in found] == [("test", 1, 1.0)]


def test_other_texts_are_clean() -> None:
    known = index(QUESTION, CHINESE, CODE, LATEX)
    for text in (
        "A robe takes three bolts of red fiber, and twice that much white fiber: how much is it?",
        CHINESE[::-1],
        "def mul(a, b):\n    return a * b",
        r"Let $g(x) = \sqrt{x}$ for all $x$. What is $g(4)$?",
        "",
    ):
        assert known.search(text) == []


def test_part_of_a_question_counts_by_its_share() -> None:
    words = QUESTION.replace(",", "").replace(":", "").replace("?", "").lower().split()
    half = " ".join(words[:14])
    (hit,) = index(QUESTION).search(half)
    assert hit.share == pytest.approx((14 - 8 + 1) / (len(words) - 8 + 1))
    assert hit.gram == " ".join(words[:8])
    assert index(QUESTION).search(half, share=0.6) == []
    assert index(QUESTION).search(" ".join(words[:7])) == []


def test_a_short_question_is_found_by_equality_alone() -> None:
    known = index("What is 2 + 2?", ngram=13)
    assert [hit.share for hit in known.search("what is 2+2")] == [1.0]
    assert known.search("What is 2 + 2? Explain.") == []
    assert known.search("What is 2 + 3?") == []


def test_a_question_of_fewer_than_three_words_is_found_nowhere() -> None:
    known = index("Continue.", "Go on!", "What is it?", ngram=13)
    assert known.search("continue") == known.search("go on") == []
    assert [hit.row for hit in known.search("what is it")] == [2]
    assert (known.size, known.without_gram) == (3, 2)


def test_what_many_questions_share_is_their_frame() -> None:
    frame = "answer the following question with a single letter and nothing else"
    known = index(*(f"{frame}: item{number} is it x{number} or y{number} ?" for number in range(12)), frame=10)
    assert known.search(f"{frame}: what about me") == []
    assert [hit.row for hit in known.search(f"{frame}: item3 is it x3 or y3 ?")] == [3]
    assert len(index(*(f"{frame}: item{number}" for number in range(12))).search(frame)) == 12
    assert index(*[frame] * 12, frame=10).search(frame) != []  # one question twelve times is one question


def test_a_question_of_two_benchmarks_is_named_with_both() -> None:
    known = BenchmarkIndex([("one", 3, QUESTION), ("two", 5, QUESTION.upper()), ("one", 9, QUESTION)], ngram=8)
    assert [(hit.benchmark, hit.row) for hit in known.search(QUESTION)] == [("one", 3), ("two", 5)]


@given(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=8), max_size=4),
    st.lists(st.sampled_from("abcd"), max_size=12),
    st.integers(1, 5),
)
def test_hits_are_those_of_a_search_of_all_runs(questions: list[list[str]], words: list[str], size: int) -> None:
    def runs(found: list[str]) -> set[tuple[str, ...]]:
        return {tuple(found[at : at + size]) for at in range(len(found) - size + 1)}

    expected = {}
    for at, question in enumerate(questions):
        if len(question) >= size and runs(question) & runs(words):
            expected[tuple(question)] = (at, len(runs(question) & runs(words)) / len(runs(question)))
        elif 3 <= len(question) < size and question == words:
            expected[tuple(question)] = (at, 1.0)
    firsts = {tuple(question): at for at, question in reversed(list(enumerate(questions)))}
    found = index(*(" ".join(question) for question in questions), ngram=size).search(" ".join(words))
    assert {(hit.row, hit.share) for hit in found} == {
        (firsts[question], share) for question, (_, share) in expected.items()
    }


def test_the_job_leaves_out_the_row_and_says_which_question_it_holds(tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}], "n": 0},
        {"messages": [{"role": "user", "content": "How are you?"}], "n": 1},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION.upper()}]}], "n": 2},
    ]
    given = write(tmp_path / "in.jsonl", rows)
    benchmark = write(tmp_path / "bench.jsonl", [{"question": "nothing " * 20}, {"question": QUESTION}])
    config = DecontaminateConfig(
        input=given, output=str(tmp_path / "out.jsonl"), benchmark=(benchmark,), dropped=True, in_flight=2
    )
    report = run_decontaminate(config)
    assert (report.made, report.dropped) == (1, {"in_benchmark": 2})
    assert report.counts == {"hits_bench.jsonl": 2}
    assert any("question" in note for note in report.notes)
    assert read(config.output) == [rows[1]]
    left_out = read(config.dropped_output)
    assert [
        (row["n"], row["dropped_benchmark"], row["dropped_benchmark_row"], row["dropped_share"]) for row in left_out
    ] == [
        (0, benchmark, 1, 1.0),
        (2, benchmark, 1, 1.0),
    ]
    assert left_out[0]["dropped_hits"] == [[benchmark, 1, 1.0]]


CHAT = [{"role": "user", "content": QUESTION}]
SHORT = "Who wrote the song about a yellow river?"


@pytest.mark.parametrize(
    ("row", "question"),
    [
        ({"instruction": "Solve the problem.", "input": QUESTION}, {"question": QUESTION}),
        ({"instruction": "Answer.", "input": SHORT}, {"question": SHORT}),
        ({"instruction": QUESTION, "input": ""}, {"question": QUESTION}),
        ({"question": QUESTION}, {"instruction": "Solve the problem.", "input": QUESTION}),
        ({"problem": QUESTION}, {"question": QUESTION}),
        ({"prompt": None, "query": QUESTION}, {"question": QUESTION}),
        ({"prompt": json.dumps([{"role": "user", "content": CHINESE}])}, {"question": CHINESE}),
        ({"prompt": json.dumps([{"role": "user", "content": SHORT}])}, {"question": SHORT}),
        ({"prompt": [{"from": "human", "value": SHORT}]}, {"question": SHORT}),
        ({"question": QUESTION}, {"prompt": json.dumps(CHAT)}),
        ({"provenance": {}, "input": {"instruction": "Solve.", "input": QUESTION}}, {"question": QUESTION}),
        ({"provenance": {}, "input": {"prompt": json.dumps(CHAT)}}, {"problem": QUESTION}),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_prompt_is_found_in_each_layout_and_in_rows_of_another_layout(
    row: dict[str, Any], question: dict[str, Any], late: bool, tmp_path: Path
) -> None:
    clean: list[dict[str, Any]] = [{"question": "Which of the rivers is the longest one?", "n": 1}]
    asked: list[dict[str, Any]] = [{"prompt": "What is the name of the tallest tree?"}]
    given, benches = tmp_path / "given", tmp_path / "benches"
    for folder in (given, benches):
        folder.mkdir()
    write(given / f"{'z' if late else 'a'}.jsonl", [row])
    write(given / "m.jsonl", clean)
    write(benches / "m.jsonl", asked)
    write(benches / f"{'z' if late else 'a'}.jsonl", [question])
    config = DecontaminateConfig(input=str(given), output=str(tmp_path / "out.jsonl"), benchmark=(str(benches),))
    assert run_decontaminate(config).dropped == {"in_benchmark": 1}
    assert read(config.output) == clean


def test_the_same_instruction_is_not_the_same_question(tmp_path: Path) -> None:
    told = "Read the question with care and write down nothing but the one letter of the right option, please."
    rows = [{"instruction": told, "input": text} for text in ("Is water wet or dry?", QUESTION)]
    config = DecontaminateConfig(
        input=write(tmp_path / "in.jsonl", rows),
        output=str(tmp_path / "out.jsonl"),
        benchmark=(write(tmp_path / "bench.jsonl", [{"instruction": told[:30], "input": QUESTION}]),),
    )
    assert run_decontaminate(config).dropped == {"in_benchmark": 1}
    assert read(config.output) == rows[:1]


def test_rows_without_a_text_are_counted_on_both_sides(tmp_path: Path) -> None:
    rows = [{"prompt": "How are you?"}, {"prompt": ""}, {"title": QUESTION}]
    benchmark = write(tmp_path / "bench.jsonl", [{"question": QUESTION}, {"stem": QUESTION}])
    config = DecontaminateConfig(
        input=write(tmp_path / "in.jsonl", rows), output=str(tmp_path / "out.jsonl"), benchmark=(benchmark,)
    )
    report = run_decontaminate(config)
    assert (report.made, report.counts) == (3, {"without_text": 2})
    assert f"{benchmark}: 1 rows hold no text to look for (--benchmark-column names it)" in report.notes


def test_the_systems_turns_of_a_benchmark_are_no_questions(tmp_path: Path) -> None:
    system = {"role": "system", "content": "You are a helpful assistant. " * 5}
    asked = {"role": "user", "content": QUESTION}
    benchmark = write(tmp_path / "bench.jsonl", [{"messages": [system, asked]}])
    rows = [{"messages": [system, {"role": "user", "content": text}]} for text in ("How are you?", QUESTION)]
    rows.append({"messages": [{"role": "system", "content": f"Like this: {QUESTION}"}, rows[0]["messages"][1]]})
    config = DecontaminateConfig(
        input=write(tmp_path / "in.jsonl", rows), output=str(tmp_path / "out.jsonl"), benchmark=(benchmark,)
    )
    assert run_decontaminate(config).dropped == {"in_benchmark": 2}
    assert read(config.output) == rows[:1]


def test_benchmarks_of_one_file_name_are_counted_apart(tmp_path: Path) -> None:
    other = "Seven llamas walk slowly over the bridge while nine herons watch them from the old stone wall at noon."
    names = []
    for name, text in (("one", QUESTION), ("two", other)):
        (tmp_path / name).mkdir()
        names.append(write(tmp_path / name / "test.jsonl", [{"prompt": text}]))
    given = write(tmp_path / "in.jsonl", [{"prompt": QUESTION}, {"prompt": f"{QUESTION} {other}"}])
    config = DecontaminateConfig(input=given, output=str(tmp_path / "out.jsonl"), benchmark=(*names, names[0]))
    assert run_decontaminate(config).counts == {"hits_one/test.jsonl": 2, "hits_two/test.jsonl": 1}


def test_the_fingerprint_is_that_of_the_benchmarks_text_wherever_it_lies(tmp_path: Path) -> None:
    found = []
    for name, text in (("one", QUESTION), ("two", QUESTION), ("three", f"{QUESTION} Why?")):
        (tmp_path / name).mkdir()
        benchmark = write(tmp_path / name / "test.jsonl", [{"prompt": text}])
        given = write(tmp_path / "in.jsonl", [{"prompt": "x"}])
        config = DecontaminateConfig(input=given, output=str(tmp_path / f"{name}.jsonl"), benchmark=(benchmark,))
        found.append(run_decontaminate(config).fingerprint)
    assert found[0] == found[1] != found[2]


def test_mistakes_are_said_before_any_work(tmp_path: Path) -> None:
    given = write(tmp_path / "in.jsonl", [{"prompt": "x"}])
    out = str(tmp_path / "out.jsonl")
    with pytest.raises(ValueError, match="no benchmark is named"):
        DecontaminateConfig(input=given, output=out)
    with pytest.raises(ValueError, match="--share"):
        DecontaminateConfig(input=given, output=out, benchmark=("b",), share=2.0)
    with pytest.raises(ValueError, match="no file or folder"):
        run_decontaminate(DecontaminateConfig(input=given, output=out, benchmark=("nowhere.jsonl",)))
    empty = write(tmp_path / "empty.jsonl", [{"prompt": " "}])
    with pytest.raises(ValueError, match="hold no text"):
        run_decontaminate(DecontaminateConfig(input=given, output=out, benchmark=(empty,)))
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"prompt": "a"}\nno json\n')
    with pytest.raises(ValueError, match=r"broken.jsonl, line 2.*repair"):
        run_decontaminate(DecontaminateConfig(input=given, output=out, benchmark=(str(broken),)))
    with pytest.raises(ValueError, match="--benchmark-column"):
        run_decontaminate(
            DecontaminateConfig(input=given, output=out, benchmark=(given,), benchmark_column=("question",))
        )
    assert not Path(out).exists()
