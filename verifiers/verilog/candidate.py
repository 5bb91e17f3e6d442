"""A response as a design that is fit to be compiled, or the reason why not.

Where in a response the design stands.

With code fences, the last fence that defines the wanted module counts, and modules it lacks are taken from the other
fences, the last definition first; an `<answer>` block narrows the search.  Without fences, the text from the first
line that starts like Verilog to the last `endmodule`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.verifiers.verilog.front_end import (
    InterfaceError,
    Parsed,
    Port,
    StoppedError,
    SyntaxFaultError,
    defined_name,
    integers,
    is_module,
    nodes,
    own_paths,
    parse,
    read_ports,
    tokens,
)
from adjudge.verifiers.verilog.rules import dotted, first_breach, print_design

_FENCE = re.compile(  # it ends in a line of its own, before a remark, behind the last word, or where another one begins
    r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)([^\n]*)\n(.*?)"
    r"(?:^[ \t]*\1(?!`*[ \t]*[\w+.#-]+[ \t]*$)[^\n]*|(?<=endmodule)[ \t]*\1[^\n]*|\1[ \t]*$|(?=^[ \t]*\1)|\Z)",
    re.M | re.S,
)
_LANGUAGES = frozenset({"", "verilog", "systemverilog", "system-verilog", "sv", "v", "vhdl-verilog", "hdl", "text"})
_START = re.compile(r"^[ \t]*(?:module|package|primitive|interface|typedef|import|`\w+|\(\*)", re.M)
_END = re.compile(r"\bend(?:module|package|primitive|interface)\b(?:[ \t]*:[ \t]*\w+)?")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.S)
_ASKED = re.compile(r"('[sS]?[dD][ \t]*[0-9][0-9_]*)(?=\?)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_INCLUDE = re.compile(r'^[ \t]*`include[ \t]+"[^"\n]*"', re.M)
_DECLARED = re.compile(
    r"(?:^[ \t]*`define|\bpackage|\binterface|\btypedef\b[^;]*?[\s}])[ \t]*(\w+)[ \t]*(?=[;\s(#])", re.M
)
_MODULE = re.compile(r"^[ \t]*(?:\(\*.*?\*\)[ \t]*)?(?:module|macromodule)\s+(?:automatic\s+|static\s+)?(\w+)", re.M)


def find_designs(text: str, top: str) -> list[str]:
    """Return the pieces of a response, without its reasoning, that may hold the design, the one that counts first.

    These are the last fence that seems to define `top`, then the other fences from the last to the first; or the one
    run of Verilog in a text without fences; or nothing.  A port list behind the design is not the design.  Packages,
    macros and the like that it names come from fences without a module, in which files stand that it includes.
    """
    text = re.sub(r"[^\S\n\t]", " ", re.sub(r"\r\n?", "\n", text))
    answers = _ANSWER.findall(text)
    if answers:
        text = answers[-1]
    every = [_decimals_apart(_body(*match.groups()[1:])) for match in _FENCE.finditer(text)]
    fences = [fence for fence in every if _MODULE.search(fence) or _END.search(fence)]
    if not fences:
        return [_decimals_apart(run)] if (run := _run_of_verilog(text)) else []
    fences.reverse()
    defining = [fence for fence in fences if top in _MODULE.findall(fence)]
    whole = [fence for fence in defining if not _is_sketch(fence, top)]
    first = next(iter(whole or defining or fences))
    rest = [fence for fence in fences if fence is not first]
    if len(every) > 1:
        first = _INCLUDE.sub("", first)
    for header in reversed([fence for fence in every if not _MODULE.search(fence)]):
        declared = set(_DECLARED.findall(header)) - set(_DECLARED.findall(first))
        if any(re.search(rf"\b{name}\b", first) for name in declared):
            first = f"{header}\n{first}"
    return [first, *rest]


def _is_sketch(source: str, top: str) -> bool:
    """Return whether a source leaves the body of a module out."""
    code = _COMMENT.sub(" ", source)
    return bool(re.search(rf"\.\.\.|…|\bmodule\s+{re.escape(top)}\b[^;]*;\s*endmodule\b", code))


def _body(label: str, rest: str, body: str) -> str:
    """Return what a fence holds, which may begin on the line of the fence; "" where it is of another language."""
    if _START.match(f"{label}{rest}"):
        return f"{label}{rest}\n{body}"
    if label.lower() not in _LANGUAGES:
        return ""
    return f"{rest}\n{body}" if _START.match(rest) else body


def _decimals_apart(source: str) -> str:
    """Return a source with a blank between a decimal number and the `?` behind it, which slang takes for a digit."""
    return _ASKED.sub(r"\1 ", source)


def _run_of_verilog(text: str) -> str:
    start = _START.search(text)
    ends = [match.end() for match in _END.finditer(text)]
    return text[start.start() : ends[-1]] if start and ends and ends[-1] > start.start() else ""


_UNIT_MEMBERS = frozenset(
    "ParameterDeclarationStatement TypedefDeclaration FunctionDeclaration TaskDeclaration PackageImportDeclaration "
    "PackageDeclaration InterfaceDeclaration".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A design that keeps the rules.

    Attributes:
        top: the new name of its top module.
        shared_names: names that it declares outside modules.
    """

    source: str
    top: str
    ports: tuple[Port, ...]
    constants: tuple[int, ...]
    shared_names: frozenset[str]


def read_candidate(text: str, top: str, prefix: str, files: Collection[str] = ()) -> Candidate:
    """Return the design `top` that a response, without its reasoning, holds.

    Its modules' names get the prefix in front; it may read the data files.

    Raises:
        StoppedError: there is none, or it cannot be compiled.
    """
    pieces = find_designs(text, top)
    if not pieces:
        raise StoppedError("no_answer", "extract", "the response holds no module")
    try:
        members, _trees = _gather(pieces, top)
        names = {name: prefix + name for member in members if (name := defined_name(member))}
        if breach := first_breach(members, files):
            reason = "tampering" if breach.kind == "tampering" else "candidate_error"
            raise StoppedError(reason, "rules", f"the design uses {breach.what}")
        source = print_design(members, names)
        ports = read_ports(source, names[top])
        parsed = parse(source)
        places = {place for member in parsed.members for place in dotted(member)}
        own = own_paths(source, names[top]) if places else set()
    except SyntaxFaultError as error:
        raise StoppedError("candidate_error", "syntax", str(error)) from error
    except InterfaceError as error:
        raise StoppedError("candidate_error", "ports", str(error)) from error
    if foreign := [place for place in places if place[0] not in own]:
        start, end = min(foreign)
        name = source[start:end].replace(" ", "")[:80]
        reason = "candidate_error" if name.split(".")[0] in _instances(parsed) else "tampering"
        raise StoppedError(reason, "rules", f"the hierarchical name {name!r}")
    return Candidate(
        source=source,
        top=names[top],
        ports=ports,
        constants=tuple(sorted(integers(parsed))),
        shared_names=frozenset(_shared(members)),
    )


def _gather(pieces: Sequence[str], top: str) -> tuple[list[Any], list[Parsed]]:
    """Return the nodes that are compiled of a response, other fences filling gaps, and the trees that keep them alive.

    Raises:
        StoppedError, SyntaxFaultError: it does not have the module.
    """
    parsed = parse(pieces[0])
    defined = [name for node in parsed.members if (name := defined_name(node))]
    if twice := sorted({name for name in defined if defined.count(name) > 1}):
        raise StoppedError("candidate_error", "syntax", f"the module {twice[0]!r} is defined twice")
    if top not in parsed.modules or not is_module(parsed.modules[top]):
        have = ", ".join(parsed.modules) or "none"
        raise StoppedError("candidate_error", "ports", f"the response has no module {top!r}; it has {have[:100]}")
    needed = set(parsed.reachable(top))
    members = [node for node in parsed.members if node.kind.name in _UNIT_MEMBERS or defined_name(node) in needed]
    trees = [parsed]
    missing = {name for module in needed for name in parsed.instantiated(module)} - needed
    for piece in pieces[1:]:
        known = {defined_name(node) for node in members}
        missing -= known
        try:
            other = parse(piece) if missing else None
        except SyntaxFaultError:
            continue
        if other is not None:
            wanted = {name for start in missing & other.modules.keys() for name in other.reachable(start)} - known
            members.extend(other.modules[name] for name in other.modules if name in wanted)
            trees.append(other)
    return members, trees


def _instances(parsed: Parsed) -> set[str]:
    """Return the names of all instances in a source."""
    return {
        node.decl.name.valueText
        for member in parsed.members
        for node in nodes(member)
        if node.kind.name == "HierarchicalInstance" and node.decl is not None
    }


def _shared(members: Sequence[Any]) -> set[str]:
    """Return the identifiers in what stands outside modules; a superset of what it declares."""
    return {
        token.valueText
        for member in members
        if member.kind.name in _UNIT_MEMBERS
        for token in tokens(member)
        if token.kind.name == "Identifier"
    }
