"""What a preference model sees: bounded, the same everywhere, and blind to length where that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from adjudge.reward_models.baselines.features import GROUPS, FeatureOptions, features_of, sides_of, values_in
from adjudge.reward_models.baselines.linear import Seen, hashed
from adjudge.reward_models.baselines.preference_model import ChatFeatures
from adjudge.scoring.conformance import hostile_responses

TEXTS = {name: text for name, text in hostile_responses().items() if isinstance(text, str)}
COLUMNS = [174402, 3848, 250118]
TWO = ("", "It is 3 + 4 = 7.\n\nThe answer is 7.")
CHAT = [{"role": "user", "content": "How are you?"}, {"role": "assistant", "content": "I am fine, thanks."}]


def seen(*words: str) -> Seen:
    return Seen(terms={"words": words}, values={})


def test_columns_are_the_same_on_every_machine() -> None:
    """Saved weights belong to columns; where the hash changes, `linear.FORMAT` must."""
    columns = [
        int(hashed([seen(word)], ["words"], 18)[0].indices[0]) for word in ("the cat", "caf\u00e9", "\U0001f600")
    ]
    assert columns == COLUMNS


def test_a_row_has_length_one_and_grows_with_the_logarithm_of_counts() -> None:
    (matrix,) = hashed([seen("a", "b", "b", "b"), seen()], ["words"], 18)
    values = sorted(matrix.data)
    assert values[1] / values[0] == pytest.approx(1 + np.log(3), rel=1e-6)
    assert values[0] ** 2 + values[1] ** 2 == pytest.approx(1, abs=1e-6)


def test_a_text_is_cut_into_ngrams() -> None:
    found = features_of([CHAT[0], {"role": "assistant", "content": "Ab,  c"}], FeatureOptions(characters=(6,)))
    assert found.terms == {"words": ["ab", ",", "c", "ab ,", ", c"], "characters": [" ab, c", "ab, c "]}


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_give_finite_features(name: str) -> None:
    chat = [CHAT[0], {"role": "assistant", "content": TEXTS[name]}]
    found = features_of(chat, FeatureOptions())
    assert np.isfinite(found.row).all()
    for matrix in hashed([found], list(found.terms), 18) if len(TEXTS[name]) <= 200_000 else ():
        assert matrix.data @ matrix.data == pytest.approx(1, abs=1e-4) or not len(matrix.data)


def test_values_have_the_same_names_for_every_text() -> None:
    empty, other = (features_of([CHAT[0], {"role": "assistant", "content": text}], FeatureOptions()) for text in TWO)
    assert tuple(empty.values) == GROUPS
    assert empty.names == other.names


def shown(prompt: str, response: str) -> dict[str, float]:
    return {name: value for group in values_in(prompt, response).values() for name, value in group.items()}


@pytest.mark.parametrize(
    ("name", "plain", "marked"),
    [
        ("listed lines", "one\ntwo", "- one\n- two"),
        ("headings", "Title\ntext", "# Title\ntext"),
        ("bold", "very good", "**very** good"),
        ("code block", "x = 1", "```\nx = 1\n```"),
        ("ends open", "That is all.", "That is all and"),
        ("repeated lines", "one\ntwo", "one\none"),
        ("questions", "It is so.", "Is it so?"),
        ("refusal", "Here you go.", "I can\u2019t do that."),
        ("refusal first", "Sure, here.", "I cannot say."),
        ("prompt words used", "Nothing.", "The weather."),
        ("non-ASCII", "cafe", "caf\u00e9"),
    ],
)
def test_a_mark_shows_in_its_statistic(name: str, plain: str, marked: str) -> None:
    prompt = "How is the weather?"
    assert shown(prompt, marked)[name] > shown(prompt, plain)[name]


@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        (CHAT, ("How are you?", "I am fine, thanks.")),
        (
            [*CHAT, {"role": "user", "content": "Really?"}, {"role": "assistant", "content": " Yes. "}],
            ("Really?", "Yes."),
        ),
        ([{"role": "assistant", "content": "Hello"}], ("", "Hello")),
        ([{"role": "system", "content": "Be brief"}, {"role": "assistant", "content": "Hello"}], ("Be brief", "Hello")),
        (
            [CHAT[0], *({"role": role, "content": role} for role in ("assistant", "tool", "assistant"))],
            ("How are you?", "assistant\nassistant"),
        ),
    ],
    ids=["one turn", "the last question counts", "no question", "a system turn", "tools are not graded"],
)
def test_sides_of_a_chat(chat: list[dict[str, str]], expected: tuple[str, str]) -> None:
    assert sides_of(chat) == expected


def test_features_are_computed_once() -> None:
    chats = ChatFeatures(FeatureOptions(bits=10))
    first = chats.number("How?", "So.")
    assert chats.number("How?", "So.") == first
    assert chats.number([{"role": "user", "content": "How?"}], "So.") != first
    assert chats[first] is chats[first]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": (0,)}, "words is"),
        ({"characters": (3, 3)}, "characters is"),
        ({"groups": ("colour",)}, "groups is"),
        ({"bits": 40}, "bits=40"),
        ({"length": "shown"}, "length='shown'"),
        ({"length": "removed", "groups": ("layout",)}, "needs its values"),
        ({"words": (), "characters": (), "groups": ()}, "nothing would be seen"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureOptions(**options)  # type: ignore[arg-type]
