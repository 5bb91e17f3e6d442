"""What a Ray worker is told: plain data, so that a worker of another version can still say that it is one.

Not covered: secrets and environment variables.  A worker has those of its machine.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

Order: TypeAlias = dict[str, Any]
"""Plain data:

- `spec`: the text of a scorer's spec; a spec file is read here, because other machines may not have it;
- `base`: the folder that relative file names in the spec start from;
- `scorer`: a pickled scorer in place of a spec, or None;
- `folder`: the working folder of the job, from which relative names in samples start;
- `path`: where this process finds modules;
- `cache`: absolute path of the score cache, or "";
- `processes`: worker processes for verifiers;
- `timings`: whether seconds are written;
- `versions`: of adjudge and Python.
"""

_FILE_ENDINGS = (".yaml", ".yml", ".json")


def versions() -> dict[str, str]:
    """Return the versions that must be the same on both sides; Ray compares its own."""
    return {"adjudge": version("adjudge"), "Python": platform.python_version()}


def order_for(spec: Any, *, cache: str, processes: int, timings: bool) -> Order:
    """Return the order for one scorer.

    Args:
        spec: the text of a spec, the path of a spec file, or a scorer as an object.
        cache: file of the score cache, or "".
        processes: worker processes for verifiers, in each Ray worker.
        timings: whether seconds are written.

    Raises:
        ValueError: the file cannot be read, or the object cannot be pickled.
    """
    text, base = _text_and_base(spec) if isinstance(spec, str) else ("", ".")
    return {
        "spec": text,
        "base": os.path.abspath(base),
        "scorer": None if isinstance(spec, str) else _packed(spec),
        "folder": os.getcwd(),
        "path": [os.path.abspath(entry) for entry in sys.path],
        "cache": os.path.abspath(cache) if cache else "",
        "processes": processes,
        "timings": timings,
        "versions": versions(),
    }


def _text_and_base(spec: str) -> tuple[str, Path]:
    text = spec.strip()
    if not text.endswith(_FILE_ENDINGS) or "\n" in text:
        return text, Path()
    try:
        return Path(text).read_text(encoding="utf-8"), Path(text).parent
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ValueError(f"the spec file {text!r} cannot be read: {problem}; check the path") from error


def _packed(scorer: object) -> bytes:
    from adjudge.runtime.packing import pack

    try:
        return pack(scorer)
    except Exception as error:
        raise ValueError(
            f"the scorer {scorer!r} cannot be sent to Ray workers ({type(error).__name__}: {error}); give it as a spec"
        ) from error
