"""RMaxTS goes where its released code goes, and finds proofs that Coq accepts."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.engines.scripted import Said, ScriptedEngine
from tests.verifiers.proofs.conftest import need
from tests.verifiers.proofs.lean_answers import answers, kimina, server, told

from adjudge.cli import main
from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.engines.interface import Prompt
from adjudge.protocol import Sample, Score, StepScore

GAMMA = 0.99


def prefix_of(prompt: Prompt) -> str:
    assert not isinstance(prompt, str)
    return str(prompt[-1]["content"]) if prompt[-1]["role"] == "assistant" else ""


def tactic(prefix: str, draw: int, at: int) -> str:
    seed = f"{prefix}/{draw}/{at}".encode()
    return "abcxq"[hashlib.sha256(seed).digest()[0] % 5]


def proof(prefix: str, draw: int) -> str:
    """Four tactics; "x" is an error, and "q" ends a proof."""
    return "".join(f"{tactic(prefix, draw, at)}.\n" for at in range(4))


class Prover:
    """Accepts tactics up to the first "x"; a proof without one that ends in "q" is right."""

    name = "prover"
    fingerprint = "prover:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self._one(str(sample.response)) for sample in samples]

    def _one(self, text: str) -> Score:
        steps = []
        for found in re.finditer(r"(\w)\.", text):
            fine = found[1] != "x"
            steps.append(StepScore(value=float(fine), start=found.start(), end=found.end()))
            if not fine:
                return Score(value=0.0, status="scored", reason="candidate_error", steps=tuple(steps))
        return Score(value=float(text.endswith("q.")), status="scored", steps=tuple(steps))


class TreeNode:
    """`TreeNode` of DeepSeek-Prover-V1.5's `rmax_tree_search.py` at 2c4ba91, without running jobs."""

    def __init__(self, parent: TreeNode | None, code: str) -> None:
        self.parent, self.code = parent, code
        self.children: dict[str, TreeNode] = {}
        self.rewards = self.visitation = self.subtree_rewards = self.subtree_visitation = 0.0

    def update_reward(self, reward: int, first_node: bool = True) -> None:
        if first_node:
            self.rewards = self.rewards * GAMMA + reward
            self.visitation = self.visitation * GAMMA + 1.0
        self.subtree_rewards = self.subtree_rewards * GAMMA + reward
        self.subtree_visitation = self.subtree_visitation * GAMMA + 1.0
        if self.parent is not None:
            self.parent.update_reward(reward, first_node=False)


def select(root: TreeNode) -> TreeNode:
    node = root
    while node.children:
        total = node.visitation + sum(child.subtree_visitation for child in node.children.values())

        def ucb(visits: float, total: float = total) -> float:
            return math.sqrt(2.0 * math.log(max(total, 2)) / max(visits, 1e-2))

        own = node.rewards / max(node.visitation, 1e-2) + ucb(node.visitation)
        choices: list[tuple[float, TreeNode | None]] = [(own, None)]
        for child in node.children.values():
            value = child.subtree_rewards / max(child.subtree_visitation, 1e-2)
            choices.append((value + ucb(child.subtree_visitation), child))
        choices.sort(reverse=True, key=lambda one: one[0])
        if choices[0][1] is None:
            return node
        node = choices[0][1]
    return node


def by_hand(samples: int) -> list[str]:
    """The beginnings at which proofs are drawn, in order."""
    root, drawn, chosen = TreeNode(None, ""), Counter[str](), []
    for _ in range(samples):
        node = select(root)
        chosen.append(node.code)
        text = node.code + proof(node.code, drawn[node.code])
        drawn[node.code] += 1
        walk, new = root, 0
        for found in re.finditer(r"(\w)\.", text):
            if found[1] == "x":
                break
            if found[0] not in walk.children:
                walk.children[found[0]], new = TreeNode(walk, text[: found.end()]), 1
            walk = walk.children[found[0]]
        node.update_reward(new)
    return chosen


def searched(folder: Path, engine: ScriptedEngine, scorer: Any, row: dict[str, Any], **options: Any) -> Any:
    given, out = folder / "theorems.jsonl", folder / "steps.jsonl"
    given.write_text(json.dumps(row) + "\n")
    chosen: dict[str, Any] = {"method": "rmax_ts", "engine": "x:y", "overwrite": True} | options
    report = label_steps(StepsConfig(input=str(given), output=str(out), **chosen), engine=engine, scorer=scorer)
    return report, [json.loads(line) for line in out.read_text().splitlines()]


def test_proofs_begin_where_the_released_code_begins_them(tmp_path: Path) -> None:
    engine = ScriptedEngine(lambda prompt, draw: proof(prefix_of(prompt), draw))
    report, rows = searched(tmp_path, engine, Prover(), {"prompt": "p", "reference": "r"}, tree_searches=150)
    asked = [prefix_of(prompt) for prompt in engine.asked]
    assert asked == by_hand(150)
    assert len(set(asked)) > 20
    assert report.counts["calls"] == 150
    assert any(row["outcome"] for row in rows)
    for row in rows:
        cuts = [step.split("x.")[0] for step in row["steps"]]
        assert "".join(row["steps"]) == row["response"].replace("\n", "") or "x." in row["response"]
        assert all("." not in cut[:-1] for cut in cuts[:-1])


def test_a_budget_and_a_verifier_without_steps(tmp_path: Path) -> None:
    class Silent(Prover):
        def _one(self, text: str) -> Score:
            return Score.scored(super()._one(text).value or 0.0)

    engine = ScriptedEngine(lambda prompt, draw: proof(prefix_of(prompt), draw))
    row = {"prompt": "p", "reference": "r"}
    report, _ = searched(tmp_path, engine, Silent(), row, tree_searches=50, max_calls_per_row=20)
    assert report.counts["calls"] == 20
    assert report.counts["without_steps"] == 20
    assert {prefix_of(prompt) for prompt in engine.asked} == {""}


def test_coq_leads_to_a_proof_whose_steps_are_pairs_with_errors(tmp_path: Path) -> None:
    need("bwrap", "coqc")
    way = ["induction n.", "reflexivity.", "simpl.", "rewrite IHn.", "reflexivity."]

    def write(prompt: Prompt, draw: int) -> Said:
        """Two of three tactics are those of the proof, the others the one behind them there."""
        prefix = prefix_of(prompt)
        seed, begun = hashlib.sha256(f"{prefix}/{draw}".encode()).digest(), prefix.count(".")
        return "".join(f" {way[(at + (seed[at] % 3 == 0)) % 5]}" for at in range(begun, 5))

    row = {"prompt": "Prove it.", "reference": {"header": "", "statement": "Theorem t : forall n : nat, n + 0 = n."}}
    _, rows = searched(tmp_path, ScriptedEngine(write), "coq", row, tree_searches=20)
    right = [row for row in rows if row["outcome"] == 1.0]
    assert right
    assert right[0]["steps"][-1] == "reflexivity."
    pairs = tmp_path / "pairs.jsonl"
    rule = "{first_bad_step: {labels: values, rest: false}}"
    assert main.main(["data", "pairs", str(tmp_path / "steps.jsonl"), str(pairs), "--rule", rule]) == 0
    made = [json.loads(line) for line in pairs.read_text().splitlines()]
    assert made
    assert all(one["chosen"] != one["rejected"] for one in made)


def test_lean_leads_to_a_proof_line_by_line(tmp_path: Path) -> None:
    way = ["intro n", "simp only [f]", "omega"]

    def write(prompt: Prompt, draw: int) -> Said:
        prefix = prefix_of(prompt)
        seed = hashlib.sha256(f"{prefix}/{draw}".encode()).digest()
        begun = sum(line.strip() in way for line in prefix.split("\n"))
        lines = [way[at] if seed[at] % 3 else "bad" for at in range(begun, 3)]
        return "".join(f"{'by' * (not prefix and not at)}\n  {line}" for at, line in enumerate(lines))

    def judge(source: str) -> dict[str, Any]:
        bad = [number for number, line in enumerate(source.split("\n"), 1) if line.strip() == "bad"]
        wrong = [told("error", "unknown tactic", number) for number in bad]
        return {"response": {"messages": answers(source, of_response=wrong)}}

    engine = ScriptedEngine(write)
    row = {"prompt": "Prove it.", "reference": "theorem t : ∀ n : Nat, n + 0 = n"}
    with server(kimina(judge)) as (url, _):
        report, rows = searched(tmp_path, engine, {"lean_server": {"url": url}}, row, tree_searches=12)
    begun = {prefix_of(prompt) for prompt in engine.asked}
    assert {"", "by\n  intro n", "by\n  intro n\n  simp only [f]"} <= begun
    assert not any("bad" in prefix for prefix in begun)
    assert "without_steps" not in report.counts
    assert any(row["outcome"] == 1.0 and row["steps"][-1] == "omega" for row in rows)
