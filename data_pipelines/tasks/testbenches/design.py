"""A reference design, read: its ports, and its source under the name that a test bench asks for.

Not covered: whether it is right, and designs with inout ports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.hardware.front_end import SyntaxFaultError, parse
from adjudge.hardware.integers import integers
from adjudge.hardware.interface import Interface, InterfaceError, read_interface

_NAME = re.compile(r"[A-Za-z_]\w*")
_MOST_BITS = 65_536  # of all ports; the widest of RTLLM and VerilogEval has 1,026


class BadDesignError(ValueError):
    """A reference design that no bench can be made for.

    Attributes:
        reason: what is wrong, in snake_case.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Design:
    """A reference design.

    Attributes:
        source: its text.
        module: its top module.
        top: the name under which a bench instantiates it.
        interface: its ports, clocks and resets.
        integers: the integers that stand in it.
        files: data files that it reads, by name.
    """

    source: str
    module: str
    top: str
    interface: Interface
    integers: tuple[int, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def under_top(self, source: str = "") -> str:
        """Return the design, or a changed one with the same modules, as a source that defines `top`."""
        source = source or self.source
        if self.module == self.top:
            return source
        ports = self.interface.ports
        header = ", ".join(f"{port.direction} wire [{port.width - 1}:0] {port.name}" for port in ports)
        connections = ", ".join(f".{port.name}({port.name})" for port in ports)
        return (
            f"{source}\nmodule {self.top} ({header});\n  {self.module} its_{self.module} ({connections});\nendmodule\n"
        )

    def reference(self, bench: str = "", files: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the `verilog` scorer's reference: beside the design, or in a bench."""
        every = {**self.files, **(files or {})}
        return {
            **({"testbench": bench} if bench else {}),
            "reference": self.source,
            "reference_top": self.module,
            "top": self.top,
            **({"files": every} if every else {}),
        }


def read_design(source: Any, top: Any = "", files: Any = None) -> Design:
    """Return a reference design.

    Args:
        source: its text.
        top: the name that a bench shall ask for; "" or None for its own.
        files: data files that it reads, {name: text}, or None.

    Raises:
        BadDesignError: it is none, or one that a bench of vectors cannot drive.
    """
    if not isinstance(source, str) or not source.strip():
        raise BadDesignError("no_design", "the row has no design")
    if files and not (isinstance(files, Mapping) and all(isinstance(text, str) for text in files.values())):
        raise BadDesignError("bad_files", "the files are no mapping of names to texts")
    try:
        parsed = parse(source)
        tops = parsed.tops()
        if len(tops) != 1:
            raise BadDesignError("several_tops", f"the design has the top modules {tops}")
        interface = read_interface(source, tops[0])
    except (SyntaxFaultError, InterfaceError) as error:
        raise BadDesignError("bad_design", str(error)) from error
    name = top or tops[0]
    if not isinstance(name, str) or not _NAME.fullmatch(name) or (name != tops[0] and name in parsed.modules):
        raise BadDesignError("bad_top", f"the top is {name!r:.60}")
    if not interface.outputs:
        raise BadDesignError("no_outputs", "the design has no outputs")
    if any(port.direction == "inout" for port in interface.ports):
        raise BadDesignError("inout_ports", "the design has inout ports")
    if sum(port.width for port in interface.ports) > _MOST_BITS:
        raise BadDesignError("ports_too_wide", f"the design's ports have more than {_MOST_BITS} bits")
    return Design(
        source=source,
        module=tops[0],
        top=name,
        interface=interface,
        integers=tuple(sorted(integers(parsed))),
        files=dict(files or {}),
    )
