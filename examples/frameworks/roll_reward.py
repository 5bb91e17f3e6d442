"""A reward worker that ROLL's configuration can name: `worker_cls: roll_reward.MathWorker`."""

from __future__ import annotations

from adjudge.roll import RollReward

MathWorker = RollReward(scorer="math", fallback=0.0).worker()
