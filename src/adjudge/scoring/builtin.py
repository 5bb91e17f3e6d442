"""The scorers that ship: code by what it is for, and presets, which are files in `adjudge/presets`.

A new verifier is found by its file; a line in `FAMILIES` publishes it, which the documentation then has to follow.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

FAMILIES: dict[str, dict[str, str]] = {
    "answers": {
        "math": "verifiers.math.verifier:MathVerifier",
        "exact": "verifiers.text.exact:ExactVerifier",
        "numeric": "verifiers.text.numeric:NumericVerifier",
        "choice": "verifiers.text.choice:ChoiceVerifier",
        "token_f1": "verifiers.text.token_f1:TokenF1Verifier",
    },
    "programs, edits": {
        "code": "verifiers.code.verifier:CodeVerifier",
        "run": "verifiers.code.run:RunVerifier",
        "performance": "verifiers.code.performance.verifier:PerformanceVerifier",
        "patch": "verifiers.code.patches.verifier:PatchVerifier",
        "patch_tests": "verifiers.code.patches.tests_verifier:PatchTestsVerifier",
    },
    "SQL, Verilog": {
        "sql": "verifiers.sql.verifier:SqlVerifier",
        "verilog": "verifiers.verilog.verifier:VerilogVerifier",
        "simulation": "verifiers.verilog.simulation:SimulationVerifier",
    },
    "instructions, form": {
        "instructions": "verifiers.instructions.verifier:InstructionVerifier",
        "format": "verifiers.text.tag_format:FormatVerifier",
        "regex": "verifiers.text.regex:RegexVerifier",
        "length": "verifiers.text.length:LengthPenalty",
        "repetition": "verifiers.text.repetition:RepetitionPenalty",
    },
    "puzzles, tables": {
        "reasoning_gym": "verifiers.logic.gym:ReasoningGymVerifier",
        "grid": "verifiers.logic.grid:GridVerifier",
        "puzzle": "verifiers.logic.puzzle:PuzzleVerifier",
        "puzzle_table": "verifiers.logic.puzzle_table:PuzzleTableVerifier",
        "ordering": "verifiers.logic.ordering:OrderingVerifier",
        "graph_answer": "verifiers.logic.graph_answer:GraphAnswerVerifier",
        "table_answer": "verifiers.logic.table_answer:TableAnswerVerifier",
        "code_prediction": "verifiers.logic.code_prediction:CodePredictionVerifier",
    },
    "proofs": {
        "coq": "verifiers.proofs.coq:CoqVerifier",
        "lean": "verifiers.proofs.lean:LeanVerifier",
        "lean_server": "verifiers.proofs.lean_server:LeanServerScorer",
        "smt": "verifiers.proofs.smt:SmtVerifier",
        "theorem_variants": "verifiers.proofs.theorem_verdict:TheoremVerdictVerifier",
        "theorem_group": "verifiers.proofs.theorem_verdict:TheoremGroupScorer",
    },
    "texts, abstention": {
        "translation": "verifiers.text.translation.scorer:TranslationScorer",
        "abstention": "verifiers.agents.abstention.scorer:AbstentionScorer",
        "bapo": "verifiers.agents.abstention.bapo:BapoScorer",
    },
    "search agents": {
        "search_steps": "verifiers.agents.search.turns:SearchStepsVerifier",
        "search_gain": "verifiers.agents.search.turns:SearchGainVerifier",
        "search_evidence": "verifiers.agents.search.evidence:SearchEvidenceScorer",
        "search_judgements": "verifiers.agents.search.judgements:SearchJudgementsScorer",
        "search_boundary": "verifiers.agents.search.boundary:SearchBoundaryVerifier",
        "turn_critic": "verifiers.agents.search.critic:TurnCriticScorer",
        "atomic_thoughts": "verifiers.agents.search.atoms:AtomicThoughtScorer",
        "findings": "verifiers.agents.search.findings:FindingsScorer",
        "fact_gain": "verifiers.agents.search.facts:FactGainScorer",
    },
    "tool calls": {
        "tool_calls": "verifiers.agents.tools.call_verifier:ToolCallVerifier",
        "tool_execution": "verifiers.agents.tools.execution_verifier:ToolExecutionVerifier",
        "tool_tree": "verifiers.agents.tools.tree_scorer:ToolTreeScorer",
    },
    "rubrics, facts": {
        "rubric": "judges.items.rubric:RubricScorer",
        "nuggets": "judges.items.nuggets:NuggetScorer",
        "principles": "judges.items.principles:PrincipleScorer",
        "critic": "judges.items.critic:CriticScorer",
        "citations": "judges.items.citations:CitationScorer",
        "program": "verifiers.code.program:ProgramVerifier",
        "persona": "verifiers.text.persona.verifier:PersonaVerifier",
        "raiden": "verifiers.text.persona.verifier:RaidenVerifier",
    },
    "users, safety": {
        "simulated_user": "verifiers.agents.user.scorer:SimulatedUserScorer",
        "proposed_task": "verifiers.agents.user.proposed_task:ProposedTask",
        "tries": "verifiers.agents.user.tries:Tries",
        "safety_classifier": "reward_models.safety.scorer:SafetyClassifier",
    },
    "judges of one": {
        "judge": "judges.pointwise:Judge",
        "yes_no": "judges.yes_no:YesNoJudge",
        "answer_judge": "judges.pointwise:AnswerJudge",
        "rlbff": "judges.yes_no:PrincipleJudge",
        "general_reasoner": "judges.pointwise:GeneralReasonerJudge",
    },
    "judges of several": {
        "pairwise_judge": "judges.pairwise:PairwiseJudge",
        "deepseek_grm": "judges.group_ratings:DeepSeekGrmJudge",
        "listwise_judge": "judges.listwise:ListwiseJudge",
        "tournament": "judges.tournament:Tournament",
        "panel": "judges.panel:Panel",
    },
    "reward models": {
        "reward_model": "reward_models.scalar.scorer:RewardModelScorer",
        "reward_ensemble": "reward_models.scalar.ensemble:RewardEnsemble",
        "pair_model": "reward_models.scalar.pair_model:PairModel",
        "preference_model": "reward_models.baselines.preference_model:PreferenceModel",
        "process_reward": "reward_models.process.step_scorer:ProcessRewardScorer",
        "implicit_reward": "reward_models.process.likelihood:ImplicitRewardScorer",
        "likelihood": "reward_models.process.likelihood:LikelihoodScorer",
        "step_model": "reward_models.baselines.step_model:StepModel",
        "think_prm": "reward_models.generative.think_prm:ThinkPrm",
        "gen_prm": "reward_models.generative.gen_prm:GenPrm",
        "genrm": "reward_models.generative.genrm:GenRm",
        "critique_reward": "reward_models.generative.critique_reward:CritiqueReward",
        "reference_probability": "reward_models.generative.reference_probability:ReferenceProbability",
        "information_gain": "reward_models.generative.information_gain:InformationGain",
    },
    "training judges": {
        "verdict": "verifiers.verdict.verifier:VerdictVerifier",
        "verdict_orders": "verifiers.verdict.pair_scorer:BothOrdersScorer",
        "verdict_scores": "verifiers.verdict.pair_scorer:ScoreOrderScorer",
        "verdict_labels": "verifiers.verdict.support_labels:LabelListVerifier",
        "verdict_steps": "verifiers.verdict.step_verdicts:StepVerdictsVerifier",
    },
    "several in one": {
        "weighted": "scoring.compose.mixtures:Weighted",
        "gate": "scoring.compose.mixtures:Gate",
        "cascade": "scoring.compose.mixtures:Cascade",
        "ensemble": "scoring.compose.mixtures:Ensemble",
        "transform": "scoring.compose.transform:Transform",
        "calibrated": "scoring.compose.calibration:Calibrated",
        "group_length": "verifiers.text.group_length:GroupLength",
        "majority_vote": "verifiers.text.majority_vote:MajorityVote",
        "by_kind": "scoring.compose.auto:ByKind",
        "auto": "scoring.compose.auto:Auto",
    },
}
"""What ships, by what it is for: the name of each scorer, and where it is below `adjudge`."""

BUILTIN: dict[str, str] = {name: f"adjudge.{home}" for members in FAMILIES.values() for name, home in members.items()}

PRESETS = Path(__file__).parent.parent / "presets"
VERIFIERS = PRESETS.parent / "verifiers"


@functools.cache
def unlisted() -> dict[str, str]:
    """Return names and homes of verifiers that `FAMILIES` lacks: files `NAME.py` in a folder of `verifiers`."""
    homes = {}
    for file in sorted(VERIFIERS.glob("*/**/*.py")):
        head, named, _ = file.read_text(encoding="utf-8").partition(f'\n    name: ClassVar[str] = "{file.stem}"\n')
        if named and file.stem not in BUILTIN:
            (*_, its_class) = re.findall(r"^class (\w+)", head, re.MULTILINE)
            module = ".".join(file.relative_to(VERIFIERS.parent).with_suffix("").parts)
            homes[file.stem] = f"adjudge.{module}:{its_class}"
    return homes


@functools.cache
def preset_names() -> tuple[str, ...]:
    """Return the names of all presets, in alphabetical order."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yaml")))
