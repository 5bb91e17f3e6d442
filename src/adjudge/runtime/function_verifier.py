"""A plain function as a verifier: `def reward(prompt, response, reference): return 1.0`.

Not covered: functions that wait (`async def`); write a class with `async def score` for those.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, ClassVar, SupportsFloat

from adjudge import wire
from adjudge.fingerprints import signed
from adjudge.protocol import Sample, Score, Verifier, response_text, turn_texts

_FIELDS = ("prompt", "response", "reference", "finish_reason")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def is_scoring(thing: Any) -> bool:
    """Return whether something is a plain function that scores a response: it has a parameter `response`."""
    return isinstance(thing, FunctionType) and "response" in inspect.signature(thing).parameters


@dataclass(frozen=True, kw_only=True)
class FunctionVerifier(Verifier):
    """What a plain function says of a response.

    It is called by the names of its parameters: `prompt` and `response` are text (of chats, that of the turns, and of
    the assistant's turns), `reference` is the sample's, `finish_reason` too, any other is the column of that name in
    `Sample.extra`; `**columns` takes all columns.  A number or a truth value is the score, None abstains.

    Attributes:
        function: the function.
    """

    name: ClassVar[str] = "function"

    function: Callable[..., Any]
    _taken: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _required: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _takes_all: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        called, parameters = self.function.__name__, inspect.signature(self.function).parameters
        if inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise ValueError(
                f"{called} is an async function, and functions that score run in worker processes; write `def`, or a "
                "class with `name`, `fingerprint` and `async def score(self, samples)`"
            )
        unnamed = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_ONLY]
        if unnamed:
            raise ValueError(f"{called} has the positional-only parameter {unnamed[0]!r}; it is called by names")
        taken = {name: each for name, each in parameters.items() if each.kind in _NAMED}
        required = tuple(name for name, each in taken.items() if each.default is each.empty)
        known = {
            "name": "lambda" if called == "<lambda>" else called,
            "needs_reference": "reference" in required,
            "_taken": tuple(taken),
            "_required": required,
            "_takes_all": any(each.kind is each.VAR_KEYWORD for each in parameters.values()),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @property
    def fingerprint(self) -> str:
        """Name, source, defaults and enclosed values; not what it calls."""
        function = inspect.unwrap(self.function)
        assert isinstance(function, FunctionType)
        try:
            source: Any = inspect.getsource(function)
        except (OSError, TypeError):  # typed in, or made by a program
            source = _code(function.__code__)
        enclosed = [_plain(cell.cell_contents) for cell in function.__closure__ or ()]
        defaults = [
            _plain(value) for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items())
        ]
        return signed(self.name, source, defaults, enclosed)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the function compares with a reference or a column that the sample lacks."""
        super().validate(sample)
        for name in self._required:
            if name not in _FIELDS and name not in sample.extra:
                there = ", ".join(map(str, sample.extra)) or "no columns"
                raise ValueError(
                    f"the function {self.name!r} takes the column {name!r}, and Sample.extra has {there}; give it "
                    f"(label: --extra-column {name}), or give the parameter a default"
                )

    def verify(self, sample: Sample) -> Score:
        """Return what the function says."""
        value = self.function(**self._arguments(sample))
        if value is None:
            return Score.abstained("out_of_scope")
        try:
            number = float(value) if isinstance(value, SupportsFloat) else math.nan
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            shown = f"{value!r:.80} ({type(value).__name__})"
            error = f"{self.name} returned {shown}; it must return a finite number, True or False, or None to abstain"
            return Score.failed("verifier_error", error=error)
        return Score.scored(number)

    def _arguments(self, sample: Sample) -> dict[str, Any]:
        prompt = "\n".join(turn_texts(sample.prompt))
        known = {**sample.extra, "prompt": prompt, "response": response_text(sample)}
        known |= {name: getattr(sample, name) for name in _FIELDS[2:] if getattr(sample, name) is not None}
        return known if self._takes_all else {name: known[name] for name in self._taken if name in known}


def _plain(value: Any) -> Any:
    """A value as data that is the same in every process; of what is not plain data, the type."""
    try:
        wire.encode(value)
    except TypeError:
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return value


def _code(code: CodeType) -> list[Any]:
    constants = [_code(each) if isinstance(each, CodeType) else _plain(each) for each in code.co_consts]
    return [code.co_code, code.co_names, constants]
