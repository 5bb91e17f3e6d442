"""Rules by name, and from specifications: `best_worst`, or `{pass_fail: {passing: 0.9}}` as YAML text.

Not covered: rules from other packages.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from adjudge.data_pipelines.pairs.rule import Rule
from adjudge.options import options_of, suggestion

RULES: Final[Mapping[str, str]] = {
    "best_worst": "BestWorst",
    "best_random": "BestRandom",
    "all_ordered": "AllOrdered",
    "pass_fail": "PassFail",
    "execution_order": "ExecutionOrder",
    "heron": "Heron",
    "gap_split": "GapSplit",
    "first_bad_step": "FirstBadStep",
    "sibling_error": "SiblingError",
    "step_apo": "StepApo",
    "both_orders": "BothOrders",
    "duoguard": "DuoGuard",
    "agreement": "Agreement",
}
"""Each rule's class, in the module of `rules` that has the rule's name."""


def rule_of(spec: Any) -> Rule:
    """Return the rule that a specification describes.

    Args:
        spec: a rule's name, `{name: {option: value}}`, or either as YAML text.

    Raises:
        ValueError: there is no such rule or option, or a value is out of its range.
    """
    import yaml

    body = spec
    if isinstance(spec, str):
        try:
            body = yaml.safe_load(spec)
        except yaml.YAMLError as error:
            raise ValueError(f"the rule {spec!r} is no YAML: {error}") from error
    if isinstance(body, str):
        return _made(body, {})
    if isinstance(body, Mapping) and len(body) == 1:
        ((name, options),) = body.items()
        return _made(name, {} if options is None else options)
    raise ValueError(
        f"the rule {spec!r} is neither a name nor {{name: {{option: value}}}}; the rules are {', '.join(RULES)}"
    )


def _made(name: Any, options: Any) -> Rule:
    if not isinstance(name, str) or name not in RULES:
        raise ValueError(
            f"there is no rule {name!r}{suggestion(str(name), list(RULES))}; the rules are {', '.join(RULES)}"
        )
    module = importlib.import_module(f"adjudge.data_pipelines.pairs.rules.{name}")
    kind = getattr(module, RULES[name])
    known = {field.name: field for field in fields(kind)}
    needed = [one.name for one in known.values() if one.default is MISSING and one.default_factory is MISSING]
    given = options_of(options, list(known), inside=f"the rule {name!r}", required=needed)
    values = {key: _value(name, key, str(known[key].type), value) for key, value in given.items()}
    made: Rule = kind(**values)
    return made


def _value(rule: str, option: str, kind: str, value: Any) -> Any:
    """Return an option's value as its field wants it, or raise `ValueError`."""
    if kind == "Rule":
        return rule_of(value)
    kind = kind.removesuffix(" | None")
    if kind.startswith("tuple["):
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(_value(rule, option, kind.removeprefix("tuple[").split(",")[0], item) for item in items)
    if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind == "bool" and isinstance(value, bool):
        return value
    if (kind == "str" or kind.startswith("Literal[")) and isinstance(value, str):
        return value
    wanted = {"float": "a number", "bool": "true or false"}.get(kind, "text")
    raise ValueError(f"{rule}: {option} is {value!r}; it must be {wanted}")
