"""An evaluator for rLLM: give it to the trainer, or name it in a dataset's verifier (import_path).

Run it where rLLM is installed: python examples/frameworks/rllm_reward.py
"""

from __future__ import annotations

from types import SimpleNamespace

from adjudge.rllm import RllmEvaluator

evaluator = RllmEvaluator(scorer={"weighted": {"math": 0.9, "format": 0.1}}, fallback=0.0, correct_from=0.9)


def main() -> None:
    """Evaluate three episodes, with the fields of rLLM's types that are read."""
    for answer, truth in (("\\boxed{2}", "2"), ("\\boxed{3}", "2"), ("\\boxed{2}", "\\frac{1}{")):
        task = SimpleNamespace(instruction="What is 1 + 1?", metadata={"ground_truth": truth})
        episode = SimpleNamespace(artifacts={"answer": answer}, trajectories=[])
        found = evaluator.evaluate(task, episode)
        signals = {signal.name: round(signal.value, 3) for signal in found.signals}
        print(round(found.reward, 3), found.is_correct, signals)


if __name__ == "__main__":
    main()
