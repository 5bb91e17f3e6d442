"""A step on the way to the proof against one from the same state that raised an error (BFS-Prover).

Not covered: steps that raised no error and were not on the way; nothing says that they are worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.data_pipelines.pairs.answers import ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.data_pipelines.pairs.rule import Needs, Rule
from adjudge.data_pipelines.pairs.tree import Tree, name_of
from adjudge.io.jobs.maker import Kind


@dataclass(frozen=True, kw_only=True)
class SiblingError(Rule):
    """Each node on the way wins over its siblings that raised an error; there is no margin.

    Attributes:
        node: column of a node's name.
        parent: column of the name of the node it goes on from; empty for a first step.
        on_path: column that is true for nodes on the way to the proof.
        error: column of the error; empty, null or false where there was none.
        state: column of the state that a step was tried in: it is then the prompt, and the step alone the response.
            "" for none: then the steps before it stand before both texts.
        separator: what stands between steps.
    """

    name: ClassVar[str] = "sibling_error"

    node: str = "node"
    parent: str = "parent"
    on_path: str = "on_path"
    error: str = "error"
    state: str = ""
    separator: str = "\n"

    @property
    def needs(self) -> Needs:
        """The tree's columns."""
        columns = (self.node, self.parent, self.on_path, self.error, self.state)
        return Needs(score=False, merged=False, columns=tuple(name for name in columns if name))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What both texts begin with, and the number of the step, from 0; None where steps before it are lost."""
        return {"prefix": "text", "step": "whole"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        tree = Tree.of(group, node=self.node, parent=self.parent)
        for _, siblings in tree.families():
            good = [one for one in siblings if _said(one.value(self.on_path))]
            bad = [one for one in siblings if _said(one.value(self.error)) and not _said(one.value(self.on_path))]
            for better in good if bad else ():
                path = tree.path(name_of(better.value(self.node)))
                state = better.value(self.state) if self.state else ""
                if not isinstance(state, str) or (not state.strip() if self.state else path is None):
                    continue
                prefix = "".join(one.text + self.separator for one in path[:-1]) if path and not self.state else ""
                for worse in bad:
                    if not self.state or worse.value(self.state) == state:
                        yield Pair(
                            chosen=better,
                            rejected=worse,
                            margin=None,
                            chosen_text=prefix + better.text,
                            rejected_text=prefix + worse.text,
                            prompt=state,
                            more={"prefix": prefix, "step": len(path) - 1 if path else None},
                        )


def _said(value: Any) -> bool:
    """Whether a column says yes, or says anything: CSV spells false as text."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "0", "false", "no", "none", "null")
    return bool(value)
