"""YAML or JSON text as plain data."""

from __future__ import annotations

from typing import Any


def parsed(text: str, *, where: str, empty: bool = False) -> Any:
    """Return the data in YAML or JSON text; None for none, where it may be `empty`.

    Raises:
        ValueError: it is neither, or empty, or has a key twice, of which one would be lost.
    """
    import yaml

    try:
        _reject_twice(yaml.compose(text, Loader=yaml.SafeLoader), where)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{where} is neither YAML nor JSON: {_problem(error)}") from error
    if data is None and not empty:
        raise ValueError(
            f"{where} is empty; write a name, or a mapping such as {{weighted: {{math: 1.0, format: 0.1}}}}"
        )
    return data


def _problem(error: Exception) -> str:
    """What is wrong with the text and where, in one line; PyYAML draws a picture of it over several."""
    import yaml

    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {error.problem}"
    return str(error)


def _reject_twice(tree: Any, where: str) -> None:
    import yaml

    pending, seen = [tree], set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if twice := {key for key in keys if keys.count(key) > 1}:
                raise ValueError(f"{where} has the key {min(twice)!r} twice; write it once, or give scorers as a list")
            pending.extend(value for _, value in node.value)
