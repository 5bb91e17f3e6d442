"""What commands with several kinds of work share: a table of kinds, of which nothing is imported until asked."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from adjudge.extras import install_hint

K = TypeVar("K")


def imported(path: str, extra: str) -> Any:
    """Return what "module:name" names.

    Args:
        path: where it is.
        extra: of the package, which brings what it needs.

    Raises:
        ValueError: a package that it needs is not installed.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"this kind needs {error.name!r}, which is not here; install what it needs with: {install_hint(extra)}"
        ) from error


def kind_named(name: str, kinds: Mapping[str, K], of_what: str) -> K:
    """Return a kind by its name.

    Raises:
        ValueError: there is none; the message names the nearest one, and all.
    """
    if name in kinds:
        return kinds[name]
    near = difflib.get_close_matches(name.replace("-", "_"), kinds, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"there is no kind {name!r} of {of_what}.{hint} The kinds are: {', '.join(kinds)}.")
