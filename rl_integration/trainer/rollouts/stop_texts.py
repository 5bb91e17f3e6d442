"""Whether a piece has come to a text that ends it, asked after each of its tokens.

Decoding the whole piece every time takes time in the square of its length.  Here most tokens are passed by, since they
hold no stop text's last character, and for the others only the newest tokens are decoded: those that reach back by the
longest stop text, and one more, since decoders treat the first token of a text in ways of their own.

Not covered: stop texts with U+FFFD, which decoders write for bytes that are no character.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

_UNREADABLE = "\ufffd"
_SPARE = 4  # characters that stand for the bytes of one, where a window begins inside it


class StopTexts:
    """Texts that end a piece.

    Args:
        texts: the stop texts; none ends nothing.
        decode: returns the text of tokens, without special tokens.

    Raises:
        ValueError: a stop text is empty, or holds U+FFFD.
    """

    def __init__(self, texts: Sequence[str], decode: Callable[[Sequence[int]], str]) -> None:
        for text in texts:
            if not text or _UNREADABLE in text:
                raise ValueError(f"the stop text {text!r} cannot be looked for; give a text, without U+FFFD")
        self._texts = tuple(texts)
        self._decode = decode
        self._reach = max(map(len, texts), default=0) + _SPARE
        lasts = {text[-1] for text in texts}
        # Decoders drop spaces where a text begins, so nothing is told by a single token of stop texts that end in one.
        self._lasts = None if any(last.isspace() for last in lasts) else lasts | {_UNREADABLE}
        self._ending: dict[int, bool] = {}

    def ended(self, ids: Sequence[int]) -> bool:
        """Return whether a piece contains a stop text, if it did not without its last token.

        Args:
            ids: all tokens of the piece.
        """
        if not self._texts or not self._may_end(ids[-1]):
            return False
        width = self._reach
        while True:
            window = ids[-width:]
            text = self._decode(window)
            if self._within(text):
                return len(window) == len(ids) or self._within(self._decode(ids))
            if len(window) == len(ids) or self._reaches(text, window[0]):
                return False
            width *= 2

    def _may_end(self, token: int) -> bool:
        """Whether a token holds the last character of a stop text, or a part of a character."""
        if self._lasts is None:
            return True
        found = self._ending.get(token)
        if found is None:
            text = self._decode([token])
            found = self._ending[token] = any(last in text for last in self._lasts)
        return found

    def _within(self, text: str) -> bool:
        return any(stop in text for stop in self._texts)

    def _reaches(self, text: str, first: int) -> bool:
        """Whether a window's text, but for its first token, is as long as any stop text, and begins with a character.

        Decoders that fall back to bytes spoil a whole run of them where one is missing.
        """
        return not text.startswith(_UNREADABLE) and len(text) - len(self._decode([first])) >= self._reach
