"""An environment for SkyRL: register it, and rows whose `env_class` is "adjudge_math" are scored by it.

    skyrl_gym.register(id="adjudge_math", entry_point="skyrl_reward:MathEnvironment")

Run it where SkyRL-Gym is installed: python examples/frameworks/skyrl_reward.py
"""

from __future__ import annotations

from adjudge.skyrl import SkyRLReward

MathEnvironment = SkyRLReward(scorer="math", fallback=0.0).environment()


def main() -> None:
    """Play three episodes of one turn, the last with a reference that cannot be read."""
    for answer, truth in (("\\boxed{2}", "2"), ("\\boxed{3}", "2"), ("\\boxed{2}", "\\frac{1}{")):
        environment = MathEnvironment(extras={"reward_spec": {"ground_truth": truth}})
        environment.init([{"role": "user", "content": "What is 1 + 1?"}])
        step = environment.step(answer)
        print(step["reward"], step["metadata"])


if __name__ == "__main__":
    main()
