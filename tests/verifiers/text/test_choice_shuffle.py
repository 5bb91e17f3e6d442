from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.verifiers.text.choice import ChoiceVerifier
from adjudge.verifiers.text.choice_key import LABELS, read_choice_key
from adjudge.verifiers.text.choice_shuffle import inverse, permute_choices, remap_label, shuffle_sample, shuffled_order

OPTION = st.text(alphabet="bcdfgklmnopqrstuvwxyz0123456789$\\+^", min_size=2, max_size=8)
FORMATS = st.sampled_from(["{}. {}\n", "({}) {}\n", "{}) {}\n", "({}) {} ", "- {}. {}\n", "{}: {}; "])


@st.composite
def questions(draw: st.DrawFn) -> Sample:
    choices = draw(st.lists(OPTION, min_size=2, max_size=len(LABELS), unique=True))
    form = draw(FORMATS)
    listing = "".join(form.format(label, text) for label, text in zip(LABELS, choices, strict=False))
    at = draw(st.integers(0, len(choices) - 1))
    answer = draw(st.sampled_from([at, LABELS[at], f"({LABELS[at]})", LABELS[at].lower(), choices[at]]))
    return Sample(
        prompt=f"Which one?\n{listing}\nAnswer:",
        response="",
        reference={"choices": choices, "answer": answer},
        id=draw(st.text(min_size=1, max_size=8)),
    )


@given(questions(), st.text(max_size=4))
def test_shuffling_back_gives_the_sample(sample: Sample, seed: str) -> None:
    shuffled, order = shuffle_sample(sample, seed=seed)
    assert permute_choices(shuffled, inverse(order)) == sample


@given(questions())
def test_the_right_option_stays_right(sample: Sample) -> None:
    shuffled, order = shuffle_sample(sample)
    before, after = read_choice_key(sample.reference), read_choice_key(shuffled.reference)
    old, new = LABELS.index(before.answer), LABELS.index(after.answer)
    assert sample.reference["choices"][old] == shuffled.reference["choices"][new]
    assert order[new] == old
    assert remap_label(before.answer, order) == after.answer
    assert remap_label(after.answer, inverse(order)) == before.answer
    right = ChoiceVerifier().verify(Sample(prompt="", response=after.answer, reference=shuffled.reference))
    assert right.value == 1.0


@given(questions())
def test_only_the_options_change_in_the_prompt(sample: Sample) -> None:
    shuffled, _ = shuffle_sample(sample)
    assert isinstance(shuffled.prompt, str)
    assert Counter(shuffled.prompt) == Counter(sample.prompt)
    assert shuffled.prompt.startswith("Which one?\n")
    assert shuffled.prompt.endswith("\nAnswer:")


@given(st.integers(2, 10), st.text(max_size=6), st.sets(st.integers(0, 9)))
def test_an_order_is_a_permutation_that_keeps_the_pinned(count: int, seed: str, pinned: set[int]) -> None:
    order = shuffled_order(count, seed, pinned)
    assert sorted(order) == list(range(count))
    assert all(order[at] == at for at in pinned if at < count)
    assert order == shuffled_order(count, seed, pinned)


def test_the_order_never_changes_between_versions() -> None:
    # SHA-256 of "q|0" ... "q|3" begins db03c4, 383cd8, 04b4e6, fd15a9: ascending that is 2, 1, 0, 3.
    assert shuffled_order(4, "q") == (2, 1, 0, 3)


def test_every_order_is_equally_likely() -> None:
    counts = Counter(shuffled_order(3, f"seed {at}") for at in range(6_000))
    # Six orders, 1,000 each expected, standard deviation 29: five of them is 145.
    assert len(counts) == 6
    assert all(abs(count - 1_000) < 145 for count in counts.values())


@pytest.mark.parametrize("last", ["All of the above", "None of the other options", "Neither of these", "以上都对"])
def test_options_about_the_others_stay_last(last: str) -> None:
    choices = ["red", "green", "blue", last]
    listing = "\n".join(f"{label}. {text}" for label, text in zip(LABELS, choices, strict=False))
    moved = set()
    for at in range(20):
        shuffled, order = shuffle_sample(
            Sample(prompt=listing, response="", reference={"choices": choices, "answer": "D"}, id=str(at))
        )
        assert shuffled.reference["choices"][3] == last
        assert shuffled.reference["answer"] == "D"
        moved.add(order)
    assert len(moved) > 1


@pytest.mark.parametrize("naming", ["Both A and C", "(A) or (B)", "Options A", "B"])
def test_nothing_moves_when_an_option_names_others(naming: str) -> None:
    choices = ["red", "green", "blue", naming]
    listing = "\n".join(f"{label}. {text}" for label, text in zip(LABELS, choices, strict=False))
    sample = Sample(prompt=listing, response="", reference={"choices": choices, "answer": 0}, id="q")
    assert shuffle_sample(sample) == (sample, (0, 1, 2, 3))
    with pytest.raises(ValueError, match="names options by their labels"):
        permute_choices(sample, (1, 0, 2, 3))


def test_an_answer_given_as_a_short_text_stays() -> None:
    sample = question("A. 1\nB. 2\nC. 3", {"choices": ["1", "2", "3"], "answer": "2"})
    moved = permute_choices(sample, (1, 2, 0))
    assert moved.reference == {"choices": ["2", "3", "1"], "answer": "2"}
    assert moved.prompt == "A. 2\nB. 3\nC. 1"


def test_the_last_list_in_the_last_message_is_rewritten() -> None:
    prompt = [
        {"role": "user", "content": "A. red B. green is an example. Now:\nA. red\nB. green"},
        {"role": "assistant", "content": "Hm."},
    ]
    sample = Sample(prompt=prompt, response="", reference={"choices": ["red", "green"], "answer": "A"}, id="q")
    swapped = permute_choices(sample, (1, 0))
    assert swapped.prompt[0] == {
        "role": "user",
        "content": "A. red B. green is an example. Now:\nA. green\nB. red",
    }
    assert swapped.prompt[1] == prompt[1]
    assert swapped.reference == {"choices": ["green", "red"], "answer": "B"}


def question(prompt: str, reference: Any, name: str = "q") -> Sample:
    return Sample(prompt=prompt, response="", reference=reference, id=name)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (question("A. xx B. yy", {"choices": ["xx", "yy"], "answer": 0}, name=""), "needs Sample.id"),
        (question("A. xx B. yy", "A"), "needs the reference"),
        (question("A. xx", {"choices": ["xx", "yy"], "answer": 0}), "does not list"),
        (question("A. xx B. yyz", {"choices": ["xx", "yy"], "answer": 0}), "does not list"),
        (question("A. yy B. xx", {"choices": ["xx", "yy"], "answer": 0}), "does not list"),
    ],
)
def test_what_cannot_be_rewritten_is_refused(sample: Sample, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shuffle_sample(sample)


def test_an_order_must_be_a_permutation() -> None:
    with pytest.raises(ValueError, match="not a permutation"):
        permute_choices(question("A. xx B. yy", {"choices": ["xx", "yy"], "answer": 0}), (0, 0))
