"""The lessons' data say what they claim, checked by other means than the code that made them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adjudge import score, score_batch
from adjudge.rl_integration.trainer.demo import arithmetic, instructed, last_digits, small_programs
from adjudge.rl_integration.trainer.demo.arithmetic import preferences
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy

LINE = re.compile(r"(\d+)\+(\d+)=(\d+)")
BOX = re.compile(r"\\boxed\{(\d+)\}")


def read_alone(prompt: str, lines: list[str]) -> list[bool]:
    """Which lines go on rightly from the line before, by reading the text alone."""
    before, *rest = (int(term) for term in prompt.rstrip("=").split("+"))
    found = []
    for at, line in enumerate(lines):
        if sum_ := LINE.fullmatch(line):
            found.append(
                at < len(rest) and [int(each) for each in sum_.groups()] == [before, rest[at], (before + rest[at]) % 10]
            )
            before = int(sum_[3])
        else:
            box = BOX.fullmatch(line)
            found.append(box is not None and at == len(rest) == len(lines) - 1 and int(box[1]) == before)
    return found


def test_every_line_is_labelled_as_reading_it_says() -> None:
    tasks, _ = last_digits.last_digits(held_out=0.2, seed=0)
    rows = last_digits.labelled_solutions(tasks, 2000, seed=0)
    for row in rows:
        assert row["labels"] == read_alone(row["prompt"], row["steps"]), row
        assert row["outcome"] == all(row["labels"])
    right = sum(row["outcome"] for row in rows) / len(rows)
    assert 0.4 < right < 0.5  # 0.75 ** 3 by design, and some faults change nothing


def test_a_line_that_goes_on_from_a_wrong_one_is_right_by_itself() -> None:
    tasks, _ = last_digits.last_digits(held_out=0.2, seed=0)
    rows = last_digits.labelled_solutions(tasks, 2000, seed=0)
    assert any(row["labels"] == [False, True, True] for row in rows)
    assert read_alone("3+1+6=", ["3+1=5", "5+6=1", "\\boxed{1}"]) == [False, True, True]


def test_guesses_have_the_form_and_a_third_of_their_lines_is_right() -> None:
    tasks, _ = last_digits.last_digits(held_out=0.0, seed=0)
    for task in tasks[::50]:
        texts = last_digits.guesses(task)
        read = [read_alone(str(task.prompt), text.split("\n")) for text in texts]
        assert len(set(texts)) == 9
        assert all(len(labels) == 3 and labels[-1] for labels in read)
        assert [sum(labels[place] for labels in read) for place in range(2)] == [3, 3]


def test_right_solutions_are_right_for_the_math_scorer_and_spoilt_answers_are_not() -> None:
    tasks, held_out = last_digits.last_digits(held_out=0.2, seed=1)
    assert not {task.prompt for task in tasks} & {task.prompt for task in held_out}
    assert len(tasks) + len(held_out) == 10**3
    good = [task.sample("\n".join(last_digits.solution(task)), id="", finish_reason="stop") for task in tasks[:50]]
    assert {score.value for score in score_batch(good, "math")} == {1.0}
    bad = [task.sample("1+1=2\n\\boxed{99}", id="", finish_reason="stop") for task in tasks[:5]]
    assert {score.value for score in score_batch(bad, "math")} == {0.0}


def value_of(expression: str, x: int) -> int:
    """An expression of the lesson, evaluated without running it."""
    found = re.fullmatch(r"x([+*-])(\d+)", expression)
    assert found
    number = int(found[2])
    return {"+": x + number, "-": x - number, "*": x * number}[found[1]]


def test_examples_and_tests_follow_from_the_function_and_share_nothing() -> None:
    tasks, held_out = small_programs.small_programs(held_out=0.2, seed=3)
    assert len({task.prompt for task in (*tasks, *held_out)}) == 3 * 198
    assert len(held_out) == 119
    for task in (*tasks, *held_out):
        shown = [(int(x), int(value)) for x, value in re.findall(r"(\d+):(-?\d+)", str(task.prompt))]
        hidden = [(*test["args"], test["expected"]) for test in task.reference["tests"]]
        assert (len(shown), len(hidden)) == (2, 4)
        assert all(value_of(task.extra["function"], x) == value for x, value in (*shown, *hidden))
        assert not {x for x, _ in shown} & {x for x, _ in hidden}


def test_guesses_have_the_right_number_and_are_right_in_one_of_four() -> None:
    tasks, _ = small_programs.small_programs(held_out=0.0, seed=0)
    guesses = small_programs.guesses(tasks, seed=0)
    right = 0
    for task, guess in zip(tasks, guesses, strict=True):
        found = re.fullmatch(r"f=lambda x:(?:x[+*-](\d+)|(\d+)-x)", guess)
        assert found
        assert int(found[1] or found[2]) == int(re.sub(r"\D", "", task.extra["function"]))
        right += guess == small_programs.program(task)
    assert 0.2 < right / len(tasks) < 0.3


def test_programs_are_run_and_another_way_to_write_one_is_as_good() -> None:
    tasks, _ = small_programs.small_programs(held_out=0.0, seed=0)
    task = next(task for task in tasks if task.extra["function"] == "x+37")
    answers = {
        small_programs.program(task): 1.0,
        "f=lambda x:37+x": 1.0,
        "f=lambda x:38": 0.0,
        "f=lambda x:": 0.0,
        "37": 0.0,
    }
    samples = [task.sample(answer, id="", finish_reason="stop") for answer in answers]
    assert [score.value for score in score_batch(samples, "code")] == list(answers.values())


def test_the_longer_answer_is_chosen_as_often_as_said() -> None:
    tasks, _ = arithmetic.sums(20, held_out=0.25, seed=0)
    rows = preferences(tasks, 1000, seed=0, bias=0.9)
    longer = sum(len(row["chosen"]) > len(row["rejected"]) for row in rows)
    assert 870 <= longer <= 930
    known = {str(task.prompt) for task in tasks}
    assert all(row["prompt"] in known for row in rows)


@pytest.mark.parametrize("module", [arithmetic, last_digits, small_programs])
def test_a_policy_reads_and_writes_what_its_lesson_is_made_of(module: Any) -> None:
    policy = tiny_policy(module.CHARACTERS, words=module.WORDS, seed=0, width=16, layers=1)
    if module is small_programs:
        tasks = small_programs.small_programs(held_out=0.0, seed=0)[0]
        answers = small_programs.guesses(tasks, seed=0)
    elif module is last_digits:
        tasks = last_digits.last_digits(held_out=0.2, seed=0)[0]
        answers = ["\n".join(last_digits.solution(task)) for task in tasks]
    else:
        tasks = arithmetic.sums(20, held_out=0.25, seed=0)[0]
        answers = arithmetic.answers(tasks)
    for task, answer in zip(tasks, answers, strict=True):
        assert policy.decode(policy.encode(task)) == task.prompt
        ids = policy.tokens.text(answer)
        assert policy.decode(ids) == answer
        assert policy.pad not in ids
        assert len(ids) + len(policy.encode(task)) < 64
    for word in module.WORDS:
        assert len(policy.tokens.text(word)) == 1


@pytest.mark.parametrize(
    ("response", "reward", "right"),
    [("2 + 4 = \\boxed{6}", 1.0, 1.0), ("2 + 4 = \\boxed{7}", 0.2, 0.0), ("6", 0.0, 0.0)],
)
def test_a_box_alone_is_worth_something(response: str, reward: float, right: float) -> None:
    tasks, _ = instructed.instructed(held_out=0.15, seed=0)
    task = next(task for task in tasks if task.reference == "6")
    for scorer, value in ((instructed.REWARD, reward), (instructed.TRUTH, right)):
        assert score(task.prompt, response, task.reference, scorer=scorer, extra=task.extra).value == value


def test_a_sentence_within_its_constraints_is_right() -> None:
    tasks, held_out = instructed.instructed(held_out=0.15, seed=0)
    task = next(
        task for task in [*tasks, *held_out] if task.id == "the sea: Use lower case letters alone. Use no comma."
    )
    for response, reward, right in (
        ("the sea is as deep as it is blue.", 1.0, 1.0),
        ("The sea is deep, and blue.", 0.5, 0.0),
    ):
        for scorer, value in ((instructed.REWARD, reward), (instructed.TRUTH, right)):
            assert score(task.prompt, response, task.reference, scorer=scorer, extra=task.extra).value == value
