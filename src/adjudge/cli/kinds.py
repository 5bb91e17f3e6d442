"""What commands with several kinds of work have in common: a table of kinds, of which nothing is imported until asked.

Not covered: the kinds themselves (`data_kinds`, `eval_kinds`), and their flags (`config_flags`).
"""

from __future__ import annotations

import importlib
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
