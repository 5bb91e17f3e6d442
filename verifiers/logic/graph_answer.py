"""Is an answer about a graph right?  The graph decides, not the text of a gold answer: every right path is one.

| kind | the answer | right if |
|---|---|---|
| `path`, `shortest_path` | vertices | each edge is there, no vertex comes twice, the ends are right; the sum is least |
| `distance` | a number | it is the least sum of weights |
| `connected` | yes or no | there is a path |
| `component`, `components`, `component_count` | vertices; a list of them; a number | they are connected, no others |
| `cycle`, `hamiltonian_path` | vertices | it comes back; it visits each vertex once |
| `topological_order` | vertices | no edge leads back |
| `coloring` | a mapping | ends of an edge differ, with at most `size` colours |
| `independent_set`, `clique` | vertices | no two, or all, are joined, and there are `size` or more |
| `vertex_cover` | vertices | every edge has an end in it, and there are at most `size` |
| `matching` | edges | no two share an end, and there are `size` or more |
| `spanning_tree` | edges | no cycle, as connected as the graph, and lightest |

Where there is no path, cycle or order, "none" is the right answer, and where there is one, it is not; of kinds whose
answer is hard to find the reference says so ("possible": false).

Not covered: flows, planarity, isomorphism; `exact` and `numeric` compare answers to those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Final

from adjudge.protocol import Score
from adjudge.responses.answer_span import shorten
from adjudge.responses.number_text import NumberError, read_quantity
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import fields_of, shown
from adjudge.verifiers.logic.graph import WEIGHT, Graph, read_graph, vertex
from adjudge.verifiers.logic.literal import LiteralError, read_unambiguous
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.logic.ordering import BULLET, normal_item, read_items, readings
from adjudge.verifiers.logic.small_search import has_answer

_MAX_EDGE: Final = 1_000  # characters
NONE: Final = frozenset(
    {
        *("none", "no", "no path", "no cycle", "no order", "impossible", "infeasible", "unreachable"),
        *("-1", "[]", "inf", "infinity", "∞"),
    }
)

_BARE: Final = re.compile(r"[^\W\d]\w*(?: \w+)*")
_BRACKETS: Final = str.maketrans("{}", "[]")
_EMPHASIS: Final = str.maketrans("", "", "*`")
_JOINS: Final = re.compile(r"<[-–—]+>|[-–—]+>?|[→↔]")
_APART: Final = re.compile(r"\s?[<>]\s?|\s")
_LABEL: Final = re.compile(
    r"(?:(?:shortest|minimum|topological|hamiltonian|vertex) )?"
    r"(?:path|order(?:ing)?|cycle|cover|set|clique|edges|answer): ",
    re.IGNORECASE,
)
_VERDICT: Final = re.compile(r"(?:(yes|true)|no|false)(?:[,.;:] (?!.*\b(?:yes|or|but)\b)(?(1)(?!.*\b(?:no|not)\b)).*)?")
_WEIGHS: Final = re.compile(rf"[(:=]\s?(?:(?:weight|cost)\s?[:=]?\s?)?({WEIGHT.pattern})\)?\Z", re.ASCII)
_LENGTH: Final = re.compile(  # "A -> B -> C (distance 2)"
    r"[\s,;]*\(?\s?(?:with )?(?:an? )?(?:the )?(?:total |shortest )?(?:distance|length|cost|weight)(?: is| of|:| =)? ?"
    rf"({WEIGHT.pattern})\W*\Z",
    re.ASCII | re.IGNORECASE,
)
_COLOUR: Final = re.compile(r"[\w#]+(?:[ -]\w+)?")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a graph: the kind, the ends of a path, and how many things the answer may or must have.

    `possible` says whether there is an answer other than "none"; None where nobody knows, and "none" is not an answer.
    """

    graph: Graph
    kind: str
    source: str = ""
    target: str = ""
    size: int = 0
    possible: bool | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Whether an answer of one kind is right, what its question needs, and, if "none" may be one, when it is not."""

    right: Callable[[Question, str], bool]
    needs: tuple[str, ...] = ()
    possible: Callable[[Question], bool] | None = None


def is_right(question: Question, answer: str) -> bool:
    """Return whether an answer is right; `LiteralError` if it cannot be read."""
    answer = _LABEL.sub("", answer, count=1) if _LABEL.match(answer) else answer
    if question.possible is not None and normal_item(answer.rstrip(".")) in NONE:
        return not question.possible
    return question.possible is not False and RULES[question.kind].right(question, answer)


def _names(question: Question, answer: str) -> list[str]:
    items = read_items(answer)
    apart = [normal_item(step) for step in _APART.split(items[0])] if len(items) == 1 else items
    return next((names for names in (*readings(items), apart) if question.graph.nodes.issuperset(names)), items)


def _vertices(question: Question, names: list[str]) -> list[str]:
    if unknown := [name for name in names if name not in question.graph.nodes]:
        raise LiteralError("unparsable_answer", f"there is no vertex {unknown[0][:40]!r}")
    return names


def _walk(question: Question, answer: str) -> list[str]:
    """Return the vertices of a walk, which may also be written "A-B-C"."""
    names = _names(question, answer)
    if len(names) == 1 and names[0] not in question.graph.nodes:
        steps = [normal_item(step) for step in _JOINS.split(names[0])]
        names = steps if question.graph.nodes.issuperset(steps) else names
    return _vertices(question, names)


def _named(answer: str) -> Any:
    """Return the value of a literal in which names may stand without quotes."""
    try:
        return read_unambiguous(answer)
    except LiteralError:
        if "'" in answer or '"' in answer:
            raise
        return read_unambiguous(_BARE.sub(r'"\g<0>"', answer))


def _listed(answer: str) -> list[str]:
    """Return what stands apart by commas, semicolons and line breaks, without bullets and emphasis."""
    pieces = re.split(r"[,;\n]", answer.strip(" .[]{}").translate(_EMPHASIS))
    return [item for piece in pieces if (item := BULLET.sub("", piece, count=1).strip())]


def _edges(question: Question, answer: str) -> list[tuple[str, str]]:
    try:
        value = _named(answer.translate(_BRACKETS))
    except LiteralError as error:
        if error.reason != "unparsable_answer":
            raise
        value = [_joined(question, item) for item in _listed(answer)]
    if not isinstance(value, list | tuple) or not all(isinstance(e, list | tuple) and len(e) in (2, 3) for e in value):
        raise LiteralError("unparsable_answer", "it is not a list of edges")
    edges = [(normal_item(str(edge[0])), normal_item(str(edge[1]))) for edge in value]
    if len({frozenset(edge) for edge in edges}) < len(edges):
        raise LiteralError("unparsable_answer", "an edge is there twice")
    for ends, edge in zip(edges, value, strict=True):
        weight = question.graph.weights.get(ends)
        if weight is None or any(_number(str(said)) != weight for said in edge[2:]):
            raise LiteralError("wrong", f"there is no edge {edge}")
    return edges


def _joined(question: Question, item: str) -> tuple[str, ...]:
    """Return the edge that is written "A-B", or with its weight, "A-B (3)"; names may hold hyphens."""
    weight = _WEIGHS.search(item)
    text = item[: weight.start()] if weight else item
    text = text.strip("() ")
    if len(text) > _MAX_EDGE:
        raise LiteralError("too_complex", f"an edge has {len(text)} characters")
    cuts = [(normal_item(text[: join.start()]), normal_item(text[join.end() :])) for join in _JOINS.finditer(text)]
    edges = [ends for ends in cuts if question.graph.nodes.issuperset(ends)]
    if len(edges) != 1:
        raise LiteralError("unparsable_answer", f"{item[:40]!r} is not an edge")
    return (*edges[0], weight[1]) if weight else edges[0]


def _number(answer: str) -> Fraction:
    try:
        return read_quantity(answer).value
    except NumberError as error:
        raise LiteralError(error.reason, str(error)) from error


def _set(question: Question, answer: str) -> frozenset[str]:
    names = _vertices(question, _names(question, answer))
    if len(set(names)) < len(names):
        raise LiteralError("unparsable_answer", "a vertex is there twice")
    return frozenset(names)


def _path(question: Question, answer: str) -> bool:
    return _path_length(question, answer) is not None


def _shortest(question: Question, answer: str) -> bool:
    length = _path_length(question, answer)
    return length is not None and length == question.graph.distances(question.source).get(question.target)


def _path_length(question: Question, answer: str) -> Fraction | None:
    """Return the length of a path between the ends asked for, None of none; one that is told must be right."""
    told = _LENGTH.search(answer)
    path = _walk(question, answer[: told.start()] if told else answer)
    if not path or (path[0], path[-1]) != (question.source, question.target) or len(set(path)) < len(path):
        return None
    length = question.graph.length(path)
    return None if told and length != Fraction(told[1]) else length


def _distance(question: Question, answer: str) -> bool:
    return _number(answer) == question.graph.distances(question.source).get(question.target)


def _connected(question: Question, answer: str) -> bool:
    said = _VERDICT.fullmatch(normal_item(answer.rstrip(".")))
    if said is None:
        raise LiteralError("unparsable_answer", "it is neither yes nor no")
    return bool(said[1]) == _reachable(question)


def _reachable(question: Question) -> bool:
    return question.target in question.graph.distances(question.source)


def _component(question: Question, answer: str) -> bool:
    return _set(question, answer) in {part for part in question.graph.components() if question.source in part}


def _components(question: Question, answer: str) -> bool:
    value = _named(answer.translate(_BRACKETS))
    if not isinstance(value, list | tuple) or not all(isinstance(part, list | tuple) for part in value):
        raise LiteralError("unparsable_answer", "it is not a list of lists")
    parts = [[normal_item(str(node)) for node in part] for part in value]
    once = sum(map(len, parts)) == len({node for part in parts for node in part})
    return once and frozenset(map(frozenset, parts)) == question.graph.components()


def _cycle(question: Question, answer: str) -> bool:
    path = _walk(question, answer)
    if len(path) > 1 and path[0] == path[-1]:
        path = path[:-1]
    least = 2 if question.graph.directed else 3
    closed = len(path) >= least and len(set(path)) == len(path)
    return closed and question.graph.length([*path, path[0]]) is not None


def _hamiltonian(question: Question, answer: str) -> bool:
    path = _walk(question, answer)
    return len(path) == len(question.graph.nodes) == len(set(path)) and question.graph.length(path) is not None


def _topological(question: Question, answer: str) -> bool:
    order = _walk(question, answer)
    place = {node: index for index, node in enumerate(order)}
    whole = len(order) == len(place) == len(question.graph.nodes)
    return whole and all(place[start] < place[end] for start, end in question.graph.weights)


def _mapping(answer: str) -> Any:
    """Return what "A: 1, B: 2" says, with or without braces, as a mapping of texts."""
    pairs = [list(map(str.strip, re.split("->|[:=→]| [-–] ", item))) for item in _listed(answer)]
    if not all(len(pair) == 2 and _COLOUR.fullmatch(pair[1]) for pair in pairs):
        raise LiteralError("unparsable_answer", "it is not a mapping of vertices to colours")
    colours = {normal_item(node): colour for node, colour in pairs}
    if len(colours) < len(pairs):
        raise LiteralError("several_answers", "a vertex is there twice")
    return colours


def _colouring(question: Question, answer: str) -> bool:
    try:
        value = _named(answer)
    except LiteralError as error:
        if error.reason != "unparsable_answer":
            raise
        value = _mapping(answer)
    if not isinstance(value, dict) or any(isinstance(c, bool) or not isinstance(c, str | int) for c in value.values()):
        raise LiteralError("unparsable_answer", "it is not a mapping of vertices to colours")
    colours = {normal_item(str(node)): str(colour) for node, colour in value.items()}
    if len(colours) < len(value) or set(colours) != question.graph.nodes or len(set(colours.values())) > question.size:
        return False
    return all(colours[start] != colours[end] for start, end in question.graph.weights)


def _independent(question: Question, answer: str) -> bool:
    chosen = _set(question, answer)
    return len(chosen) >= question.size and not any(a in chosen and b in chosen for a, b in question.graph.weights)


def _clique(question: Question, answer: str) -> bool:
    chosen = _set(question, answer)
    edges = question.graph.weights
    return len(chosen) >= question.size and all((a, b) in edges or (b, a) in edges for a, b in combinations(chosen, 2))


def _cover(question: Question, answer: str) -> bool:
    chosen = _set(question, answer)
    return len(chosen) <= question.size and all(a in chosen or b in chosen for a, b in question.graph.weights)


def _matching(question: Question, answer: str) -> bool:
    edges = _edges(question, answer)
    return len(edges) >= question.size and len({end for edge in edges for end in edge}) == 2 * len(edges)


def _tree(question: Question, answer: str) -> bool:
    edges = _edges(question, answer)
    weight = sum((question.graph.weights[edge] for edge in edges), Fraction(0))
    return question.graph.spans(edges) and weight == question.graph.forest_weight()


_ENDS: Final = ("source", "target")

RULES: Final[Mapping[str, Rule]] = {
    "path": Rule(_path, _ENDS, _reachable),
    "shortest_path": Rule(_shortest, _ENDS, _reachable),
    "distance": Rule(_distance, _ENDS, _reachable),
    "connected": Rule(_connected, _ENDS),
    "component": Rule(_component, ("source",)),
    "components": Rule(_components),
    "component_count": Rule(lambda question, answer: _number(answer) == len(question.graph.components())),
    "cycle": Rule(_cycle, (), lambda question: question.graph.has_cycle()),
    "hamiltonian_path": Rule(_hamiltonian),
    "topological_order": Rule(_topological, (), lambda question: not question.graph.has_cycle()),
    "coloring": Rule(_colouring, ("size",)),
    "independent_set": Rule(_independent, ("size",)),
    "clique": Rule(_clique, ("size",)),
    "vertex_cover": Rule(_cover, ("size",)),
    "matching": Rule(_matching, ("size",)),
    "spanning_tree": Rule(_tree),
}

_OPTIONAL: Final = ("source", "target", "size", "possible")


@dataclass(frozen=True, kw_only=True)
class GraphAnswerVerifier(MarkedAnswerVerifier[Question]):
    """1 when an answer about a graph is right by the graph, else 0.

    The reference is `{"graph": {"edges": [[u, v, weight], ..], "directed": false}, "kind": "shortest_path", ..}` with
    the "source", "target" and "size" that the kind needs, and "possible" where the answer may be "none".
    """

    name: ClassVar[str] = "graph_answer"
    version: ClassVar[str] = "7"

    def read_reference(self, reference: Any) -> Question:
        """Return the question."""
        reference = fields_of(reference, ("graph", "kind"), _OPTIONAL, give='{"graph": .., "kind": .., ..}')
        kind = reference["kind"]
        if not isinstance(kind, str) or kind not in RULES:
            raise ReferenceFormError(f"the kind is {shown(kind)}; it must be one of {', '.join(RULES)}")
        for field in RULES[kind].needs:
            if field not in reference:
                raise ReferenceFormError(f"questions of the kind {kind} need {field!r}")
        graph = read_graph(reference["graph"])
        ends = {field: vertex(reference[field]) for field in ("source", "target") if field in reference}
        for field, name in ends.items():
            if name not in graph.nodes:
                raise BadReferenceError(f"the {field} {name[:40]!r} is not a vertex of the graph")
        size, possible = reference.get("size", 0), reference.get("possible")
        if type(size) is not int or size < 0 or (possible is not None and type(possible) is not bool):
            raise ReferenceFormError("size must be a whole number, and possible true or false")
        question = Question(graph, kind, size=size, possible=possible, **ends)
        work_out = RULES[kind].possible
        if work_out is None:
            if has_answer(kind, graph.nodes, graph.weights.keys(), size) is (possible is False):
                raise BadReferenceError(
                    "the graph has an answer, and possible is false"
                    if possible is False
                    else 'the graph has no such answer; if "none" is to be said, give "possible": false'
                )
            return question
        if possible is not None and possible != work_out(question):
            raise BadReferenceError(f"possible is {possible}, and the graph says otherwise")
        return replace(question, possible=work_out(question))

    def judge_text(self, answer: str, gold: Question) -> Score:
        """Return 1 for a right answer."""
        right = is_right(gold, answer)
        return Score.scored(float(right), "" if right else "wrong", kind=gold.kind, answer=shorten(answer))
