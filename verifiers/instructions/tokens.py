"""Words and marks of English text, parted where the published checkers of IFEval and IFBench part them.

Those use NLTK's Treebank tokenizer: marks are tokens of their own, "don't" is "do" and "n't", "it's" is "it" and "'s",
and only the period at the end of a sentence leaves its word.

Not covered: the names that tokenizer gives to quotation marks (they stay as written here).
"""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = r";@#$%&?!*\[\](){}<>«»“”„‘’\""
_PIECE = re.compile(
    rf"\.{{2,}}|--|[{_MARK}]|`+|[:,](?!\d)|(?:(?!\.\.|--|[:,](?!\d))[^{_MARK}`\s])+"
)  # each alternative begins with another character, so no text is read twice
_CLITIC = re.compile(r"(?i)(?<=[^'])(n't|'ll|'re|'ve|'s|'m|'d|')\Z")
_FINAL = re.compile(r"(?<=[^.])\.(?=[\])}>\"'»”’ ]*\Z)")
_JOINED: Final = {"cannot": 3, "gimme": 3, "gonna": 3, "gotta": 3, "lemme": 3, "wanna": 3}


def tokens(sentence: str) -> list[str]:
    """Return the tokens of one sentence."""
    final = _FINAL.search(sentence, max(0, len(sentence) - 20))
    if final:
        sentence = f"{sentence[: final.start()]} . {sentence[final.end() :]}"
    found: list[str] = []
    for piece in _PIECE.findall(sentence):
        if "'" in piece and len(piece) > 1:
            found += _parted(piece)
        elif len(piece) in (5, 6) and piece.lower() in _JOINED:
            found += [piece[:3], piece[3:]]
        else:
            found.append(piece)
    return found


def _parted(piece: str) -> list[str]:
    clitic = _CLITIC.search(piece, max(0, len(piece) - 4))
    return [piece[: clitic.start()], piece[clitic.start() :]] if clitic and clitic.start() else [piece]
