"""numpy, imported when something of it is first used, and the types of arrays.

`adjudge` runs without numpy; who computes with arrays writes `from adjudge.statistics.arrays import Floats, np`, and
whoever lacks numpy is told so by the first call, and not by an import.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from adjudge.extras import install_hint

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
else:

    class _Numpy:
        """Stands for numpy; the first attribute that is asked for imports it."""

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            module = numpy_module()
            vars(self).update({key: value for key, value in vars(module).items() if not key.startswith("__")})
            return getattr(module, name)

    np = _Numpy()
    ArrayLike = NDArray = Floats = Ints = Bools = Any


def numpy_module() -> Any:
    """Return numpy.

    Raises:
        ImportError: it is not installed; the message names the remedy.
    """
    try:
        return importlib.import_module("numpy")
    except ImportError as error:
        raise ImportError(f"fitting strengths and regressions needs numpy; {install_hint('data')}") from error


__all__ = ["ArrayLike", "Bools", "Floats", "Ints", "NDArray", "np", "numpy_module"]
