"""A user's test bench, changed so that a design inside it can neither reach it nor speak for it.

A bench and the design it tests share one simulation, and Verilog lets a design reach out: by a path
(`tb.good.q`), by calling a task of the bench by its bare name, by driving an input.  So

- every module, instance, task, function and block of the bench gets a secret name;
- whatever the bench prints carries a secret key, and only lines with the key count;
- the design sits in a wrapper (`adjudge.verifiers.verilog.bench_run`) under the name that the bench instantiates.

Not covered: benches that print texts (`%s`) which the design computes on a line of the bench's own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.verilog.front_end import Parsed, nodes
from adjudge.verifiers.verilog.reference import Reference, parse_reference
from adjudge.verifiers.verilog.rules import PRINTING

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<system>\$[A-Za-z_$][\w$]*)
    |(?P<directive>`[A-Za-z_]\w*)
    |(?P<escaped>\\[^\s]+)
    |(?P<number>\d[\w.']*|'[sS]?[bBoOdDhH]\s*[\w?]+)
    |(?P<name>[A-Za-z_][\w$]*)
    |(?P<space>\s+)
    |(?P<other>.)""",
    re.S | re.X,
)
_KEYED = PRINTING | {"$fatal"}
_TASKS = frozenset({"TaskDeclaration", "FunctionDeclaration"})


@dataclass(frozen=True, kw_only=True)
class KeyedBench:
    """A bench, rewritten.

    Attributes:
        top: its top module's new name.
        secret: what the new names hold.
        overrides: whether it gives the design parameters.
        helpers: new names of the reference design's modules, where the bench uses them.
    """

    source: str
    top: str
    secret: str
    overrides: bool
    helpers: dict[str, str]

    @property
    def key(self) -> str:
        """What each line that it prints begins with."""
        return f"<{self.secret}>"

    @property
    def inner(self) -> str:
        """Name of the design's instance in the wrapper."""
        return f"{self.secret}_inner"

    def under(self, secret: str) -> KeyedBench:
        """Return this bench with another secret."""
        return replace(
            self,
            source=self.source.replace(self.secret, secret),
            top=self.top.replace(self.secret, secret),
            secret=secret,
            helpers={name: new.replace(self.secret, secret) for name, new in self.helpers.items()},
        )


def key_bench(reference: Reference, secret: str) -> KeyedBench:
    """Return a reference's bench, rewritten with a secret.

    Raises:
        BadReferenceError: the bench has no single top, or does not instantiate the design.
    """
    parsed = parse_reference(reference.testbench, "test bench")
    tops = parsed.tops()
    if len(tops) != 1:
        raise BadReferenceError(f"the test bench has the top modules {tops}; it must have one")
    instances = list(_instances(parsed, reference.top))
    if not instances:
        raise BadReferenceError(f"the test bench does not instantiate the module {reference.top!r}")
    if reference.top in parsed.modules:
        raise BadReferenceError(f"the test bench defines {reference.top!r}, the module that the response must define")
    names = {name: f"{secret}_{name}" for name in _scopes(parsed)}
    helpers: dict[str, str] = {}
    if reference.design:
        design = parse_reference(reference.design, "reference design")
        used = {name for module in parsed.modules for name in parsed.instantiated(module)} - {reference.top}
        if used := used & design.modules.keys():
            helpers = {name: f"{secret}_{name}" for name in design.modules}
            names.update({name: helpers[name] for name in used})
    tested = {item.decl.name.valueText for node in instances for item in node.instances if item.decl is not None}
    overrides = any(node.parameters is not None for node in instances)
    bench = KeyedBench(source="", top=names[tops[0]], secret=secret, overrides=overrides, helpers=helpers)
    return replace(bench, source="".join(_rewritten(reference.testbench, names, tested, bench.key, bench.inner)))


def _instances(parsed: Parsed, top: str) -> Iterator[Any]:
    for module in parsed.modules.values():
        for node in nodes(module):
            if node.kind.name == "HierarchyInstantiation" and node.type.valueText == top:
                yield node


def _scopes(parsed: Parsed) -> set[str]:
    """Return the names of a bench's modules, instances, tasks, functions and blocks."""
    names = set(parsed.modules)
    for member in parsed.members:
        for node in nodes(member):
            kind = node.kind.name
            if kind == "HierarchicalInstance" and node.decl is not None:
                names.add(node.decl.name.valueText)
            elif kind in _TASKS:
                names.add(str(node.prototype.name).strip())
            elif kind == "NamedBlockClause" or kind == "NamedLabel":
                names.add(node.name.valueText)
    return {name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name)}


def _rewritten(source: str, names: dict[str, str], tested: Collection[str], key: str, inner: str) -> Iterator[str]:
    """Yield the pieces of a bench: scopes renamed, printing keyed, paths into the design led through the wrapper."""
    pieces = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(source)]
    solid = [at for at, (kind, _) in enumerate(pieces) if kind not in ("space", "comment")]
    after = dict(itertools.pairwise(solid))
    before = {there: here for here, there in after.items()}
    depth, keyed = 0, -1  # open parentheses; the depth of the call whose strings are keyed
    for at, (kind, text) in enumerate(pieces):
        if kind == "name" and text in names and not _is_port(pieces, before, after, at):
            yield names[text]
            if text in tested and _text(pieces, after.get(at)) == ".":
                yield f".{inner}"
            continue
        if kind == "string" and keyed >= 0:
            yield text[:-1].replace("\\n", "\\n" + key) + '"'
            continue
        yield text
        if text == "(" and kind == "other":
            depth += 1
            if keyed < 0 and _text(pieces, before.get(at)) in _KEYED and _text(pieces, after.get(at)) != ")":
                keyed = depth
                yield _opening(pieces, before, after, at, key)
        elif text == ")" and kind == "other":
            keyed = -1 if depth == keyed else keyed
            depth -= 1


def _opening(pieces: list[tuple[str, str]], before: dict[int, int], after: dict[int, int], at: int, key: str) -> str:
    """Return what comes first in a printing call; `$fatal` has a number there."""
    if _text(pieces, before.get(at)) == "$fatal" and pieces[after[at]][0] != "string":
        return ""
    return f'"{key}", '


def _is_port(pieces: list[tuple[str, str]], before: dict[int, int], after: dict[int, int], at: int) -> bool:
    """Whether a name is the port in `.port(net)`: a dot before it that follows no name, a parenthesis after it."""
    dot = before.get(at)
    if dot is None or pieces[dot][1] != "." or _text(pieces, after.get(at)) not in ("(", ",", ")"):
        return False
    return _text(pieces, before.get(dot)) in ("(", ",")


def _text(pieces: list[tuple[str, str]], at: int | None) -> str:
    return "" if at is None else pieces[at][1]
