"""Pickles that carry the code of what the other process cannot import: `__main__`, notebooks, test files.

cloudpickle sends functions and classes of `__main__` by value, and others by name.  Here, modules can be named that
are to be sent by value too, and one that is still being imported always is: by name, pickling waits for the end of the
import, and for ever where the importing thread waits for this one.
"""

from __future__ import annotations

import functools
import gc
import io
import pickle
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

from adjudge.runtime.fork_lock import undivided
from adjudge.runtime.role import NestedPoolError


@contextmanager
def collector_paused() -> Iterator[None]:
    """Hold off automatic garbage collection, unless somebody else has.

    While a list of 40,000 samples becomes one of 40,000 scores, nothing can be garbage, and the collector's passes over
    what was just made cost as much as making it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pack(value: object, modules: Iterable[str] = ()) -> bytes:
    """Pickle a value; what `__main__` or the named modules define travels by value.

    Raises:
        Exception: whatever the value's class raises on pickling.
    """
    with undivided():  # cloudpickle's list of modules whose contents it sends is global
        packed = io.BytesIO()
        packer = _packer()(packed)
        try:
            for name in {*modules, "__mp_main__"} & sys.modules.keys():  # `__main__` of a spawned process
                packer.by_value(sys.modules[name])
            packer.dump(value)
        finally:
            packer.by_name()
    return packed.getvalue()


@functools.cache
def _packer() -> Any:
    import cloudpickle

    class Packer(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        """Sends what a module that is still being imported defines by value."""

        def __init__(self, file: io.BytesIO) -> None:
            super().__init__(file)
            self.ours: list[ModuleType] = []

        def by_value(self, module: ModuleType) -> None:
            if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                self.ours.append(module)

        def by_name(self) -> None:
            for module in self.ours:
                cloudpickle.unregister_pickle_by_value(module)

        def reducer_override(self, thing: Any) -> Any:
            if (module := _unfinished(thing)) is not None:
                self.by_value(module)
            return super().reducer_override(thing)

    return Packer


def pack_plainly(value: object) -> bytes:
    """Pickle a value by name, which is fast; by value only where that would wait for an import.

    Raises:
        Exception: whatever the value's class raises on pickling.
    """
    packed = io.BytesIO()
    try:
        _Plain(packed, pickle.HIGHEST_PROTOCOL).dump(value)
    except _UnfinishedError:
        return pack(value)
    return packed.getvalue()


class _UnfinishedError(Exception):
    """What is pickled belongs to a module that is still being imported."""


class _Plain(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        if _unfinished(thing) is not None:
            raise _UnfinishedError
        return NotImplemented


def _unfinished(thing: Any) -> ModuleType | None:
    """The module of a class or function, or the package it is in, if one of them is still being imported."""
    name = thing.__module__ if isinstance(thing, type | FunctionType) else None
    for known in (name.partition(".")[0], name) if name else ():  # pickling by name waits for these two
        module = sys.modules.get(known)
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            return module
    return None


def module_to_send(error: BaseException) -> str:
    """Return the name of the module for whose sake unpickling failed and that may be sent by value, else "".

    It is one that is not there, or one that scores something when it is imported.
    """
    if isinstance(error, ModuleNotFoundError):
        return error.name or ""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, NestedPoolError):
        cause = cause.__cause__ or cause.__context__
    trace = error.__traceback__ if cause is not None else None
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "<module>":
            return str(trace.tb_frame.f_globals["__name__"])
        trace = trace.tb_next
    return ""
