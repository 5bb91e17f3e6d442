"""Arguments of calls: which values are data, when one is the one that was asked for, and what a tool's schema allows.

An expected value is data, or a choice: `{"any_of": [..]}`, any one of these, and with `"optional": true` an argument or
a key that may be left out.  Choices may stand at any depth.

A tool is `{"name": .., "parameters": {..}}`, or the OpenAI form with that under "function".  Types are strict: `true`
is not a number, and 5.0 no "integer"; any number is a "number".  Arguments that the schema does not name are refused,
unless its "additionalProperties" says otherwise.  BFCL's names of types ("dict", "float", "tuple", "any") are
understood.  Schemas are checked by `jsonschema` (the extra `tasks`), which fetches nothing here: a `$ref` must stand in
the schema.

Between tags a value has no type: `<parameter=zip>75001</parameter>` is a text where the schema or the reference wants
one, and a number where it wants that.

Not covered: "format", which is an annotation in JSON Schema; expecting a mapping whose only keys are "any_of" and
"optional", which is always read as a choice.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, Literal, TypeAlias

from adjudge.extras import install_hint
from adjudge.responses.answer_span import shorten
from adjudge.responses.trajectories.reading import read_json
from adjudge.scoring.bad_reference import ReferenceFormError
from adjudge.scoring.reference_fields import shown
from adjudge.verifiers.logic.literal import LiteralError, read_unambiguous

Strings: TypeAlias = Literal["exact", "normal"]

MAX_DEPTH: Final = 64
MAX_ALLOWED: Final = 512
_LARGEST: Final = 10**300  # so that every number has a float
_CHOICE: Final = frozenset({"any_of", "optional"})
_BLANKS: Final = re.compile(r"\s+")
_PYTHON: Final = re.compile(r"\s*(?:[\[({]|(?:True|False|None)\s*\Z)")  # the rest is a text, or the same in JSON
_AROUND: Final = re.compile(r" ?([,./*^_-]) ?")


class NotDataError(ValueError):
    """A value that no JSON text can hold, or that is beyond the limits."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """An argument between tags, which do not say of what type it is: what it may mean, the text itself last."""

    readings: tuple[Any, ...]


def spelled(text: str) -> Any:
    """Return what a text between tags means: the text alone, or what it is in JSON or Python as well."""
    value, fault = read_json(text)
    try:
        if fault:
            value = read_unambiguous(text) if _PYTHON.match(text) else text
        return text if isinstance(value, str) else Spelled((data(value), text))
    except (LiteralError, NotDataError):
        return text


def narrowed(arguments: Mapping[str, Any], allows: Callable[[str, Any], bool]) -> dict[str, Any]:
    """Return arguments that mean what their parameters allow; if these allow nothing of it, whatever they may."""
    made = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, Spelled):
            left = tuple(one for one in value.readings if allows(name, one)) or value.readings
            made[name] = Spelled(left) if left[1:] else left[0]
    return made


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the likeliest meaning of each."""
    return {name: value.readings[0] if isinstance(value, Spelled) else value for name, value in arguments.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """When two values are the same: numbers may differ by the relative `tolerance` if one of them is a float.

    Where a schema has judged the types (`typed`), 5.0 is 5; else a whole number is asked for where one is expected.
    """

    tolerance: float = 0.0
    typed: bool = False

    def same(self, expected: Any, offered: Any) -> bool:
        """Return whether a value is the expected one, or one of a choice."""
        if isinstance(offered, Spelled):
            return any(self.same(expected, one) for one in offered.readings)
        if is_choice(expected):
            return any(self.same(one, offered) for one in expected["any_of"])
        if isinstance(expected, bool) or isinstance(offered, bool) or expected is None or offered is None:
            return expected is offered
        if isinstance(expected, int | float):
            return isinstance(offered, int | float) and self._close(expected, offered)
        if isinstance(expected, str):
            return isinstance(offered, str) and expected == offered
        if isinstance(expected, list):
            return (
                isinstance(offered, list)
                and len(expected) == len(offered)
                and all(self.same(one, other) for one, other in zip(expected, offered, strict=True))
            )
        return isinstance(offered, dict) and self.same_mapping(expected, offered)

    def same_mapping(self, expected: Mapping[str, Any], offered: Mapping[str, Any]) -> bool:
        """Return whether a mapping has the expected values, nothing else, and nothing less but what is optional."""
        if not offered.keys() <= expected.keys():
            return False
        return all(
            self.same(value, offered[name]) if name in offered else is_choice(value) and value.get("optional", False)
            for name, value in expected.items()
        )

    def _close(self, expected: float, offered: float) -> bool:
        if not self.typed and isinstance(expected, int) and isinstance(offered, float):
            return False
        if expected == offered:
            return True
        if isinstance(expected, int) and isinstance(offered, int):
            return False
        return math.isclose(expected, offered, rel_tol=self.tolerance)


def normal(value: Any) -> Any:
    """Return data, what it may mean, or what is expected of it, with every text but keys as `normal_text` has it."""
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, Spelled):
        return Spelled(tuple(map(normal, value.readings)))
    if isinstance(value, Mapping):
        return {name: normal(item) for name, item in value.items()}
    return value


def normal_text(text: str) -> str:
    """Return a text without case, the kind of quotes, the amount of white space, and blanks beside `, . / * ^ _ -`."""
    plain = _BLANKS.sub(" ", text.casefold()).strip()
    for quote in "'`‘’“”":
        plain = plain.replace(quote, '"')
    return _AROUND.sub(r"\1", plain)


def is_choice(value: Any) -> bool:
    """Return whether an expected value is a choice."""
    return isinstance(value, Mapping) and "any_of" in value and value.keys() <= _CHOICE


def allowed(expected: Any) -> list[Any]:
    """Return the values that an expected one allows; if they are more than `MAX_ALLOWED`, one more than that."""
    ways: Iterator[Any]
    if is_choice(expected):
        ways = itertools.chain.from_iterable(map(allowed, expected["any_of"]))
    elif isinstance(expected, dict):
        ways = (
            dict(pair for pair in pairs if pair)
            for pairs in itertools.product(*(_pairs(name, value) for name, value in expected.items()))
        )
    elif isinstance(expected, list):
        ways = map(list, itertools.product(*map(allowed, expected)))
    else:
        return [expected]
    return list(itertools.islice(ways, MAX_ALLOWED + 1))


def _pairs(name: str, expected: Any) -> list[tuple[str, Any] | tuple[()]]:
    left_out: list[tuple[()]] = [()] if is_choice(expected) and expected.get("optional", False) else []
    return [*left_out, *((name, value) for value in allowed(expected))]


def data(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON holds it, tuples as lists, if it is finite, not nested too deeply, and within 1e300."""
    if depth > MAX_DEPTH:
        raise NotDataError(f"it is nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        if not -_LARGEST < value < _LARGEST:  # NaN is not between them either
            raise NotDataError("a number is not finite, or beyond 1e300")
        return value
    if isinstance(value, list | tuple):
        return [data(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise NotDataError("the keys of a mapping must be texts")
        return {name: data(item, depth + 1) for name, item in value.items()}
    raise NotDataError(f"a {type(value).__name__} is not JSON data")


def check_choices(expected: Any) -> None:
    """Raise `NotDataError` if a choice offers nothing, or says neither true nor false to being optional."""
    if is_choice(expected):
        options = expected["any_of"]
        if not isinstance(options, list) or not options:
            raise NotDataError('"any_of" must be a list that is not empty')
        if type(expected.get("optional", False)) is not bool:
            raise NotDataError('"optional" must be true or false')
        expected = options
    for item in expected.values() if isinstance(expected, dict) else expected if isinstance(expected, list) else ():
        check_choices(item)


_REMEDY: Final = f"schemas of tools need jsonschema, which is not installed; {install_hint('tasks')}"
_TYPES: Final = {"dict": "object", "float": "number", "tuple": "array"}
_ONE: Final = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_SEVERAL: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


class NoSchemasError(RuntimeError):
    """The package that checks schemas is missing."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools by name; each value has the `iter_errors` of jsonschema."""

    validators: Mapping[str, Any]

    def fault(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return why a call is not valid, or ""."""
        validator = self.validators.get(name)
        if validator is None:
            return f"there is no tool {shown(name)}"
        try:
            error = next(validator.iter_errors(plain(arguments)), None)
        except (RecursionError, OverflowError):
            return "the arguments are beyond what the schema's checker can take"
        return "" if error is None else shorten(str(error.message))

    def allows(self, name: str, argument: str, value: Any) -> bool:
        """Return whether the schema of a tool finds no fault with the value of one argument."""
        if name not in self.validators:
            return True
        try:
            errors = self.validators[name].iter_errors({argument: value})
            return not any(error.path and error.path[0] == argument for error in errors)
        except (RecursionError, OverflowError):
            return False


def read_tools(given: Any) -> Tools:
    """Return the tools of a reference; `NoSchemasError` if `jsonschema` is not installed."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise ReferenceFormError('"tools" must be a list of tools that is not empty')
    return _read(json_text(list(given), '"tools"'))


def json_text(value: Any, what: str) -> str:
    """Return a value as JSON; `what` it is, is told where that cannot be."""
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise ReferenceFormError(f"{what}: no JSON data: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__}; give texts, numbers, true, false, null, lists and mappings")


@lru_cache(maxsize=256)
def _read(text: str) -> Tools:
    make, wrong = _checker()
    validators: dict[str, Any] = {}
    for at, tool in enumerate(json.loads(text)):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not name:
            raise ReferenceFormError(f'tool {at} needs a "name", and "parameters" as a JSON schema')
        if name in validators:
            raise ReferenceFormError(f"two tools are named {name!r}; names tell them apart")
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        if not isinstance(schema, dict):
            raise ReferenceFormError(f"the parameters of {name!r} are not JSON schema")
        schema = {"additionalProperties": False, **_standard(schema)}
        try:
            validators[name] = make(schema)
        except wrong as error:
            raise ReferenceFormError(
                f"the schema of {name!r} is none: {getattr(error, 'message', error)}"[:300]
            ) from error
    return Tools(validators)


def _standard(schema: Any) -> Any:
    """Return a schema with BFCL's types renamed, wherever a schema can stand in it."""
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    if isinstance(kind := made.get("type"), str):
        made["type"] = _TYPES.get(kind, kind)
        if kind == "any":
            del made["type"]
    for key in _ONE:
        if key in made:
            made[key] = _standard(made[key])
    for key in _SEVERAL:
        if isinstance(made.get(key), list):
            made[key] = [_standard(one) for one in made[key]]
    for key in _NAMED:
        if isinstance(made.get(key), dict):
            made[key] = {name: _standard(one) for name, one in made[key].items()}
    return made


@cache
def _checker() -> tuple[Any, tuple[type[Exception], ...]]:
    """Return what makes a validator of a schema, and what it raises if that is none."""
    try:
        import jsonschema  # type: ignore[import-untyped]
        import jsonschema.validators  # type: ignore[import-untyped]
        import referencing.exceptions
        import referencing.jsonschema
    except ImportError as error:
        raise NoSchemasError(_REMEDY) from error
    base = jsonschema.Draft202012Validator
    types = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    strict: Any = jsonschema.validators.extend(base, {"uniqueItems": _unique}, type_checker=types)
    nowhere: Any = referencing.Registry()  # without it, jsonschema opens the addresses that a `$ref` names

    def make(schema: dict[str, Any]) -> Any:
        strict.check_schema(schema)
        made = strict(schema, registry=nowhere)
        resource = referencing.jsonschema.DRAFT202012.create_resource(schema)
        resolver = nowhere.with_resource("", resource).resolver()
        for target in _targets(schema):  # one that leads nowhere is the reference's fault, whatever the response says
            resolver.lookup(target)
        return made

    return make, (jsonschema.SchemaError, referencing.exceptions.Unresolvable, RecursionError, re.error)


def _unique(validator: Any, wanted: Any, items: Any, schema: Any) -> Iterator[Exception]:
    """Check "uniqueItems" in linear time; jsonschema compares each pair of items of different types."""
    import jsonschema

    del schema
    if wanted and validator.is_type(items, "array") and len({_key(item) for item in items}) < len(items):
        yield jsonschema.ValidationError("an item of a list stands there twice")


def _key(value: Any) -> str:
    """Return a text that two values share if JSON Schema takes them for equal, such as 1 and 1.0, or -0.0 and 0."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return value


def _targets(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _targets(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _targets(value)
