"""The candidate's side: the program that makes the repository in the sandbox and offers its modules to the tests.

This file is sent as source, followed by a call of `_offer`.  It runs beside the candidate's modules, which may do with
it what they like; the tests believe no more than that what they get are the candidate's answers.

Names are offered as "module.name", and a module that was imported as "module:loaded".  "adjudge:touch" is data, which
the tests read before they say that something is missing: what follows from that is then the candidate's doing.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
from collections.abc import Mapping

_MADE = frozenset(
    {"__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__", "__path__"}
    | {"__spec__"}
)


def _write(files: Mapping[str, str], packed: Mapping[str, str]) -> None:
    for path in (*files, *packed):
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        content = files[path].encode("utf-8") if path in files else base64.b64decode(packed[path])
        with open(path, "wb") as file:
            file.write(content)


def _offer(text: str) -> None:
    job = json.loads(text)
    _write(job["files"], job["packed"])
    sys.dont_write_bytecode = True
    sys.modules.pop("solution", None)  # this program's name, which one of the modules may have
    sys.path[:0] = [os.path.abspath(root) for root in job["roots"]]
    importlib.invalidate_caches()
    for name in job["wanted"]:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 the tests that import it fail
            sys.modules.pop(name, None)
    offered = globals()
    raised: dict[str, type[BaseException]] = {}
    offered["adjudge:touch"] = True
    for name in job["modules"]:
        module = sys.modules.get(name)
        if module is None:
            continue
        offered[f"{name}:loaded"] = _write
        for key, value in list(vars(module).items()):
            if key in _MADE or isinstance(value, type(sys)):
                continue
            offered[f"{name}.{key}"] = value
            if isinstance(value, type) and issubclass(value, BaseException) and value.__name__ == key:
                raised.setdefault(key, value)  # what is raised is known by this name
    for key in sorted(raised, key=lambda key: len(raised[key].__mro__)):  # what is above others comes first
        offered.setdefault(key, raised[key])
