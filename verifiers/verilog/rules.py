r"""What a design may not say: everything that acts on the simulation instead of describing hardware.

The rules hold for the modules that the top needs; a test bench that a response adds for show is not compiled.
A system task or function must be on a list.  Printing is taken out, not punished.  Everything that names a scope by
a path (`tb.dut.q`), forces a net, binds into another module, leaves Verilog (DPI) or reads a file is tampering.

Icarus resolves a bare task name upwards through the instances, and takes a call of the escaped name `\$finish ` for
the system task; both were tried with version 11.  So escaped names that are no plain names are refused here, and the
scopes of a user's test bench get secret names (`adjudge.verifiers.verilog.rewriting`).

Not covered: whether the design is good hardware.  Delays, `initial` and loops are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.hardware.front_end import MAX_TOKENS, is_token, nodes, tokens

# Printing and checking: taken out of the design before it is compiled.
PRINTING = frozenset(
    name + suffix for name in ("$display", "$write", "$strobe", "$monitor") for suffix in ("", "b", "o", "h")
) | {"$info", "$warning", "$error", "$monitoron", "$monitoroff", "$timeformat", "$printtimescale"}

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
    "ClockingDeclaration": "a clocking block",
    "RandCaseStatement": "randcase",
    "RandSequenceStatement": "randsequence",
    "CovergroupDeclaration": "a covergroup",
    "ExternModuleDecl": "an extern module",
    "ArrayOrRandomizeMethodExpression": "an array method",
}
_STRIPPED_STATEMENTS = frozenset(
    "ImmediateAssertStatement ImmediateAssumeStatement ImmediateCoverStatement AssertPropertyStatement "
    "AssumePropertyStatement CoverPropertyStatement CoverSequenceStatement".split()
)
_STRIPPED_MEMBERS = frozenset("ConcurrentAssertionMember ImmediateAssertionMember ElabSystemTask FinalBlock".split())
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
        if name.kind.name == "SystemName" and name.systemIdentifier.valueText in PRINTING:
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
    """Return the first rule that a design breaks, or None.

    Args:
        roots: the modules, packages and declarations that will be compiled.
        files: names of data files that the design may read, because the reference design does.
    """
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
    found = []
    for node in kept(root):
        kind = node.kind.name
        if kind == "MemberAccessExpression" or (kind == "ScopedName" and node.separator.rawText == "."):
            reach = node.sourceRange
            found.append((reach.start.offset, reach.end.offset))
    return found
