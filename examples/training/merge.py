"""A model whose weights are the mean of those of others, such as of one that thinks long and one that is short.

    python examples/training/merge.py merged LONG SHORT

The models are folders, of one architecture and with one tokenizer, and were trained from one start.
"""

from __future__ import annotations

import sys

from adjudge.reward_models.scalar.weight_average import average_checkpoints


def main(out: str, *models: str) -> None:
    """Write the model into a new folder."""
    average_checkpoints(models, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
