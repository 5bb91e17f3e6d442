"""Lossless JSON for the data that samples and scores carry.

JSON has no tuples, sets, bytes, non-finite floats, fractions or non-string keys, and references do.  Values
JSON can hold are written as they are; the others become `{"$adjudge": KIND, "value": ...}`.  A mapping that
happens to have the key `$adjudge` is wrapped too, so nothing read back is ever taken for a tag by mistake.
No pickle, no class names: reading never runs code.

Not covered: arbitrary objects.  They raise `TypeError` naming the path to the value.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Never

TAG = "$adjudge"
_BIG_INT_BITS = 4096  # CPython refuses to print integers beyond 4300 digits (about 14,000 bits)


def encode(value: Any, path: str = "value") -> Any:
    """Return `value` as plain JSON data.

    Args:
        value: str, int, float, bool, None, list, tuple, set, frozenset, bytes, complex, Decimal, Fraction,
            or a mapping of these.  Subclasses of float and int are stored as their base type, and what has `tolist`
            (numbers and arrays of NumPy, tensors) as the numbers and lists that it gives.
        path: how error messages name the value.

    Raises:
        TypeError: the value, or something inside it, is of another type.
    """
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() < _BIG_INT_BITS else {TAG: "int", "value": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {TAG: "float", "value": repr(float(value))}
    if isinstance(value, Mapping):
        if TAG not in value and all(isinstance(key, str) for key in value):
            return {key: encode(item, f"{path}[{key!r}]") for key, item in value.items()}
        pairs = [[encode(key, f"{path} key"), encode(item, f"{path} item")] for key, item in value.items()]
        return {TAG: "map", "value": pairs}
    if isinstance(value, list):
        return [encode(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return _encode_tagged(value, path)


def _encode_tagged(value: Any, path: str) -> Any:
    if isinstance(value, tuple):
        return {TAG: "tuple", "value": [encode(item, f"{path}[{index}]") for index, item in enumerate(value)]}
    if isinstance(value, set | frozenset):
        items = [encode(item, f"{path} member") for item in value]
        items.sort(key=lambda item: json.dumps(item, sort_keys=True))
        return {TAG: "frozenset" if isinstance(value, frozenset) else "set", "value": items}
    if isinstance(value, bytes | bytearray):
        return {TAG: "bytes", "value": base64.b64encode(value).decode("ascii")}
    if isinstance(value, complex):
        return {TAG: "complex", "value": [repr(value.real), repr(value.imag)]}
    if isinstance(value, Decimal):
        return {TAG: "decimal", "value": str(value)}
    if isinstance(value, Fraction):
        return {TAG: "fraction", "value": [encode(value.numerator), encode(value.denominator)]}
    if callable(listed := getattr(value, "tolist", None)) and type(plain := listed()) is not type(value):
        return encode(plain, path)
    raise TypeError(
        f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which JSON cannot hold; "
        "use plain data (str, numbers, lists, tuples, sets, bytes, dicts)"
    )


def decode(value: Any) -> Any:
    """Return what `encode` was given.

    Raises:
        ValueError: a tagged value is malformed or of an unknown kind.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decode(item) for key, item in value.items()}
    kind, body = value[TAG], value.get("value")
    try:
        return _decode_tagged(kind, body)
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise ValueError(f"malformed {TAG} value of kind {kind!r}: {error}") from error


def _decode_tagged(kind: Any, body: Any) -> Any:
    match kind:
        case "int":
            return int(body, 16)
        case "float":
            return float(body)
        case "map":
            return {decode(key): decode(item) for key, item in body}
        case "tuple":
            return tuple(decode(item) for item in body)
        case "set":
            return {decode(item) for item in body}
        case "frozenset":
            return frozenset(decode(item) for item in body)
        case "bytes":
            return base64.b64decode(body, validate=True)
        case "complex":
            return complex(float(body[0]), float(body[1]))
        case "decimal":
            return Decimal(body)
        case "fraction":
            return Fraction(decode(body[0]), decode(body[1]))
    raise ValueError("unknown kind")


def no_constant(name: str) -> Never:
    """Refuse NaN and infinity, as the `parse_constant` of `json`."""
    raise ValueError(f"{name} is not JSON")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, or refuse one that has a key twice, as the `object_pairs_hook` of `json`."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a key twice")
    return members


def dumps(value: Any) -> str:
    """Return `value` as one canonical line of JSON: sorted keys, no spaces, ASCII (lone surrogates survive)."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes) -> Any:
    """Return the value that `dumps` wrote."""
    return decode(json.loads(text))


def json_in(text: Any) -> Any:
    """Return the list or the object whose JSON text this is; None for anything else."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def object_in(reference: Any) -> Any:
    """Return the object, or list of objects, whose JSON text a reference is; None for any other reference.

    Rows of files are read that way; where a reference counts as it is, such a text is mostly a mistake.
    """
    read = json_in(reference)
    listed = isinstance(read, list) and read and all(isinstance(item, dict) for item in read)
    return read if isinstance(read, dict) or listed else None


def json_hint(reference: Any) -> str:
    """Return what is to be said of a reference that is the JSON text of an object; "" for any other."""
    if (read := object_in(reference)) is None:
        return ""
    what, itself = ("a list of objects", "list") if isinstance(read, list) else ("an object", "object")
    return f"the reference is the JSON text of {what}; give the {itself} itself (adjudge score: --reference-json)"
