"""The tools that a model may call, with the JSON schemas of their parameters.

A tool is `{"name": .., "parameters": {..}}`, or the OpenAI form with that under "function".  Types are strict: `true`
is no number, and 5.0 no "integer"; any number is a "number".  Arguments that the schema does not name are refused,
unless its "additionalProperties" says otherwise.  BFCL's names of types ("dict", "float", "tuple", "any") are
understood.

Schemas are checked by `jsonschema` (the extra `tools`), which fetches nothing here: a `$ref` must stand in the schema.

Not covered: "format", which is an annotation in JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.extras import install_hint
from adjudge.verifiers.text.answer_span import shorten

_REMEDY: Final = f"schemas of tools need jsonschema, which is not installed; {install_hint('tools')}"
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
            return f"there is no tool {shorten(repr(name), 60)}"
        try:
            error = next(validator.iter_errors(arguments), None)
        except (RecursionError, OverflowError):
            return "the arguments are beyond what the schema's checker can take"
        return "" if error is None else shorten(str(error.message))


def read_tools(given: Any) -> Tools:
    """Return the tools of a reference.

    Raises:
        BadReferenceError: they are malformed, or a schema is none.
        NoSchemasError: `jsonschema` is not installed.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise BadReferenceError('"tools" must be a list of tools that is not empty', mistake=True)
    return _read(json_text(list(given), '"tools"'))


def json_text(value: Any, what: str) -> str:
    """Return a value as JSON.

    Raises:
        BadReferenceError: it is no JSON data; the message names it.
    """
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadReferenceError(f"{what}: no JSON data: {error}", mistake=True) from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__}; give texts, numbers, true, false, null, lists and mappings")


@lru_cache(maxsize=256)
def _read(text: str) -> Tools:
    make, wrong = _checker()
    found: dict[str, Any] = {}
    for at, tool in enumerate(json.loads(text)):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not name:
            raise BadReferenceError(f'tool {at} needs a "name", and "parameters" as a JSON schema', mistake=True)
        if name in found:
            raise BadReferenceError(f"two tools are named {name!r}; names tell them apart", mistake=True)
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        if not isinstance(schema, dict):
            raise BadReferenceError(f"the parameters of {name!r} are no JSON schema", mistake=True)
        schema = {"additionalProperties": False, **_standard(schema)}
        try:
            found[name] = make(schema)
        except wrong as error:
            raise BadReferenceError(
                f"the schema of {name!r} is none: {getattr(error, 'message', error)}"[:300], mistake=True
            ) from error
    return Tools(found)


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
    """Where the references in a schema lead."""
    if isinstance(schema, list):
        for item in schema:
            yield from _targets(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _targets(value)
