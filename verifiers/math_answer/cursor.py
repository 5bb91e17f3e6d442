"""Moving through the tokens of an answer, and counting how deep the reader is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from adjudge.verifiers.math_answer import vocabulary as known
from adjudge.verifiers.math_answer.lexer import Token
from adjudge.verifiers.math_answer.nodes import NotMathError

_ENDING_COMMANDS: Final = frozenset({*known.CONSTANTS, "}", "$", "rvert", "degree", "circ"})


class Cursor:
    """A position in a list of tokens that ends with one of kind "end"."""

    def __init__(self, tokens: list[Token]) -> None:
        """Start at the first token."""
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.max_depth = 60
        self.bars = 0  # open absolute values (or the head of a set) in this bracket: a bar then closes
        self.angle = 0  # open "<" brackets
        self.environments = 0

    # -- tokens ---------------------------------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> Token:
        """Return a coming token without moving; past the end, the last one."""
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Return the next token and move on."""
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def sign(self, *values: str) -> bool:
        """Whether the next token is one of these signs."""
        token = self.tokens[self.position]
        return token.kind == "sign" and token.value in values

    def command(self, *values: str) -> bool:
        """Whether the next token is one of these LaTeX commands."""
        token = self.tokens[self.position]
        return token.kind == "command" and token.value in values

    def name(self, *values: str) -> bool:
        """Whether the next token is one of these names."""
        token = self.tokens[self.position]
        return token.kind == "name" and token.value in values

    def at(self, closers: tuple[str, ...]) -> bool:
        """Whether the next token is one of these closers: signs as they are, commands with a backslash."""
        token = self.tokens[self.position]
        if token.kind == "end":
            return "end" in closers
        mark = "\\" + token.value if token.kind == "command" else token.value
        return token.kind in ("sign", "command") and mark in closers

    def behind_operand(self) -> bool:
        """Whether an operand or a slash stands before the token just read, so that a unit may be it."""
        before = self.tokens[self.position - 2] if self.position > 1 else Token("end", "")
        if before.value in ("cdot", "*") and self.position > 2:  # `N \\cdot m`
            return self.tokens[self.position - 3].kind == "text"
        if before.kind == "command":
            return before.value in _ENDING_COMMANDS
        return before.kind in ("number", "name", "text") or before.value in ("}", ")", "]", "/", "|", "!")

    def expect(self, *closers: str) -> Token:
        """Move past a closer.

        Raises:
            NotMathError: something else is there.
        """
        if not self.at(closers):
            raise self.unexpected()
        return self.next()

    def unexpected(self) -> NotMathError:
        """Return the error for the token that does not fit."""
        token = self.tokens[self.position]
        what = "the end" if token.kind == "end" else repr(token.value[:40])
        return NotMathError(f"{what} does not fit at token {self.position}")

    def deeper(self) -> Self:
        """Count one level of nesting: `with self.deeper():`.

        The cursor is its own context manager, because a generator's takes ten times as long, a tenth of all parsing.
        """
        return self

    def __enter__(self) -> Self:
        self.depth += 1
        if self.depth > self.max_depth:
            raise NotMathError(f"nested more than {self.max_depth} deep")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.depth -= 1

    @contextmanager
    def fresh(self, bars: int = 0) -> Iterator[None]:
        """Enter a bracket, in which no bar is open."""
        outer, self.bars = self.bars, bars
        yield
        self.bars = outer
