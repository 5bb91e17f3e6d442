"""Verilog sources as syntax trees: parsing, tokens, and which module instantiates which.

The parser is slang's (`pyslang`).  A source is only parsed; nothing of it runs, and it can read no file.

Not covered: meaning.  `adjudge.verifiers.verilog.interface` elaborates a design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from adjudge.extras import install_hint

if TYPE_CHECKING:
    from types import ModuleType

MAX_SOURCE = 400_000  # characters; the longest reference of VerilogEval and RTLLM has 12,000
MAX_TOKENS = 200_000
_MAX_ERROR = 300  # characters of an error that travel in the evidence


class SyntaxFaultError(ValueError):
    """A source that is not Verilog; the message names the first error."""


class StoppedError(Exception):
    """A design that came no further than a stage.

    Attributes:
        reason: a code of `adjudge.reasons.CANDIDATE`, for when the design is the candidate's.
        stage: "extract", "syntax", "rules", "ports", "elaborate" or "run".
        limit: whether it ran into a limit.
    """

    def __init__(self, reason: str, stage: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.stage = stage
        self.limit = reason in ("candidate_timeout", "candidate_memory", "candidate_output")


@cache
def slang() -> ModuleType:
    """Return pyslang.

    Raises:
        ModuleNotFoundError: it is not installed; the message says how to get it.
    """
    try:
        import pyslang
        import pyslang.ast
        import pyslang.parsing
        import pyslang.syntax
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Verilog is parsed with pyslang, which is not installed; {install_hint('verilog')}"
        ) from error
    return pyslang


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A source without syntax errors.

    Attributes:
        manager: the source manager that the tree needs to live.
        members: the nodes at the top of the file, in order: modules, packages, typedefs, ...
    """

    tree: Any
    manager: Any
    members: tuple[Any, ...]

    @cached_property
    def modules(self) -> dict[str, Any]:
        """The modules and primitives by name; of two with one name the later."""
        return {name: node for node in self.members if (name := defined_name(node))}

    def instantiated(self, name: str) -> set[str]:
        """Return the names of what a module instantiates, known here or not."""
        kinds = ("HierarchyInstantiation", "PrimitiveInstantiation")
        return {node.type.valueText for node in nodes(self.modules[name]) if node.kind.name in kinds}

    def reachable(self, top: str) -> list[str]:
        """Return the modules that a top needs, itself included, in the order of the file."""
        seen, waiting = {top}, [top]
        while waiting:
            fresh = (self.instantiated(waiting.pop()) & self.modules.keys()) - seen
            seen |= fresh
            waiting += fresh
        return [name for name in self.modules if name in seen]

    def tops(self) -> list[str]:
        """Return the modules that no other one instantiates."""
        used = {name for module in self.modules for name in self.instantiated(module) if name != module}
        return [name for name, node in self.modules.items() if name not in used and is_module(node)]


def parse(text: str) -> Parsed:
    """Return the syntax tree of a source.

    Raises:
        SyntaxFaultError: the text is too long, or is not Verilog.
    """
    if len(text) > MAX_SOURCE:
        raise SyntaxFaultError(f"the source has {len(text)} characters; the limit is {MAX_SOURCE}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SyntaxFaultError("the source is not text: it has lone surrogates") from error
    syntax, parsing = slang().syntax, slang().parsing
    options = parsing.PreprocessorOptions()
    options.maxIncludeDepth = 0
    bag = slang().Bag()
    bag.preprocessorOptions = options
    manager = slang().SourceManager()
    tree = syntax.SyntaxTree.fromFileInMemory(text, manager, options=bag)
    errors = [item for item in tree.diagnostics if item.isError()]
    if errors:
        report = slang().DiagnosticEngine.reportAll(manager, errors[:1])
        raise SyntaxFaultError(shorten(report))
    return Parsed(tree=tree, manager=manager, members=tuple(_members(tree.root)))


def _members(root: Any) -> Iterator[Any]:
    if root.kind.name != "CompilationUnit":
        yield root
        return
    for part in root:
        if not is_token(part):
            yield from part if part.kind.name == "SyntaxList" else (part,)


def shorten(text: str) -> str:
    """Return a tool's message as one short line."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_ERROR else line[: _MAX_ERROR - 3] + "..."


def defined_name(node: Any) -> str:
    """Return the name of the module or primitive that a node defines, else ""."""
    kind = node.kind.name
    if kind == "ModuleDeclaration":
        return str(node.header.name.valueText)
    return str(node.name.valueText) if kind == "UdpDeclaration" else ""


def is_module(node: Any) -> bool:
    """Whether a node defines a module, not a primitive."""
    return bool(node.kind.name == "ModuleDeclaration")


def is_token(part: Any) -> bool:
    """Whether a child of a node is a token."""
    return isinstance(part, slang().parsing.Token)


def nodes(root: Any) -> Iterator[Any]:
    """Yield a node and all nodes below it, in the order of the source; long chains need no Python stack."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed([part for part in node if part is not None and not is_token(part)])


def tokens(root: Any) -> Iterator[Any]:
    """Yield the tokens below a node, in the order of the source, empty ones left out."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if is_token(part):
            if part.rawText:
                yield part
        else:
            waiting += reversed([child for child in part if child is not None])


def integers(parsed: Parsed) -> set[int]:
    """Return the integers that stand in a source, unknown digits left out, the largest of 4,096 bits."""
    numbers = set()
    for member in parsed.members:
        for node in nodes(member):
            kind = node.kind.name
            if kind == "IntegerVectorExpression":
                digits, base = node.value.rawText.replace("_", ""), node.base.rawText[-1].lower()
                radix = {"b": 2, "o": 8, "d": 10, "h": 16}.get(base, 10)
                if len(digits) <= 1024 and digits.isalnum() and not set(digits.lower()) & set("xz"):
                    numbers.add(int(digits, radix))
            elif kind == "IntegerLiteralExpression" and len(text := node.literal.rawText.replace("_", "")) <= 20:
                numbers.add(int(text))
    return numbers
