"""TRL's own trainer, of a version before it awaits rewards, with adjudge's: one data set in five forms, two steps each.

Prints one line of JSON.

Usage: python real_trl.py FOLDER
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

import trl
from tests.engines.tiny_models import write_model
from tests.rl_integration.mixed_data import FORMS, called, completions, dataset, rewards, steps, trained
from transformers import AutoTokenizer


class Judged:
    """None, 1, 0 and 1 for the four completions of a prompt."""

    __name__ = "judged"

    def __call__(self, completions: list[Any], **columns: Any) -> list[float | None]:
        """Return them for every prompt."""
        return [None, 1.0, 0.0, 1.0] * (len(completions) // 4)


def main() -> None:
    """Train in every form, and with a reward that is None for some completions."""
    gc.freeze()  # a trainer begins with a search for garbage, in all that was imported
    folder = Path(sys.argv[1])
    model = str(write_model(folder / "model"))  # here, since a tokenizer of a later transformers cannot be read
    tokenizer = AutoTokenizer.from_pretrained(model, model_input_names=["input_ids", "attention_mask"])
    tokenizer.save_pretrained(model)  # transformers 4 adds the types of tokens, which the model does not take
    forms = {}
    for form in FORMS:
        given = rewards(form)
        told = [called(reward, form, completions(form)) for reward in given]
        forms[form] = {
            "called": told,
            "logged": steps(trained(model, str(folder / form), dataset(form), given, prompts=4)),
        }
    alone = trained(model, str(folder / "alone"), dataset("json_text"), [Judged()])
    advantages = list(alone._logs["advantages"])[:4]
    print(json.dumps({"version": trl.__version__, "forms": forms, "advantages": advantages}))


if __name__ == "__main__":
    main()
