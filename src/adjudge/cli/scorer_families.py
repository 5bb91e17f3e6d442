"""The families under which `adjudge scorers` lists the names, in the README's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adjudge.scoring import presets

FAMILIES: Final[Mapping[str, str]] = {
    "answers": "math exact numeric choice token_f1",
    "programs": "code run performance",
    "edits of a repository": "patch patch_tests",
    "SQL, Verilog": "sql verilog simulation",
    "instructions, form": "instructions format regex length repetition",
    "puzzles, tables, graphs": (
        "reasoning_gym grid puzzle puzzle_table ordering graph_answer table_answer code_prediction"
    ),
    "proofs": "coq lean lean_server smt theorem_variants theorem_group",
    "translation, abstention": "translation abstention bapo",
    "search agents": (
        "search_steps search_gain search_evidence search_judgements search_boundary turn_critic atomic_thoughts "
        "findings fact_gain"
    ),
    "tool calls": "tool_calls tool_execution tool_tree",
    "rubrics, facts, roles": "rubric nuggets principles critic citations program persona raiden",
    "users, safety": "simulated_user safety_classifier",
    "judges of one response": (
        "judge yes_no answer_judge mt_bench prometheus g_eval j1_score self_rewarding zyn rlbff general_reasoner "
        "compass_verifier"
    ),
    "judges of several": (
        "pairwise_judge mt_bench_pair arena_hard prometheus_pair rm_r1 j1_pair j1_budget deepseek_grm listwise_judge "
        "tournament panel"
    ),
    "reward models": (
        "reward_model reward_ensemble pair_model preference_model process_reward implicit_reward step_model think_prm "
        "gen_prm genrm critique_reward reference_probability information_gain"
    ),
    "training judges": "verdict verdict_orders verdict_scores verdict_labels verdict_steps",
    "several in one": "weighted gate cascade ensemble transform calibrated by_kind auto",
}
"""Each family, and the names in it."""

PUBLISHED: Final = "published recipes"
OTHERS: Final = "plug-ins"


def family_of(name: str) -> str:
    """Return the family of a scorer; one that no family names is a published recipe or a plug-in."""
    others = PUBLISHED if name in presets.names() else OTHERS
    return next((family for family, names in FAMILIES.items() if name in names.split()), others)
