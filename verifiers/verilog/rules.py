r"""What a design may not say: everything that acts on the simulation instead of describing hardware.

The rules hold for the modules that the top needs; a test bench that a response adds for show is not compiled.
A system task or function must be on a list.  Printing is taken out, not punished.  Everything that names a scope by
a path (`tb.dut.q`), forces a net, binds into another module, leaves Verilog (DPI) or reads a file is tampering.

Icarus resolves a bare task name upwards through the instances, and takes a call of the escaped name `\$finish ` for
the system task; both were tried with version 11.  So escaped names that are not plain names are refused here, and the
scopes of a user's test bench get secret names (`adjudge.verifiers.verilog.rewriting`).

A parsed design as plain text: macros expanded, no directives, comments, attributes or printing, modules renamed.

What is simulated is this text, never the response's own.  Two parsers of one text can disagree about what it says
(`__ICARUS__` is defined for one and not for the other; a triple-quoted string of SystemVerilog 2023 hides code from
one of them), and such a disagreement is a way around every rule.  So each token is written out apart from the next,
strings are written with octal escapes, and the text must come back from the parser as the same tokens.

Not covered: whether the design is good hardware.  Delays, `initial` and loops are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adjudge.verifiers.verilog.front_end import (
    MAX_TOKENS,
    Parsed,
    SyntaxFaultError,
    defined_name,
    is_token,
    nodes,
    parse,
    tokens,
)

# Printing and checking: taken out of the design before it is compiled.
PRINTING = frozenset(
    name + suffix for name in ("$display", "$write", "$strobe", "$monitor") for suffix in ("", "b", "o", "h")
) | {"$info", "$warning", "$error", "$monitoron", "$monitoroff", "$timeformat", "$printtimescale"}

# Left out of designs, too; a bench may dump its waves.
_SILENT = PRINTING | {"$dumpfile", "$dumpvars", "$dumpon", "$dumpoff", "$dumpall", "$dumpflush", "$dumplimit"}

# Functions of their arguments alone.
FUNCTIONS = frozenset(
    "$signed $unsigned $clog2 $bits $size $high $low $left $right $increment $dimensions $unpacked_dimensions "
    "$countones $countbits $onehot $onehot0 $isunknown $itor $rtoi $realtobits $bitstoreal $shortrealtobits "
    "$bitstoshortreal $ln $log10 $exp $sqrt $pow $floor $ceil $sin $cos $tan $asin $acos $atan $atan2 $hypot "
    "$sinh $cosh $tanh $asinh $acosh $atanh".split()
)

READERS = frozenset({"$readmemh", "$readmemb"})

_FORBIDDEN = {
    "ProceduralForceStatement": "force",
    "ProceduralReleaseStatement": "release",
    "BindDirective": "bind",
    "DPIImport": "a DPI import",
    "DPIExport": "a DPI export",
    "ConfigDeclaration": "a configuration",
    "DefParam": "defparam",
}
_UNSUPPORTED = {
    "ProgramDeclaration": "a program",
    "ClassDeclaration": "a class",
    "CheckerDeclaration": "a checker",
    "CheckerInstantiation": "a checker",
    "VirtualInterfaceType": "a virtual interface",
    "RandCaseStatement": "randcase",
    "RandSequenceStatement": "randsequence",
    "ExternModuleDecl": "an extern module",
    "ArrayOrRandomizeMethodExpression": "an array method",
}
_STRIPPED_STATEMENTS = frozenset(
    "ImmediateAssertStatement ImmediateAssumeStatement ImmediateCoverStatement AssertPropertyStatement "
    "AssumePropertyStatement CoverPropertyStatement CoverSequenceStatement".split()
)
_STRIPPED_MEMBERS = frozenset(  # and what only assertions and tests name
    "ConcurrentAssertionMember ImmediateAssertionMember ElabSystemTask FinalBlock PropertyDeclaration "
    "SequenceDeclaration ClockingDeclaration ClockingItem DefaultClockingReference DefaultDisableDeclaration "
    "CovergroupDeclaration".split()
)
_OF_ONE = frozenset("IfGenerate ElseClause LoopGenerate StandardCaseItem DefaultCaseItem".split())
"""What holds one member, and would take the next in its place."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A rule that a design breaks.

    Attributes:
        kind: "tampering" acts on the simulation; "unsupported" is what no synthesisable design needs.
        what: the construct, in a few words.
    """

    kind: Literal["tampering", "unsupported"]
    what: str


def stripped(node: Any) -> Literal["", "statement", "member"]:
    """Whether a node is left out of the compiled design, and what it was: a statement leaves an empty one."""
    kind = node.kind.name
    if kind in _STRIPPED_STATEMENTS:
        return "statement"
    if kind in _STRIPPED_MEMBERS:
        return "member"
    if kind == "ExpressionStatement":
        call = node.expr
        name = call.left if call.kind.name == "InvocationExpression" else call
        if name.kind.name == "SystemName" and name.systemIdentifier.valueText in _SILENT:
            return "statement"
    return ""


def kept(root: Any) -> Iterator[Any]:
    """Yield a node and the nodes below it that are compiled."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.kind.name == "AttributeInstance" or stripped(node):
            continue
        yield node
        waiting += reversed([part for part in node if part is not None and not is_token(part)])


def first_breach(roots: Collection[Any], files: Collection[str] = ()) -> Breach | None:
    """Return the first rule that what will be compiled breaks, or None; it may read the reference's `files`."""
    count = 0
    worst: Breach | None = None
    for root in roots:
        for node in kept(root):
            for part in node:
                if is_token(part) and part.rawText:
                    count += 1
            breach = _breach(node, root, files)
            if breach is not None and breach.kind == "tampering":
                return breach
            worst = worst or breach
        if count > MAX_TOKENS:
            return Breach(kind="unsupported", what=f"more than {MAX_TOKENS} tokens")
    return worst


def _breach(node: Any, root: Any, files: Collection[str]) -> Breach | None:
    kind = node.kind.name
    if kind in _FORBIDDEN:
        return Breach(kind="tampering", what=_FORBIDDEN[kind])
    if kind in _UNSUPPORTED:
        return Breach(kind="unsupported", what=_UNSUPPORTED[kind])
    if kind == "ModuleDeclaration" and node != root:
        return Breach(kind="unsupported", what="a module inside a module")
    if kind == "InvocationExpression" and _reads(node):
        return _reading(node, files)
    if kind == "SystemName":
        name = node.systemIdentifier.valueText
        if name in READERS and _reads(node.parent):
            return None  # judged with its arguments
        return None if name in FUNCTIONS else Breach(kind="tampering", what=f"the system task {name}")
    if kind in ("RootScope", "UnitScope"):
        return Breach(kind="tampering", what="$root or $unit")
    for part in node:
        if is_token(part):
            text = part.rawText
            if text.startswith("\\") and not _PLAIN_NAME.fullmatch(part.valueText):
                return Breach(kind="tampering", what=f"the escaped name {text[:40]}")
            if text.startswith("$") and kind != "SystemName" and len(text) > 1:
                return Breach(kind="tampering", what=f"{text[:40]} outside a call")
    return None


def _reads(node: Any) -> bool:
    return bool(
        node is not None
        and node.kind.name == "InvocationExpression"
        and node.left.kind.name == "SystemName"
        and node.left.systemIdentifier.valueText in READERS
    )


def _reading(node: Any, files: Collection[str]) -> Breach | None:
    strings = [token for token in tokens(node) if token.kind.name == "StringLiteral"]
    name = strings[0].valueText if len(strings) == 1 else ""
    first = (
        next((token for token in tokens(node.arguments.parameters) if token.rawText), None) if node.arguments else None
    )
    if name in files and first is not None and first.kind.name == "StringLiteral":
        return None
    return Breach(kind="tampering", what=f"reading the file {name[:40]!r}")


def files_read(roots: Collection[Any]) -> frozenset[str]:
    """Return the names of the files that a design reads by `$readmemh` and `$readmemb`."""
    return frozenset(
        token.valueText
        for root in roots
        for node in nodes(root)
        if node.kind.name == "InvocationExpression" and _reads(node)
        for token in tokens(node)
        if token.kind.name == "StringLiteral"
    )


def dotted(root: Any) -> list[tuple[int, int]]:
    """Return the places (first and last character) of all names with a dot in what is compiled."""
    reaches = []
    for node in kept(root):
        kind = node.kind.name
        if kind == "MemberAccessExpression" or (kind == "ScopedName" and node.separator.rawText == "."):
            reach = node.sourceRange
            reaches.append((reach.start.offset, reach.end.offset))
    return reaches


_SAFE = re.compile(r"[A-Za-z0-9 _.,:;=<>+*/()\[\]{}!?%&|^~#@-]")
_PATH = re.compile(r"(?=.*[.\[])[A-Za-z_][A-Za-z0-9_.$\[\]:]*")
_RENAMED = {"ModuleHeader", "HierarchyInstantiation", "PrimitiveInstantiation", "UdpDeclaration"}


Spelled: TypeAlias = tuple[str, str]
"""A token's text and kind."""

_NEW_LINE: Spelled = ("\n", "")


def print_design(roots: Collection[Any], names: Mapping[str, str]) -> str:
    """Return the text of some members of a source, in this order, with new names of modules.

    Raises:
        SyntaxFaultError: the text does not read back as the same tokens.
    """
    parts: list[Spelled] = []
    for root in roots:
        parts += _pieces(root, names)
        parts.append(_NEW_LINE)
    text = " ".join(text for text, _ in parts).replace(" \n ", "\n").replace("\n ", "\n")
    wanted = [part for part in parts if part is not _NEW_LINE]
    if wanted != [(token.rawText, token.kind.name) for member in parse(text).members for token in tokens(member)]:
        raise SyntaxFaultError("the design does not read back as it was written")
    return text


def print_all(parsed: Parsed, names: Mapping[str, str]) -> str:
    """Return the text of a whole trusted source, which may print; see `print_design`."""
    return print_design(parsed.members, names)


def _pieces(root: Any, names: Mapping[str, str]) -> Iterator[Spelled]:
    waiting: list[tuple[Any, Any]] = [(root, None)]  # nodes and tokens, each with its parent
    while waiting:
        part, parent = waiting.pop()
        if is_token(part):
            if part.rawText:
                if any(trivia.kind.name == "EndOfLine" for trivia in part.trivia):
                    yield _NEW_LINE
                yield _spelled(part, parent, names), part.kind.name
        elif part.kind.name != "AttributeInstance":
            standing_in = stripped(part)
            if standing_in == "statement" or (standing_in and parent is not None and parent.kind.name in _OF_ONE):
                yield "begin", "BeginKeyword"  # Icarus takes no bare `;` after `initial`
                yield "end", "EndKeyword"
            elif not standing_in:
                waiting += reversed([(child, part) for child in part if child is not None])


def _spelled(token: Any, parent: Any, names: Mapping[str, str]) -> str:
    kind = token.kind.name
    if kind == "Identifier":
        name = str(token.valueText)
        if name in names and _names_a_module(token, parent):
            return names[name]
        # an escaped plain name loses its backslash; those of flattened designs ("part.wire") need it
        return f"\\{name}" if _PATH.fullmatch(name) else name
    if kind == "StringLiteral":
        safe = (chr(byte) if _SAFE.match(chr(byte)) else f"\\{byte:03o}" for byte in token.valueText.encode())
        return f'"{"".join(safe)}"'
    return str(token.rawText)


def _names_a_module(token: Any, parent: Any) -> bool:
    if parent.kind.name in _RENAMED:
        return True
    if parent.kind.name != "NamedBlockClause":
        return False
    owner = parent.parent
    return bool(owner is not None and defined_name(owner) and defined_name(owner) == token.valueText)
