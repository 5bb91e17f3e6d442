"""What names the input of an evaluation again: its name, its rows, and a digest that does not change with the clock.

Not covered: inputs that are no files and no datasets.
"""

from __future__ import annotations

import hashlib
from typing import Any

from adjudge import wire
from adjudge.io.source import Source


def input_facts(source: Source, rows: int) -> dict[str, Any]:
    """Return the facts of `Result.source`.

    The digest is of each file's size and first MiB, and of what else names the input; a copy has the same one.

    Args:
        source: the input.
        rows: that were read.
    """
    identity = source.identity()
    files = {name: [file["bytes"], file["head"]] for name, file in identity.pop("files", {}).items()}
    named = {key: value for key, value in identity.items() if value and key != "name"}
    digest = hashlib.sha256(wire.dumps([files, named]).encode()).hexdigest()[:16]
    return {"name": source.name, "rows": rows, "digest": digest, **named}
