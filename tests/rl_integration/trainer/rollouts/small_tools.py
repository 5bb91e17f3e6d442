"""Tools for tests of what calls them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, one_text


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """Knows a few things."""

    name: str = "look"
    known: Mapping[str, str] = field(default_factory=lambda: {"ab": "17", "cd": "28"})

    @property
    def description(self) -> str:
        return "Look a key up."

    @property
    def parameters(self) -> dict[str, Any]:
        return one_text("key", "what to look up")

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        found = self.known.get(arguments["key"])
        return ToolAnswer(text="nothing", ok=False) if found is None else ToolAnswer(text=found)


@dataclass(frozen=True, kw_only=True)
class Doing(Lookup):
    """Does what a test says."""

    does: Callable[[str], str]

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        return ToolAnswer(text=self.does(arguments["key"]))


@dataclass(frozen=True, kw_only=True)
class Slow(Lookup):
    """Answers a key once another key was asked for: with several threads the last comes first."""

    after: Mapping[str, str]
    asked: Mapping[str, threading.Event]

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        key = arguments["key"]
        self.asked[key].set()
        if key in self.after:
            assert self.asked[self.after[key]].wait(20.0)
        return ToolAnswer(text=f"{key}!")


@dataclass(frozen=True, kw_only=True)
class Adder:
    """Takes two numbers."""

    name: str = "add"
    description: str = "Add."

    @property
    def parameters(self) -> dict[str, Any]:
        numbers = {name: {"type": "integer"} for name in ("a", "b")}
        return {"type": "object", "properties": numbers, "required": ["a", "b"]}

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        return ToolAnswer(text=str(arguments["a"] + arguments["b"]))
