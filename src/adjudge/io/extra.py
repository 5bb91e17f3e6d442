"""Import of the packages that come with `adjudge[data]`."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, purpose: str) -> Any:
    """Return a module of the extra.

    Args:
        module: dotted name.
        purpose: what it is needed for, as an error says it.

    Raises:
        ValueError: the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{purpose} needs the package {error.name!r}; install it with: pip install 'adjudge[data]'"
        ) from error
