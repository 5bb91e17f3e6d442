"""The description of the package on an index: the README with links that lead to the repository, at this version.

Hook of hatchling (`pyproject.toml`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Sets `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `readme` to the table `project`; `urls.Repository` says where files are, `version` which of them."""
        repository = metadata["urls"]["Repository"]
        text = (
            (Path(self.root) / "README.md")
            .read_text(encoding="utf-8")
            .replace("clone REPOSITORY", f"clone {repository}")
        )
        text = _RELATIVE.sub(rf"]({repository}/blob/v{metadata['version']}/\1)", text)
        text = text.replace(".png)", ".png?raw=true)")  # the picture itself, not the page about it
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
