"""Stand-ins for objects of the other process.

A `Remote` asks for what is done with it.  Where the tests run, an expected value must not travel that way: a comparison
or an arithmetic operation is asked for only if both sides are objects of classes that the tests name.  The end of a
candidate has nothing to hide (`Peer.trusting`) and asks for all.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: asynchronous
callables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from adjudge.verifiers.execution import codec

T = TypeVar("T")

_PROBES = ("_mock_name", "_pytestfixturefunction")  # what pytest asks of whatever a test file imports
ARITHMETIC = tuple("add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split())
"""Binary operators that have a reflected form."""
ORDER = ("lt", "le", "gt", "ge")


class Remote:
    """An object of the other process.

    Args:
        peer: this end of the connection, an `adjudge.verifiers.execution.peer.Peer`.
        handle: what the other end knows the object by.
    """

    __slots__ = ("_handle", "_peer")
    _handle: codec.Handle
    _peer: Any

    def __init__(self, peer: Any, handle: codec.Handle) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_handle", handle)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call it over there."""
        return _ask(self, "call", *arguments, keywords=keywords)

    def __getattr__(self, name: str) -> Any:
        if name in _PROBES or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return _ask(self, "getattr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "setattr", name, value)

    def __getitem__(self, key: Any) -> Any:
        return _ask(self, "getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _ask(self, "setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        _ask(self, "delitem", key)

    def __iter__(self) -> Iterator[Any]:
        over = _ask(self, "iter")
        return iter(over) if not isinstance(over, Remote) else _Steps(over)

    def __next__(self) -> Any:
        return _ask(self, "next")

    def __contains__(self, value: Any) -> bool:
        if _peer(self).trusting:
            return bool(_ask(self, "contains", value))
        return any(item is value or item == value for item in self)  # here, so that the value stays here

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and _plain(_ask(self, "instance", value), bool)

    def __len__(self) -> int:
        return _plain(_ask(self, "len"), int)

    def __bool__(self) -> bool:
        return _plain(_ask(self, "bool"), bool)

    def __int__(self) -> int:
        return _plain(_ask(self, "int"), int)

    def __index__(self) -> int:
        return _plain(_ask(self, "index"), int)

    def __float__(self) -> float:
        return _plain(_ask(self, "float"), float)

    def __str__(self) -> str:
        return _plain(_ask(self, "str"), str)

    def __repr__(self) -> str:
        return _plain(_ask(self, "repr"), str)

    def __hash__(self) -> int:
        return handle_of(self).number

    def __neg__(self) -> Any:
        return _ask(self, "neg")

    def __abs__(self) -> Any:
        return _ask(self, "abs")

    def __enter__(self) -> Any:
        return _ask(self, "enter")

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        """End a block; an error of the tests' is told, and never taken away by what the candidate answers."""
        peer = _peer(self)
        answer = _ask(self, "exit", *(() if error is None else peer.described(error)))
        return peer.trusting and answer is True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Remote) and handle_of(self) == handle_of(other):
            return True
        return _comparable(self, other) and _plain(_ask(self, "eq", other), bool)

    def __ne__(self, other: object) -> bool:
        return not self == other


class _Steps:
    def __init__(self, over: Remote) -> None:
        self._over = over

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._over)


def handle_of(remote: Remote) -> codec.Handle:
    """Return what the other end knows an object by."""
    return object.__getattribute__(remote, "_handle")  # type: ignore[no-any-return]


def _peer(remote: Remote) -> Any:
    return object.__getattribute__(remote, "_peer")


def _ask(remote: Remote, operation: str, *arguments: Any, keywords: dict[str, Any] | None = None) -> Any:
    return _peer(remote).request(operation, handle_of(remote), *arguments, keywords=keywords)


def _plain(value: Any, kind: type[T]) -> T:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _comparable(one: Remote, other: Any) -> bool:
    peer = _peer(one)
    if peer.trusting:
        return True
    return isinstance(other, Remote) and handle_of(one).kind in peer.named and handle_of(other).kind in peer.named


def _binary(operation: str) -> Callable[[Remote, Any], Any]:
    def method(self: Remote, other: Any) -> Any:
        return _ask(self, operation, other) if _comparable(self, other) else _refused(self)

    return method


def _reflected(operation: str) -> Callable[[Remote, Any], Any]:
    def method(self: Remote, other: Any) -> Any:
        return _ask(self, operation, other) if _peer(self).trusting else _refused(self)

    return method


def _refused(remote: Remote) -> Any:
    """Say no, and note it: an object where a number is asked for is the other end's doing."""
    _peer(remote).received += 1
    return NotImplemented


for _name in (*ARITHMETIC, *ORDER, "divmod"):
    setattr(Remote, f"__{_name}__", _binary(_name))
for _name in (*ARITHMETIC, "divmod"):
    setattr(Remote, f"__r{_name}__", _reflected(f"r{_name}"))
