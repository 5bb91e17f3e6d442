"""What was fitted once and is then plain data: a dataclass that is kept as JSON, never as a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from adjudge.options import options_of


class Saved:
    """Base of a dataclass whose fields JSON can hold; it rejects in `__post_init__` what is malformed.

    Attributes:
        called: what messages call it: "a calibration map".
    """

    called: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which `from_dict` makes an equal one."""
        data: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # type: ignore[call-overload]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_dict` wrote.

        Raises:
            ValueError: a key is unknown or missing, or a value is malformed.
        """
        known = {item.name: item.default is MISSING for item in fields(cls)}  # type: ignore[arg-type]
        required = [name for name, needed in known.items() if needed]
        return cls(**options_of(data, list(known), inside=cls.called, required=required))

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            ValueError: the file is missing or holds nothing of this kind.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{cls.called} cannot be read from {str(path)!r}: {error}") from error
        return cls.from_dict(data)
