"""The rows of the corpora that the environment variable `ADJUDGE_DATA` names, and boxed answers in them."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any


def place(*parts: str) -> Path:
    """Return the path of a file or folder of the corpora; ends the program where `ADJUDGE_DATA` is not set."""
    data = os.environ.get("ADJUDGE_DATA")
    if not data:
        sys.exit(f"ADJUDGE_DATA is not set: point it to the folder of corpora that holds {'/'.join(parts)}")
    return Path(data, *parts)


def rows(*parts: str) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines or of one JSON list, packed by gzip or not."""
    path = place(*parts)
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    if path.name.endswith(".json"):
        found: list[dict[str, Any]] = json.loads(content)
        return found
    return [json.loads(line) for line in content.splitlines()]


def last_boxed(text: str) -> str:
    r"""Return what the last `\boxed{..}` of a text holds, by counting braces.

    Raises:
        ValueError: there is no box.
    """
    start = text.rindex("\\boxed{") + len("\\boxed{")
    depth = 1
    for end in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    return text[start:]


def bare(gold: str) -> str:
    """Return a gold without the dollars around the whole of it."""
    text = gold.strip()
    dollars = len(text) > 2 and text[0] == text[-1] == "$" and "$" not in text[1:-1]
    return text[1:-1] if dollars else text


def boxed(gold: str) -> str:
    """Return a gold as a response: boxed, without the dollars around the whole of it."""
    return f"Therefore the answer is $\\boxed{{{bare(gold)}}}$."
