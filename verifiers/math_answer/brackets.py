"""The bracketed operands: groups, tuples, intervals, sets, absolute values, matrices and systems."""

from __future__ import annotations

from abc import ABC, abstractmethod

from adjudge.verifiers.math_answer import vocabulary as known
from adjudge.verifiers.math_answer.cursor import Cursor
from adjudge.verifiers.math_answer.nodes import (
    Collection,
    Constant,
    Matrix,
    Node,
    NotMathError,
    Operation,
    is_expression,
)


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
        if closer == "\\}" and not (isinstance(node, Operation) and node.name == "such_that"):
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
            raise NotMathError("the absolute value of something that is no expression")
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
