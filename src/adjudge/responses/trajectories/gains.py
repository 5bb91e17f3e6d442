"""What the turns of a search add: evidence that is new, documents that are not.

    gain_t   = mean over gold documents g of max(0, s_tg - max_{u<t} s_ug)
    repeat_t = share of turn t's documents that came before, in an earlier turn or earlier in the same one

s_tg is the best similarity in [0, 1] of a document of turn t to gold document g, and 0 before any turn.  With s in
{0, 1} the gain is the share of gold documents that a turn finds first.  StepSearch (arXiv 2505.15107) rewards
gain - repeat; a sum of gains never passes 1, however many turns there are.

Not covered: the similarity, and what makes two documents one; scorers say both.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def evidence_gains(similarities: Sequence[Sequence[float]]) -> list[float]:
    """Return the gain of each turn, in [0, 1].

    Args:
        similarities: a row for each turn, in it a number for each gold document.

    Raises:
        ValueError: a row is empty or of another length than the first, or a number is outside [0, 1].
    """
    best = [0.0] * (len(similarities[0]) if similarities else 0)
    gains = []
    for at, row in enumerate(similarities):
        if not row or len(row) != len(best):
            raise ValueError(f"row {at} has {len(row)} similarities and the first {len(best)}; give one for each gold")
        for value in row:
            if not 0 <= value <= 1:
                raise ValueError(f"row {at} holds the similarity {value!r}; it must be between 0 and 1")
        gains.append(sum(max(0.0, value - before) for value, before in zip(row, best, strict=True)) / len(row))
        best = [max(value, before) for value, before in zip(row, best, strict=True)]
    return gains


def repeats(turns: Sequence[Sequence[Hashable]]) -> list[float]:
    """Return the share of each turn's documents that were there before; 0 for a turn without documents."""
    seen: set[Hashable] = set()
    shares = []
    for documents in turns:
        again = 0
        for document in documents:
            again += document in seen
            seen.add(document)
        shares.append(again / len(documents) if documents else 0.0)
    return shares
