"""Every key of training files as docs/training_keys.md has them; `python -m tests.cli.keys_page` writes it anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from adjudge.cli.train import config_text, described

PAGE: Final = Path(__file__).parents[2] / "docs" / "training_keys.md"
_KEYS: Final = "\n## "  # where what is made begins
_TITLES: Final[Mapping[Any, str]] = {
    "rm": "Reward models",
    "prm": "Models of steps",
    "critique": "Critiques, then a reward",
    "policy": "Policies",
}


def page() -> str:
    """The page with the keys that there are now."""
    made = []
    for kind, title in _TITLES.items():
        made.append(f"## {title}: `adjudge train {kind}`\n")
        for which, config in described(kind).items():
            said = "" if which == "the file:" else f"{which.capitalize()}\n\n"
            made.append(f"{said}```text\n{config_text(config)}```\n")
    return PAGE.read_text(encoding="utf-8").partition(_KEYS)[0] + "\n" + "\n".join(made)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
