"""A parsed design as plain text: macros expanded, no directives, comments, attributes or printing, modules renamed.

What is simulated is this text, never the response's own.  Two parsers of one text can disagree about what it says
(`__ICARUS__` is defined for one and not for the other; a triple-quoted string of SystemVerilog 2023 hides code from
one of them), and such a disagreement is a way around every rule.  So each token is written out apart from the next,
strings are written with octal escapes, and the text must come back from the parser as the same tokens.

Not covered: layout.  Lines are kept, so that a simulator's messages point to the right place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from adjudge.hardware.front_end import Parsed, SyntaxFaultError, defined_name, is_token, parse, tokens
from adjudge.verifiers.verilog.rules import stripped

_SAFE = re.compile(r"[A-Za-z0-9 _.,:;=<>+*/()\[\]{}!?%&|^~#@-]")
_PATH = re.compile(r"(?=.*[.\[])[A-Za-z_][A-Za-z0-9_.$\[\]:]*")
_RENAMED = {"ModuleHeader", "HierarchyInstantiation", "PrimitiveInstantiation", "UdpDeclaration"}


Spelled: TypeAlias = tuple[str, str]
"""A token's text and kind."""

_NEW_LINE: Spelled = ("\n", "")


def print_design(roots: Collection[Any], names: Mapping[str, str]) -> str:
    """Return the text of some members of a source.

    Args:
        roots: what to print, in this order.
        names: new names of modules.

    Raises:
        SyntaxFaultError: the text does not read back as the same tokens.
    """
    parts: list[Spelled] = []
    for root in roots:
        parts += _pieces(root, names)
        parts.append(_NEW_LINE)
    text = " ".join(text for text, _ in parts).replace(" \n ", "\n").replace("\n ", "\n")
    wanted = [part for part in parts if part is not _NEW_LINE]
    found = [(token.rawText, token.kind.name) for member in parse(text).members for token in tokens(member)]
    if wanted != found:
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
            if standing_in == "statement":
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
