"""Windows leave nothing out and cut nothing short apart; documents end, however small the engine's window."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.reward_models.safety.reading import Document, Stretch, cut, halves

LETTERS = "".join(map(chr, range(0x4E00, 0x4E00 + 600)))  # all different, so a part tells its place


@given(length=st.integers(0, 600), size=st.integers(1, 200), share=st.floats(0, 0.99))
@settings(max_examples=60)
def test_what_is_no_longer_than_the_overlap_is_whole_in_a_window(length: int, size: int, share: float) -> None:
    text, overlap = LETTERS[:length], int(share * size)
    parts = cut(text, size, overlap)
    assert all(part == text[at : at + len(part)] and len(part) <= size for at, part in parts)
    short = min(max(overlap, 1), length)
    assert all(any(text[at : at + short] in part for _, part in parts) for at in range(length - short + 1))
    assert len(parts) <= max(1, -(-length // (size - overlap)))


@given(length=st.integers(2, 600), overlap=st.integers(0, 300))
@settings(max_examples=60)
def test_halves_are_shorter_and_share_the_overlap(length: int, overlap: int) -> None:
    text = LETTERS[:length]
    (_, left), (at, right) = halves(text, overlap)
    assert text.startswith(left)
    assert text[at:] == right
    assert max(len(left), len(right)) < length
    assert len(left) - at == min(overlap, length // 4)


@given(
    asked=st.integers(0, 60),
    said=st.integers(0, 60),
    fits=st.integers(1, 40),
    view=st.sampled_from(["response", "both"]),
)
@settings(max_examples=100)
def test_every_character_is_read_in_the_end(asked: int, said: int, fits: int, view: str) -> None:
    prompt, response = LETTERS[:asked], LETTERS[300 : 300 + said]
    turns = ({"role": "user", "content": prompt},) if view == "both" else ()
    document = Document.of(view, "text", turns, ({"role": "assistant", "content": response},))  # type: ignore[arg-type]
    waiting, read, seen = document.stretches(0, 8), "", set[Stretch]()
    while waiting:
        stretch = waiting.pop()
        assert stretch not in seen or not stretch.context, "it goes round in circles"
        shown = str(document.shown(stretch))
        if len(shown) <= fits + stretch.context:  # and the blank between
            read += shown
        elif stretch not in seen:
            waiting += document.shorter(stretch, 8)
        seen.add(stretch)
    assert set(response) <= set(read)
    assert view == "response" or set(prompt) <= set(read)
