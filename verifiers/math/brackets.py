"""The bracketed operands: groups, tuples, intervals, sets, absolute values, matrices and systems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from adjudge.verifiers.math import vocabulary as known
from adjudge.verifiers.math.lexer import Token
from adjudge.verifiers.math.nodes import (
    Collection,
    Constant,
    Matrix,
    Node,
    NotMathError,
    Operation,
    is_expression,
    is_op,
)

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


class BracketParser(Cursor, ABC):
    """Reads what stands between delimiters."""

    @abstractmethod
    def statements(self, closers: tuple[str, ...]) -> Node:
        """Read statements up to a closer."""

    @abstractmethod
    def sum(self) -> Node:
        """Read a sum."""

    @abstractmethod
    def product(self) -> Node:
        """Read a product."""

    @abstractmethod
    def starts_factor(self) -> bool:
        """Whether a factor can start here."""

    @abstractmethod
    def atom(self, *, exponent: bool = False) -> Node:
        """Read one operand without what may follow it."""

    # -- brackets -------------------------------------------------------------------------------------------

    def bracket(self, opener: str) -> Node:
        """Read up to the closing bracket: a group, a tuple, a vector or an interval."""
        closers = {"langle": ("\\rangle",), "lfloor": ("\\rfloor",), "lceil": ("\\rceil",)}.get(opener, (")", "]"))
        with self.deeper(), self.fresh():
            node = self.statements(closers)
            closer = self.expect(*closers).value
        if opener in ("lfloor", "lceil"):
            return Operation("floor" if opener == "lfloor" else "ceil", (node,))
        if isinstance(node, Collection) and node.kind == "list":
            pair = "<>" if opener == "langle" else opener + closer
            return Collection("bracket", node.items, pair)
        if isinstance(node, Matrix):
            return node
        if opener != "langle" and known.CLOSERS[opener] != closer:
            raise NotMathError("an interval with one end")
        return node

    def angled(self) -> Node:
        """Read a vector in `<` and `>`."""
        self.angle += 1
        with self.deeper(), self.fresh():
            node = self.statements((">",))
            self.expect(">")
        self.angle -= 1
        if isinstance(node, Collection) and node.kind == "list":
            return Collection("bracket", node.items, "<>")
        raise NotMathError("angle brackets around one item")

    def braces(self, closer: str) -> Node:
        r"""Read `{...}` (a group, or a set when it holds a list) or `\{...\}` (a set)."""
        if closer == "\\}" and self.peek().kind == "command" and self.peek().value.startswith("begin:"):
            node = self.atom()
            if self.at((closer,)):
                self.next()
            return Matrix(node.rows, cases=True) if isinstance(node, Matrix) else node
        if self.at((closer,)):
            self.next()
            if closer == "\\}":
                return Constant("empty")
            return self.atom()  # an empty group is only spacing
        with self.deeper(), self.fresh(bars=1):
            node = self.statements((closer, "|", "\\mid", ":"))
            if self.sign("|", ":") or self.command("mid"):
                self.next()
                self.bars = 0
                node = Operation("such_that", (node, self.statements((closer,))))
            elif self.command("choose", "over"):
                name = "binomial" if self.next().value == "choose" else "div"
                node = Operation(name, (node, self.sum()))
            self.expect(closer)
        if isinstance(node, Collection) and node.kind == "list":
            return Collection("set", node.items) if closer == "\\}" else node
        if closer == "\\}" and not (is_op(node, "such_that")):
            return Collection("set", (node,))
        return node

    def absolute(self, closers: tuple[str, ...]) -> Node:
        """Read an absolute value up to its closing bar."""
        with self.deeper(), self.fresh(bars=1):
            node = self.statements(closers)
            self.expect(*closers)
        if isinstance(node, Matrix):
            return Operation("det", (node,))
        if not is_expression(node):
            raise NotMathError("the absolute value of something that is not an expression")
        return Operation("abs", (node,))

    def environment(self, name: str) -> Node:
        """Read a matrix or a system of cases."""
        if name not in known.MATRICES and name != "cases":
            raise NotMathError(f"the environment {name[:40]!r}")
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        with self.deeper(), self.fresh():
            while not self.command(f"end:{name}"):
                if self.command("\\"):
                    self.next()
                    if row:
                        rows.append(tuple(row))
                    row = []
                elif self.sign("&") or (
                    self.peek().kind == "text" and self.peek().value.partition(":")[2].strip(" ,") in ("if", "for", "")
                ):
                    self.next()
                else:
                    row.append(self.statements(("\\\\", "&", f"\\end:{name}")))
                if self.peek().kind == "end":
                    raise NotMathError("an environment is never closed")
            self.next()
        if row:
            rows.append(tuple(row))
        if not rows:
            raise NotMathError("an empty matrix")
        matrix = Matrix(tuple(rows), cases=name == "cases")
        return Operation("det", (matrix,)) if name == "vmatrix" else matrix
