"""A Ray of this process's own, on this machine."""

from __future__ import annotations

from typing import Any, Final

_TRIES: Final = 3
_SLOW: Final = "timed out during startup"


def start_ray(ray: Any, **options: Any) -> None:
    """Start one and join it, anew where a busy machine did not bring it up within Ray's half a minute, twice at most.

    Args:
        ray: the package.
        options: for `ray.init`.
    """
    for left in reversed(range(_TRIES)):
        try:
            ray.init("local", include_dashboard=False, **options)  # without a name it joins one that it finds
        except Exception as error:  # Ray's own has no class of its own
            ray.shutdown()
            if not left or _SLOW not in str(error):
                raise
        else:
            return
