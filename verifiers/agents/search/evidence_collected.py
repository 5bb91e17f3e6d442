"""The evidence that a search agent collected.

| `source` | evidence |
|---|---|
| `results` | every document that a search returned, each once |
| `quotes` | of the first 200 lines of the agent's evidence blocks those whose words stand in a row in earlier results |

An agent's own words are never evidence, nor is what another tool printed: it could write the answer down.

Not covered: whether the evidence is true.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, TypeAlias

from adjudge.responses.trajectories.searches import Search
from adjudge.responses.trajectories.trajectory import Result, Trajectory
from adjudge.verifiers.agents.search.evidence_text import identity, words

EvidenceSource: TypeAlias = Literal["results", "quotes"]

_LEAST_WORDS = 3  # of a quote; fewer words stand in a row anywhere
_MOST_QUOTES = 200  # lines that are looked for; each is a search through all results


def collected(trajectory: Trajectory, searches: Sequence[Search], source: EvidenceSource, tag: str) -> str:
    """Return the collected evidence as text, "" if there is none.

    Args:
        trajectory: where it was collected.
        searches: its searches.
        source: what counts as evidence.
        tag: the tag of evidence blocks.
    """
    if source == "results":
        found = [document for search in searches for document in search.documents()]
        documents = {identity(document): document for document in reversed(found)}
        texts = [f"{document.title}\n{document.text}".strip() for document in reversed(documents.values())]
        return "\n\n".join(text for text in texts if text)
    return "\n".join(dict.fromkeys(_quotes(trajectory, searches, tag)))


def _quotes(trajectory: Trajectory, searches: Sequence[Search], tag: str) -> list[str]:
    found: list[str] = []
    results: defaultdict[int, list[Result]] = defaultdict(list)
    for search in searches:
        results[search.turn].extend(search.results)
    returned, looked = " ", 0
    for at, turn in enumerate(trajectory.turns):
        for block in turn.tagged(tag):
            for line in block.text.splitlines():
                said = words(line)
                looked += 1
                if looked <= _MOST_QUOTES and len(said) >= _LEAST_WORDS and f" {' '.join(said)} " in returned:
                    found.append(line.strip())
        returned += "".join(f"{' '.join(words(result.text))} \n " for result in results[at])
    return found
