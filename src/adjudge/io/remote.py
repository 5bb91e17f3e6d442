"""Files that lie elsewhere (`s3://`, `gs://`, `hf://`, `memory://`, ...), fetched once and then read as local ones.

Anything that fsspec has a package for.  A file is kept in the user's cache folder, under its address and its version
there, so that an interrupted job goes on without fetching it again.

Not covered: writing, and files too large for this disk; copy those with the storage's own tools first.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import Any

from adjudge.extras import need


def is_remote(name: str) -> bool:
    """Return whether a name is an address with a protocol."""
    protocol, found, rest = name.partition("://")
    return bool(found and rest) and protocol.replace("+", "").isalnum()


def fetched(name: str) -> list[Path]:
    """Return local copies of the files that an address names: one, those of a folder, or those that a pattern fits.

    Raises:
        ValueError: fsspec or a package of it is missing, or there is nothing there that can be read.
    """
    fsspec = need("fsspec", f"reading {name}")
    try:
        files, root = fsspec.core.url_to_fs(name)
    except (ImportError, ValueError) as error:  # a package is missing, or no package has this protocol
        raise ValueError(f"{name} cannot be read: {error}") from error
    try:
        found = files.glob(root) if any(sign in root for sign in "*?[") else files.find(root)
        if not found:
            raise ValueError(f"there is nothing at {name}; check the address")
        return [_copy(files, path) for path in sorted(map(str, found))]
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error}; check the address and your credentials") from error


def _copy(files: Any, path: str) -> Path:
    """The local copy of a file, under a name that changes with its address and its version."""
    protocol = files.protocol if isinstance(files.protocol, str) else files.protocol[0]
    version = f"{protocol}://{path} {files.ukey(path)}"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adjudge" / "fetched"
    home = folder / hashlib.sha256(version.encode()).hexdigest()[:16] / PurePosixPath(path).name
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        draft = home.with_name(f"{home.name}.{os.getpid()}.partial")
        files.get_file(path, str(draft))
        draft.replace(home)
    return home
