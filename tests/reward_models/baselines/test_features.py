"""What a preference model sees: bounded, the same everywhere, and blind to length where that is asked for."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from adjudge.reward_models.baselines.features import (
    STATISTICS,
    ChatFeatures,
    FeatureOptions,
    features_of,
    sides_of,
)
from adjudge.reward_models.baselines.ngrams import characters_of, hashed, spellings, unit_row, words_of
from adjudge.reward_models.baselines.text_statistics import text_statistics
from adjudge.scoring.conformance import hostile_responses

TEXTS = {name: text for name, text in hostile_responses().items() if isinstance(text, str)}
CHAT = [{"role": "user", "content": "How are you?"}, {"role": "assistant", "content": "I am fine, thanks."}]


def test_columns_are_the_same_on_every_machine() -> None:
    """Saved weights belong to columns; whoever changes the hash must change `preference_weights.FORMAT`."""
    words = hashed(words_of("The cat sat, the CAT"), 2, bits=18, salt=1)
    letters = hashed(characters_of("caf\u00e9 \U0001f600"), 3, bits=18, salt=2)
    assert words.tolist() == [124308, 260688, 34152, 181516, 124308]
    assert letters.tolist() == [77603, 34683, 114689, 142986, 90767, 191395]


def test_ngrams_spread_over_all_columns() -> None:
    text = " ".join(hashlib.sha256(bytes([high, low])).hexdigest()[:6] for high in range(16) for low in range(256))
    columns = hashed(words_of(text), 1, bits=10, salt=1)
    counts = np.bincount(columns, minlength=1024)
    assert len(columns) == 4096
    assert ((counts - 4) ** 2 / 4).sum() < 1250  # chi-square with 1023 degrees of freedom: mean 1023, deviation 45


def test_words_and_characters_do_not_share_columns() -> None:
    one = hashed(words_of("a b c d e f g h"), 1, bits=18, salt=1)
    other = hashed(words_of("a b c d e f g h"), 1, bits=18, salt=2)
    assert not set(one.tolist()) & set(other.tolist())


def test_a_row_has_length_one_and_grows_with_the_logarithm_of_counts() -> None:
    columns, values = unit_row(np.array([7, 3, 7, 7]))
    assert columns.tolist() == [3, 7]
    assert values @ values == pytest.approx(1, abs=1e-6)
    assert values[1] / values[0] == pytest.approx(1 + np.log(3), rel=1e-6)
    assert unit_row(np.zeros(0, dtype=np.int64))[1].tolist() == []


def test_a_column_is_named_by_what_stands_in_the_text() -> None:
    tokens = words_of("Good night, good luck")
    (night, luck) = (int(hashed(words_of(text), 2, bits=18, salt=1)[0]) for text in ("night ,", "good luck"))
    assert spellings(tokens, (1, 2), [luck, night], bits=18, salt=1) == {night: "night ,", luck: "good luck"}


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_give_finite_features(name: str) -> None:
    chat = [CHAT[0], {"role": "assistant", "content": TEXTS[name]}]
    found = features_of(chat, FeatureOptions())
    assert np.isfinite(found.statistics).all()
    for columns, values in (found.words, found.characters):
        assert (np.diff(columns) > 0).all()
        assert values @ values == pytest.approx(1, abs=1e-4) or not len(values)
    assert found.empty == (not TEXTS[name].strip())


def test_statistics_come_in_the_order_of_their_names() -> None:
    assert list(text_statistics("How?", "Like so.")) == [
        name for group in STATISTICS if group not in ("arithmetic", "quantities") for name in STATISTICS[group]
    ]


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
    assert text_statistics(prompt, marked)[name] > text_statistics(prompt, plain)[name]


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
        ({"bits": 40}, "bits is 40"),
        ({"length": "shown"}, "length is 'shown'"),
        ({"length": "removed", "groups": ("layout",)}, "needs its statistics"),
        ({"words": (), "characters": (), "groups": ()}, "nothing would be seen"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureOptions(**options)  # type: ignore[arg-type]
