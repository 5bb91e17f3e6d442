"""Verilog sources as slang (`pyslang`) reads them: syntax trees, tokens, which module instantiates which, and ports.

A source is only parsed and elaborated; nothing of it runs, and it can read no file.

Ports come from slang's elaboration, with the default parameters.  Clocks and resets are guessed: a one-bit input that
an edge-sensitive block names is a clock, unless the block tests it first (an asynchronous reset) or its name is that of
a reset; what instances connect is followed.  A reference can name them itself.

Not covered: ports that are structs with unpacked parts, unpacked arrays, reals and interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

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


Direction: TypeAlias = Literal["input", "output", "inout"]

_RESET_NAME = re.compile(r"(?i)[a-z]?n?_?(?:reset|rst|clr|clear)_?[nb]?(?:_?in?)?")
_CLOCK_NAME = re.compile(r"(?i)(?:\w*_)?(?:clk|clock|ck|cp)(?:_?(?:in|i|[a-z0-9]))?|clk\w*|\w+clk")
_LOW_NAME = re.compile(r"(?i)\w*(?:reset|rst|clr|clear)_?(?:n|b)(?:_?in?)?|n_?(?:reset|rst|clr|clear)\w*")
_DIRECTIONS: dict[str, Direction] = {"In": "input", "Out": "output", "InOut": "inout"}


class InterfaceError(ValueError):
    """A design without a usable top module; the message says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port of a module: its name, direction and width in bits."""

    name: str
    direction: Direction
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The ports of a module, in order.

    Attributes:
        clocks: one-bit inputs that drive edges.
        resets: one-bit inputs that reset, and whether each is active high.
    """

    ports: tuple[Port, ...]
    clocks: tuple[str, ...] = ()
    resets: tuple[tuple[str, bool], ...] = ()

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The input ports."""
        return tuple(port for port in self.ports if port.direction == "input")

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The output ports."""
        return tuple(port for port in self.ports if port.direction == "output")


def read_ports(text: str, top: str) -> tuple[Port, ...]:
    """Return the ports of a module.

    Raises:
        InterfaceError: there is no such module, or a port is of a kind that is not covered.
        SyntaxFaultError: the text is not Verilog.
    """
    held = _elaborated(parse(text), top)
    return _ports_of(held.tops[0].body, top)


def _ports_of(body: Any, top: str) -> tuple[Port, ...]:
    ports = []
    for port in body.portList:
        direction = _DIRECTIONS.get(getattr(getattr(port, "direction", None), "name", ""))
        if port.kind.name != "Port" or direction is None:
            raise InterfaceError(f"the port {port.name!r} of {top!r} is of a kind that cannot be driven by vectors")
        if not port.type.isIntegral or not port.name:
            raise InterfaceError(f"the port {port.name!r} of {top!r} has the type {port.type}; give it packed bits")
        ports.append(Port(name=port.name, direction=direction, width=port.type.bitWidth))
    return tuple(ports)


def instance_interface(text: str, module: str) -> tuple[tuple[Port, ...], tuple[str, ...]]:
    """Return the ports and the parameters of the one instance of a module in a test bench.

    Raises:
        InterfaceError: there are instances with different ports, or none.
        SyntaxFaultError: the text is not Verilog.
    """
    parsed = parse(text)
    tops = [
        top for top in parsed.tops() if any(module in parsed.instantiated(inner) for inner in parsed.reachable(top))
    ]
    if len(tops) != 1:
        raise InterfaceError(f"the module {module!r} stands below the tops {tops}; it must be one")
    held = _elaborated(parsed, tops[0])
    interfaces: list[tuple[tuple[Port, ...], tuple[str, ...]]] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "InstanceSymbol" and node.definition.name == module:
            parameters = tuple(item.name for item in node.body.parameters if item.isPortParam)
            interfaces.append((_ports_of(node.body, module), parameters))

    held.tops[0].visit(look)
    if not interfaces or any(other != interfaces[0] for other in interfaces):
        raise InterfaceError(f"the test bench has {len(interfaces)} instances of {module!r} with different ports")
    return interfaces[0]


def _elaborated(parsed: Parsed, top: str) -> Any:
    ast = slang().ast
    options = ast.CompilationOptions()
    options.topModules = {top}
    options.flags = (
        ast.CompilationFlags.AllowUseBeforeDeclare
        | ast.CompilationFlags.AllowTopLevelIfacePorts
        | ast.CompilationFlags.RelaxEnumConversions
    )
    bag = slang().Bag()
    bag.compilationOptions = options
    compilation = ast.Compilation(bag)
    compilation.addSyntaxTree(parsed.tree)
    root = compilation.getRoot()
    if top not in parsed.modules or len(root.topInstances) != 1:
        raise InterfaceError(f"there is no module {top!r}; the source has {', '.join(parsed.modules) or 'none'}")
    return _Held(compilation, root.topInstances, parsed)


class _Held(NamedTuple):
    """An elaborated design; slang's objects live only as long as the compilation that made them."""

    compilation: Any
    tops: Any
    parsed: Parsed


def semantic_errors(text: str, top: str) -> str:
    """Return slang's first error in the meaning of a design, in one short line, or ""."""
    parsed = parse(text)
    held = _elaborated(parsed, top)
    errors = [item for item in held.compilation.getAllDiagnostics() if item.isError()]
    return shorten(slang().DiagnosticEngine.reportAll(parsed.manager, errors[:1])) if errors else ""


def own_paths(text: str, top: str) -> set[int]:
    """Return where the names with dots begin that stand for something in the design itself.

    These are parts of structs, methods of enums, and paths into instances and interfaces.  The design is elaborated
    alone, so that a path out of it leads nowhere.
    """
    held = _elaborated(parse(text), top)
    starts = set()

    def look(node: Any) -> None:
        if type(node).__name__ in ("MemberAccessExpression", "HierarchicalValueExpression", "CallExpression"):
            starts.add(node.sourceRange.start.offset)

    held.tops[0].visit(look)
    return starts


def read_interface(text: str, top: str) -> Interface:
    """Return the ports of a module and which of them seem to be clocks and resets.

    Raises:
        InterfaceError, SyntaxFaultError: as `read_ports`.
    """
    ports = read_ports(text, top)
    single = [port.name for port in ports if port.direction == "input" and port.width == 1]
    edges, tested = _edges(parse(text), top)
    resets, clocks = [], []
    for name in single:
        low = bool(_LOW_NAME.fullmatch(name)) or tested.get(name) is False
        if name in tested or _RESET_NAME.fullmatch(name):
            resets.append((name, not low))
        elif name in edges or _CLOCK_NAME.fullmatch(name):
            clocks.append(name)
    return Interface(ports=ports, clocks=tuple(clocks), resets=tuple(resets))


def _edges(parsed: Parsed, top: str) -> tuple[set[str], dict[str, bool]]:
    """Return the names at a top's edges, and those that edge blocks test first with whether they are active high."""
    edges: dict[str, set[str]] = {}
    tested: dict[str, dict[str, bool]] = {}
    for name, module in parsed.modules.items():
        edges[name], tested[name] = set(), {}
        for node in nodes(module):
            if node.kind.name == "TimingControlStatement":
                _look_at_block(node, edges[name], tested[name])
    every = [
        (name, *connection) for name, module in parsed.modules.items() for connection in _connections(parsed, module)
    ]
    grown = True
    while grown:  # once for each level of instances, at most
        grown = False
        for name, child, inner, outer in every:
            if inner in tested.get(child, ()):
                grown = grown or outer not in tested[name]
                tested[name].setdefault(outer, tested[child][inner])
            elif inner in edges.get(child, ()):
                grown = grown or outer not in edges[name]
                edges[name].add(outer)
    return edges[top], tested[top]


def _look_at_block(block: Any, edges: set[str], tested: dict[str, bool]) -> None:
    here = {}
    for node in nodes(block.timingControl):
        if node.kind.name == "SignalEventExpression" and node.edge.rawText in ("posedge", "negedge"):
            here[str(node.expr).strip()] = node.edge.rawText == "posedge"
    if len(here) > 1:
        for node in nodes(block.statement):
            if node.kind.name == "ConditionalStatement":
                words = set(re.findall(r"[A-Za-z_]\w*", str(node.predicate)))
                tested.update({name: high for name, high in here.items() if name in words})
                break
    edges.update(here)


def _connections(parsed: Parsed, module: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (module, its port, our name) for each plain connection of the instances in a module."""
    for node in nodes(module):
        if node.kind.name != "HierarchyInstantiation":
            continue
        child = node.type.valueText
        for part in nodes(node):
            if part.kind.name == "NamedPortConnection":
                port = part.name.valueText
                yield child, port, str(part.expr).strip() if part.expr is not None else port
            elif part.kind.name == "WildcardPortConnection":
                for port in _port_words(parsed, child):
                    yield child, port, port
            elif part.kind.name == "HierarchicalInstance":
                ordered = [item for item in part.connections if item.kind.name == "OrderedPortConnection"]
                for port, item in zip(_port_words(parsed, child), ordered, strict=False):
                    yield child, port, str(item.expr).strip()


def _port_words(parsed: Parsed, module: str) -> list[str]:
    header = parsed.modules[module].header if module in parsed.modules else None
    if header is None or getattr(header, "ports", None) is None:
        return []
    kinds = ("Declarator", "PortReference")  # of ports declared in the header, and below it
    return [str(node.name.valueText) for node in nodes(header.ports) if node.kind.name in kinds]
