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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Score
from adjudge.verifiers.logic.graph import read_graph, vertex
from adjudge.verifiers.logic.graph_rules import RULES, Question, is_right
from adjudge.verifiers.logic.literal import LiteralError
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.text.answer_span import shorten

_FIELDS: Final = frozenset({"graph", "kind", "source", "target", "size", "possible"})


@dataclass(frozen=True, kw_only=True)
class GraphAnswerVerifier(MarkedAnswerVerifier[Question]):
    """1 when an answer about a graph is right by the graph, else 0.

    The reference is `{"graph": {"edges": [[u, v, weight], ..], "directed": false}, "kind": "shortest_path", ..}` with
    the "source", "target" and "size" that the kind needs, and "possible" where the answer may be "none".
    """

    name: ClassVar[str] = "graph_answer"
    version: ClassVar[str] = "2"

    def read_reference(self, reference: Any) -> Question:
        """Return the question.

        Raises:
            BadReferenceError: the graph, the kind or what the kind needs is missing or malformed, or the graph
                contradicts "possible".
        """
        if not isinstance(reference, Mapping) or not {"graph", "kind"} <= set(reference) <= _FIELDS:
            raise BadReferenceError(
                f'the reference is {shorten(repr(reference), 60)}; give {{"graph": .., "kind": .., ..}}', mistake=True
            )
        kind = reference["kind"]
        if not isinstance(kind, str) or kind not in RULES:
            raise BadReferenceError(
                f"the kind is {shorten(repr(kind), 40)}; it must be one of {', '.join(RULES)}", mistake=True
            )
        for field in RULES[kind].needs:
            if field not in reference:
                raise BadReferenceError(f"questions of the kind {kind} need {field!r}", mistake=True)
        graph = read_graph(reference["graph"])
        ends = {field: vertex(reference[field]) for field in ("source", "target") if field in reference}
        for field, name in ends.items():
            if name not in graph.nodes:
                raise BadReferenceError(f"the {field} {name[:40]!r} is no vertex of the graph", mistake=False)
        size, possible = reference.get("size", 0), reference.get("possible")
        if type(size) is not int or size < 0 or (possible is not None and type(possible) is not bool):
            raise BadReferenceError("size must be a whole number, and possible true or false", mistake=True)
        question = Question(graph, kind, size=size, possible=possible, **ends)
        work_out = RULES[kind].possible
        if work_out is None:
            return question
        if possible is not None and possible != work_out(question):
            raise BadReferenceError(f"possible is {possible}, and the graph says otherwise", mistake=False)
        return replace(question, possible=work_out(question))

    def judge_text(self, answer: str, gold: Question) -> Score:
        """Return 1 for a right answer."""
        try:
            right = is_right(gold, answer)
        except LiteralError as error:
            return Score.scored(0.0, error.reason, kind=gold.kind, answer=shorten(answer), error=str(error))
        return Score.scored(float(right), "" if right else "wrong", kind=gold.kind, answer=shorten(answer))
