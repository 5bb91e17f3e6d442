"""Runs first in each Python process that finds this folder: it has the packages named in ADJUDGE_TEST_WITHOUT no more.

transformers imports scikit-learn and TRL imports vLLM wherever they are installed, which takes seconds in each process.
Both also read the lists of all installed files, for the names of distributions that are called like their packages.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys

for _name in filter(None, os.environ.get("ADJUDGE_TEST_WITHOUT", "").split(",")):
    sys.modules[_name] = None  # type: ignore[assignment]  # as `importlib` says that there is no such module


class _SameNames(dict[str, list[str]]):
    def __missing__(self, package: str) -> list[str]:
        return [package]


importlib.metadata.packages_distributions = _SameNames
