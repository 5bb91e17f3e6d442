"""What the package's extras bring: how one is installed, and importing what needs one.

Not covered: system packages (compilers, simulators).
"""

from __future__ import annotations

import importlib
from typing import Any


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, from an index or from a checkout."""
    return f"pip install 'adjudge[{extra}]' (in a checkout: pip install '.[{extra}]')"


def need(module: str, purpose: str, extra: str = "data") -> Any:
    """Return a module that an extra brings.

    Args:
        module: dotted name.
        purpose: what it is needed for, as the error says it.
        extra: of the package.

    Raises:
        ValueError: it, or what it imports, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{purpose} needs the package {error.name!r}; install it with: {install_hint(extra)}"
        ) from error
