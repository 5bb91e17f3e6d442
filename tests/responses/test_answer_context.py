"""What stands around an answer: explanations stay paid; denials, corrections and further answers do not."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.responses.answer_context import is_denied, restatements, undecorated
from adjudge.responses.answer_span import ANSWER_MARKERS
from adjudge.verifiers.text.choice import ChoiceVerifier
from adjudge.verifiers.text.numeric import NumericVerifier

CITIES = {"choices": ["Paris", "London", "Rome", "Madrid"], "answer": "C"}
MARKS = (r"\boxed{C}", "<answer>C</answer>")

EXPLANATIONS = (
    "A and B are wrong because they are in other countries.",
    "D is tempting, but Madrid is in Spain.",
    "D would be the capital of Spain.",
    "The others (A, B, D) are capitals of other countries.",
    "Not A, B, or D.",
    "A is in France, B in England, D in Spain.",
    "Option A is incorrect. Option B is incorrect. Option D is incorrect.",
    "If the question had asked for Spain, the answer would be D.",
    "Many students choose D because they confuse Italy with Spain.",
    "Students who forget this pick A.",
    "The closest distractor is D, which is the capital of Spain.",
    "This rules out A, B and D.",
    "So A, B and D can be eliminated.",
    "It is a common mistake to answer D.",
    "One might think the answer is D, but that is Spain.",
    "The answer is C because Rome is in Italy.",
    "Therefore, the correct answer is (C) Rome.",
    "Why not D? Madrid is in Spain.",
    "Is it B? No, London is in England.",
    "A careless reader would choose D.",
    "A: France. B: England. D: Spain.",
    "(A) is false, since Paris is French. (B) is false too. (D) is false.",
    "The second-best choice is D.",
    "Had the question been about France, the answer would have been A.",
    "Paris is the capital of France.",
    "The same reasoning excludes D.",
    "Some books say the answer is D, which is a misprint.",
    "Do not choose D.",
    "I initially considered D, but rejected it.",
    "This is why D is incorrect.",
    "Therefore D is wrong.",
    "So not D.",
    "My second choice was D.",
    "For completeness, option A is in France.",
    "Don't confuse this with D.",
    "See option D for contrast.",
    "This answer is consistent with the text.",
    "Let me know if you want an explanation of A, B or D.",
)
OTHERS = (
    *("Correction: D.", "Actually D.", "No, D.", "No wait, D.", "Hmm, but that reads like Spain, so D."),
    *(
        "The answer is D.",
        "The correct answer is D, not C.",
        "On second thought, D.",
        "I choose D.",
        "Sorry, I meant D.",
    ),
    *("D", "**D**", "Madrid", "Edit: D", "Scratch that, it's D.", "Make that D.", "Therefore D.", "It should be D."),
    *("D is the correct answer.", "But D is right.", "Or D.", "Die Antwort ist D.", "Just kidding: D.", "My pick: D"),
)
AROUND = (
    *(
        "{} because D is in Spain",
        "{}, not D",
        "{} is right, D is wrong.",
        "Not D, so {}",
        "Is it D? No. {}",
        "Not D but {}",
    ),
    *("After A, B and D are eliminated the answer is {}", "The statement that is not true is {}", "{} = Rome", "{} ✅"),
    *(
        "There is no doubt that it is {}",
        "It is not hard to see that the answer is {}",
        "The incorrect statement is {}",
    ),
    *(
        "The option which does not contain an error is {}",
        "{} (not D)",
        "{} is the false statement.",
        "The amount is {}",
    ),
)
DENIED = (
    *(
        "{} is wrong.",
        "{} or D",
        "{}/D",
        "{} - no, D",
        r"{}, no wait, \textbf{{D}}",
        "It is not {}.",
        "Not {}",
        "{} ❌",
    ),
    *(
        "The answer isn't {}",
        "The wrong answer is {}",
        "{} was the distractor; I choose D.",
        "I doubt it is {}",
        "{}: wrong",
    ),
    *(
        "Everything but {}",
        "All except {}",
        "One might think {}",
        "A common mistake is {}",
        "{} can be ruled out",
        "{}? D.",
    ),
    *(
        "{} is the answer most pick; I pick D.",
        "Rather than {}, D",
        "La respuesta no es {}",
        "Die Antwort ist nicht {}",
    ),
    *("不是{}", "{}不对", "{} turned out to be wrong.", "Avoid {}.", "{} => D", "{} (D)", "{} → D", "{}? No."),
)


def verdict(response: str, reference: Any) -> float | None:
    return ChoiceVerifier().verify(Sample(prompt="", response=response, reference=reference)).value


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("between", [". ", "\n\n"])
def test_an_explanation_of_the_others_is_no_other_answer(mark: str, between: str) -> None:
    assert [text for text in EXPLANATIONS if verdict(mark + between + text, CITIES) != 1.0] == []


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("between", [". ", "\n\n"])
def test_another_answer_behind_takes_the_first_back(mark: str, between: str) -> None:
    assert [text for text in OTHERS if verdict(mark + between + text, CITIES) != 0.0] == []


@pytest.mark.parametrize("mark", MARKS)
def test_the_clause_around_an_answer_may_deny_it(mark: str) -> None:
    assert [text for text in AROUND if verdict(text.format(mark), CITIES) != 1.0] == []
    assert [text for text in DENIED if verdict(text.format(mark), CITIES) != 0.0] == []


def test_a_box_in_a_tag_has_what_stands_around_both() -> None:
    assert verdict(r"<answer>\boxed{C}</answer>", CITIES) == 1.0
    assert verdict(r"<answer>\boxed{C}</answer> No, D.", CITIES) == 0.0
    assert verdict(r"Not <answer>\boxed{C}</answer>", CITIES) == 0.0


def test_restatements_tell_bare_answers_from_sentences() -> None:
    assert list(restatements("\n\nNo wait, 41.", ANSWER_MARKERS)) == [("41.", True)]
    assert list(restatements(" The answer is 41, since 6 is 7.", ANSWER_MARKERS)) == [("41, since 6 is 7.", False)]
    assert list(restatements(" If it rained, the answer would be 41.", ANSWER_MARKERS)) == []
    assert is_denied("The answer is not ", "")
    assert not is_denied("It is not 41. It is ", ", not 41")


def test_an_entry_of_a_list_is_no_answer() -> None:
    assert verdict("\\boxed{C}\n\nA. Paris is French.\nB. London is English.\n(D) Spain.", CITIES) == 1.0
    numbers = Sample(prompt="", response="\\boxed{42}\n\nSteps:\n1. Add 20.\n2. Add 22.\n3) Done.", reference="42")
    assert NumericVerifier().verify(numbers).value == 1.0


def test_pictures_are_decoration_and_crosses_are_not() -> None:
    assert undecorated("42 ✅🎉") == "42 "
    assert undecorated("42 ❌ 5° №7 a→b") == "42 ❌ 5° №7 a→b"


@pytest.mark.parametrize(
    "unit", ["not ", "so ", "the answer is ", "no, ", "but wait, ", "C ", "- ", "answer ", "🎉", "("]
)
def test_a_quarter_million_characters_around_an_answer_are_read_at_once(unit: str) -> None:
    flood = unit * (250_000 // len(unit))
    for text in (flood + r"\boxed{C}", r"\boxed{C}" + flood, rf"{flood}\boxed{{C}}{flood}"):
        assert verdict(text, CITIES) in (0.0, 1.0)
        assert NumericVerifier().verify(Sample(prompt="", response=text, reference="5")).value == 0.0
