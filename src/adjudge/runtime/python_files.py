"""Python files as modules: `./shouting.py` is `adjudge.runtime.python_files./home/me/shouting%2Epy`.

The name says where the file lies, so what it defines can be unpickled in every process that can read it: workers, those
that multiprocessing spawns, Ray's.  Two files of one name do not meet, and no file hides a module.  Files beside it can
be imported by it; their folder goes to the end of the import path.

Not covered: a file that changes after it was imported; like any module, it is read once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from urllib.parse import quote, unquote

_PREFIX = f"{__name__}."

__path__: list[str] = []  # has Python ask for modules below this one, and no folder answers


def module_of(file: str | os.PathLike[str]) -> str:
    """Return the name to import a Python file by.

    Raises:
        ValueError: there is no such file.
    """
    path = os.path.realpath(file)
    if not os.path.isfile(path):
        raise ValueError(f"there is no file {os.fspath(file)!r}; check the path")
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is not None and os.path.realpath(script) == path:
        return "__main__"  # the running script would run a second time
    return _PREFIX + quote(path).replace(".", "%2E")


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return None
        file = unquote(fullname.removeprefix(_PREFIX))
        folder = os.path.dirname(file)
        if folder not in sys.path:
            sys.path.append(folder)
        return spec_from_file_location(fullname, file)


sys.meta_path.append(_Finder())
