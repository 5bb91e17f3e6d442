"""What the process that runs the tests does for the process that runs the candidate: a closed list, by type.

A candidate gets at an object of the tests' only by the handle it was given: as an argument of a call, or as the result
of an operation listed here.  What may be done depends on the object:

- anything: show it, tell its truth and length, go through it, compare it;
- a function, method or class that the tests define: call it, and read its name, its docstring, its parameters, and a
  class's public attributes;
- an instance of a class that the tests define, a `SimpleNamespace`: what its class defines, and its public attributes;
  only what is not a method may be replaced;
- a mock: what the code under test does with one, but nothing that asks or configures the mock itself;
- a few types of the standard library: the methods of `_METHODS`.

Everything else is refused.  Plain data has no handle, so nothing of it can be reached: no method of a text, a number or
an array.  Modules, and functions and classes that the tests import, stay where they are, too: the candidate's process
is told their names and takes its own (`global_name`).

The file uses the standard library alone, because the sandbox's Python loads it too.
"""

from __future__ import annotations

import functools
import importlib
import operator
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from adjudge.sandbox import codec
from adjudge.sandbox.remote import ARITHMETIC, ORDER, is_remote

TESTS = "adjudge_tests"
"""The name of the module that tests without a file of their own are."""

_ANYTHING = frozenset({"str", "repr", "bool", "len", "iter", "next", "contains", "eq", "ne"})
_TOLD = ("__name__", "__qualname__", "__doc__", "__annotations__")  # of what the tests define, for `functools.wraps`
_STREAM = "read readline readlines write writelines getvalue seek tell flush close enter exit"
_HOOKS = frozenset(
    {"getitem", "setitem", "delitem", "enter", "exit", "neg", "pos", "invert", "abs", "round", "int", "float", "index"}
    | {"divmod", *ORDER}
    | {f"{way}{name}" for way in ("", "r") for name in ARITHMETIC}
)  # fmt: skip
_METHODS: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "_io._IOBase": _STREAM,
        "random.Random": "random randint randrange choice choices sample shuffle uniform gauss getrandbits seed",
        "_thread.lock": "acquire release locked enter exit",
        "_thread.RLock": "acquire release enter exit",
        "threading.Event": "set clear is_set wait",
        "queue.Queue": "put get put_nowait get_nowait empty full qsize task_done",
        "_queue.SimpleQueue": "put get put_nowait get_nowait empty qsize",
        "logging.Logger": "debug info warning error exception critical log",
        "re.Pattern": "search match fullmatch findall finditer sub subn split pattern flags",
        "re.Match": "group groups groupdict start end span getitem",
        "enum.Enum": "name value",
        "builtins.BaseException": "args",
        "builtins.mappingproxy": "get keys values items getitem",
        "builtins.generator": "send close",
    }.items()
}
_MOCK = "unittest.mock.NonCallableMock"
_HOLDERS = (list, dict, set, frozenset, bytearray, str, bytes, int, float, tuple)  # whose bound methods tests pass
_WRAPPERS = ("functools", "contextlib", "unittest.mock")  # what their decorators return calls what they are given
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_NAMED = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
    types.MethodDescriptorType, types.WrapperDescriptorType,
)  # fmt: skip
_NUMPY = frozenset({"ufunc", "_ArrayFunctionDispatcher"})  # the types of numpy's functions


class Served:
    """Says what a candidate may do with an object that it was given; `folder` is where the tests' files are."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "")

    def __call__(self, operation: str, thing: Any, arguments: Sequence[Any]) -> bool:
        """Return whether an operation is listed; of the arguments, objects are still handles."""
        if operation in _ANYTHING:
            return True
        if operation in ("call", "signature"):
            return self._calls(thing) if operation == "call" else self._tells(thing)
        kind = type(thing)
        if operation in ("getattr", "setattr"):
            name = arguments[0]
            if operation == "getattr" and name in _TOLD:
                return self._tells(thing)
            if type(name) is not str or name[:1] in ("_", ""):
                return False
            return self._has(thing, name) if operation == "getattr" else self._takes(thing, name, arguments[1])
        if isinstance(thing, type):
            return operation in ("getitem", "instance") and self.own(thing.__module__)
        if operation not in _HOOKS:
            return False
        return _is_mock(kind) or self._defines(kind, f"__{operation}__") or operation in _listed(kind)

    def _tells(self, thing: Any) -> bool:
        return isinstance(thing, type | types.FunctionType | types.MethodType) and self.own(thing.__module__)

    def own(self, module: object) -> bool:
        """Return whether a module of this name is one of the tests'."""
        if module == TESTS:
            return True
        file = getattr(sys.modules.get(module), "__file__", None) if type(module) is str else None
        return type(file) is str and file.startswith(self._folder)

    def _defines(self, kind: type, name: str) -> bool:
        return any(name in vars(base) for base in kind.__mro__ if self.own(base.__module__))

    def _calls(self, thing: Any) -> bool:
        kind = type(thing)
        if isinstance(thing, type):
            return self.own(thing.__module__)
        if kind is types.FunctionType:
            return self._runs(thing)
        if kind is types.MethodType:
            func = thing.__func__
            listed = getattr(func, "__name__", "") in _listed(type(thing.__self__))
            return listed or (type(func) is types.FunctionType and self._runs(func))
        if kind is types.BuiltinMethodType:
            owner = type(thing.__self__)
            return thing.__name__ in _listed(owner) or owner in _HOLDERS or owner.__module__ == "collections"
        if kind is functools.partial:
            return self._calls(thing.func) or _is_harmless(thing.func)
        if kind is functools._lru_cache_wrapper:
            return self._calls(thing.__wrapped__)
        return is_remote(thing) or isinstance(thing, _GETTERS) or _is_mock(kind) or self._defines(kind, "__call__")

    def _runs(self, function: types.FunctionType) -> bool:
        module = function.__globals__.get("__name__")
        if module in _WRAPPERS and (inner := getattr(function, "__wrapped__", None)) is not None:
            return self._calls(inner)
        return self.own(module)

    def _has(self, thing: Any, name: str) -> bool:
        """Return whether an attribute may be read."""
        kind = type(thing)
        if _is_mock(kind):
            return _is_free(kind, name)
        if isinstance(thing, type):
            return self._defines(thing, name)
        inside = self._made(kind) and name in getattr(thing, "__dict__", ())
        dynamic = self._defines(kind, "__getattr__") or self._defines(kind, "__getattribute__")
        return inside or dynamic or self._defines(kind, name) or name in _listed(kind)

    def _takes(self, thing: Any, name: str, value: Any) -> bool:
        """Return whether an attribute may be set: nothing that tests may call becomes the candidate's."""
        if _is_mock(type(thing)):
            return _is_free(type(thing), name) and type(value) is not codec.Handle
        return self._made(type(thing)) and not callable(getattr(thing, name, None))

    def _made(self, kind: type) -> bool:
        return kind is types.SimpleNamespace or any(self.own(base.__module__) for base in kind.__mro__)


def _listed(kind: type) -> frozenset[str]:
    return frozenset().union(*(_METHODS.get(f"{base.__module__}.{base.__qualname__}", ()) for base in kind.__mro__))


def _is_mock(kind: type) -> bool:
    return any(f"{base.__module__}.{base.__qualname__}" == _MOCK for base in kind.__mro__)


def _is_free(mock: type, name: str) -> bool:
    """Return whether a mock's attribute is not one with which tests ask or configure the mock."""
    return not hasattr(mock, name) and name != "method_calls"


def _is_harmless(function: Any) -> bool:
    module = getattr(function, "__module__", "")
    return function in (int, float, str, round, pow, max, min, sum, sorted) or module in ("_operator", "math")


def global_name(value: Any, own: Callable[[object], bool]) -> str:
    """Return "module:name" of a module, class or function that the tests import; "" for their `own`, and all else."""
    if isinstance(value, types.ModuleType):
        module, names = value.__name__, [""]
    elif isinstance(value, _NAMED) or type(value).__name__ in _NUMPY:
        home = getattr(value, "__objclass__", value)
        module = getattr(home, "__module__", None) or ("numpy" if type(value).__name__ in _NUMPY else "")
        names = [getattr(value, "__qualname__", ""), getattr(value, "__name__", "")]
    else:
        return ""
    if own(module):
        return ""
    return next((text for name in names if global_value(text := f"{module}:{name}", sys.modules) is value), "")


def global_value(text: str, loaded: dict[str, types.ModuleType] | None = None) -> Any:
    """Return what `global_name` named, or None where it is not; without `loaded` modules it is imported."""
    module, _, name = text.partition(":")
    try:
        place: Any = importlib.import_module(module) if loaded is None else loaded[module]
        return operator.attrgetter(name)(place) if name else place
    except (ImportError, KeyError, AttributeError, ValueError, TypeError):
        return None
