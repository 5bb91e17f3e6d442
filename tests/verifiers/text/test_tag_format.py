from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.verifiers.text.tag_format import FormatVerifier

CONTENT = st.text(alphabet=st.characters(exclude_characters="<>", categories=["L", "N", "P"]), min_size=1, max_size=20)
PARTS = ("<think>", "</think>", "<answer>", "</answer>")


def verdict(response: str, **options: Any) -> float | None:
    return FormatVerifier(**options).verify(Sample(prompt="", response=response)).value


@given(CONTENT, CONTENT)
def test_the_form_scores_one_whatever_it_holds(thought: str, answer: str) -> None:
    assert verdict(f"<think>so {thought}</think>\n<answer>{answer}</answer>") == 1.0
    assert verdict(f"so {thought}</think>\n<answer>{answer}</answer>", opened=True) == 1.0


@given(st.lists(st.sampled_from([*PARTS, "x", " "]), max_size=8))
def test_only_the_one_order_scores_one(pieces: list[str]) -> None:
    response = "".join(pieces)
    tags = [piece for piece in pieces if piece in PARTS]
    value = verdict(response, outside="text", min_characters=0)
    assert value == float(tuple(tags) == PARTS)
    partial = verdict(response, outside="text", min_characters=0, credit="fraction")
    assert partial is not None
    assert (partial == 1.0) == (value == 1.0)
    assert 0.0 <= partial <= 1.0


def test_of_all_orders_of_the_tags_one_is_right() -> None:
    right = [order for order in permutations(PARTS) if verdict("x".join(order), outside="text") == 1.0]
    assert right == [PARTS]


@given(st.text(alphabet="<>/ thinkaswer\n=", max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    assert verdict(text) == 0.0
    assert verdict(text, credit="fraction") is not None


@pytest.mark.parametrize("extra", ["<think >", "< answer>", "</ANSWER>", "<answer id='1'>", "<think/>", "<Think\n>"])
def test_a_look_alike_is_one_tag_too_many(extra: str) -> None:
    good = "<think>a</think><answer>b</answer>"
    assert verdict(good.replace("a</", f"a{extra}</")) == 0.0
    assert verdict(good.replace("b</", f"b{extra}</")) == 0.0


def test_partial_credit_counts_checks() -> None:
    # 2 tags: 4 tag checks + order + outside + content = 7.
    assert verdict("<think>a</think>", credit="fraction") == pytest.approx(2 / 7)
    assert verdict("<think>a</think>x<answer></answer>", credit="fraction") == pytest.approx(5 / 7)
    # The prompt's own tag is not a check: 3 + 3 = 6, of which </think> is there.
    assert verdict("a</think>", credit="fraction", opened=True) == pytest.approx(1 / 6)
    assert verdict("<think>a</think>", credit="fraction", opened=True) == pytest.approx(1 / 6)
    assert verdict("", credit="fraction") == verdict("", credit="fraction", opened=True) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": 5}, "a text or a list of texts"),
        ({"tags": ()}, "at least one"),
        ({"tags": ("a", "A")}, "each tag once"),
        ({"tags": ("a b",)}, "is not a tag name"),
        ({"tags": ("<a>",)}, "is not a tag name"),
        ({"tags": (5,)}, "is not a tag name"),
        ({"outside": "some"}, "outside='some'"),
        ({"min_characters": -1}, "min_characters=-1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FormatVerifier(**options)


def test_a_list_of_tags_is_as_good_as_a_tuple() -> None:
    listed: Any = ["plan", "code", "answer"]
    verifier = FormatVerifier(tags=listed)
    assert verifier == FormatVerifier(tags=("plan", "code", "answer"))
    assert verifier.fingerprint == FormatVerifier(tags=("plan", "code", "answer")).fingerprint
    response = "<plan>a</plan><code>b</code><answer>c</answer>"
    assert verifier.verify(Sample(prompt="", response=response)).value == 1.0


@pytest.mark.parametrize("unit", ["<think>", "<", "< ", "<think ", "</answer>", "<think>a</think><answer>b</answer>"])
def test_a_quarter_million_characters_score_at_once(unit: str) -> None:
    assert verdict(unit * (250_000 // len(unit))) == 0.0
    assert verdict(unit * (250_000 // len(unit)), credit="fraction") == 0.0
