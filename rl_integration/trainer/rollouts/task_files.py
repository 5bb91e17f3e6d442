"""Which files hold the prompts of a run, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from adjudge.options import Options, Range

PLACE = "{prompt}"
"""Stands for a row's prompt in a template."""


@dataclass(frozen=True, kw_only=True)
class TaskFiles(Options, what="data option"):
    """Which prompts a policy is trained on, and which it is measured on.

    Attributes:
        path: files, folders of files, or data sets.
        prompt: column of the prompt, a text or the turns of a chat; "" takes the first of the usual names.  Of every
            column: a.b.c reaches into nested objects.
        reference: column of what the reward checks against; "" takes the first of the usual names, if there is one.
        id: column of the id; "" numbers the rows.
        extra: columns that the reward or the curriculum asks for by name.
        cohort: column of the name that tasks share which are scored together, such as a pair in both orders; they are
            trained on, held out or left out together.  "" for tasks by themselves.
        split: of data sets that have several.
        subset: configuration of a data set on the hub.
        revision: commit, tag or branch of a data set on the hub.
        limit: only the first rows, so many, of all files together; None for all.
        template: the text that is written to the policy, {prompt} standing for a prompt that is a text.
        chat: make such a text the user's turn of a chat, as models with a chat template want it.
        system: the text of a system turn before each chat that has none; "" for none.
        max_prompt_tokens: longer prompts are left out and counted; None for what the model reads less the answer.
        held_out: share of the prompts that the policy is measured on and never trained on, chosen by a hash of the
            prompt: the same in every run, whatever its seed.
        max_held_out: such prompts; those that are not needed are trained on.
        held_out_path: files to measure on instead; training prompts that are in them are left out and counted.
    """

    shorthand: ClassVar[str] = "path"

    path: tuple[str, ...]
    prompt: str = ""
    reference: str = ""
    id: str = ""
    extra: tuple[str, ...] = ()
    cohort: str = ""
    split: str = ""
    subset: str = ""
    revision: str = ""
    limit: Annotated[int, Range(ge=1)] | None = None
    template: str = PLACE
    chat: bool = False
    system: str = ""
    max_prompt_tokens: Annotated[int, Range(ge=1)] | None = None
    held_out: Annotated[float, Range(ge=0, lt=1)] = 0.1
    max_held_out: Annotated[int, Range(ge=1)] = 256
    held_out_path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.path or not all(self.path):
            raise ValueError("data.path is empty; name a file with prompts")
        if self.template.count(PLACE) != 1:
            raise ValueError(f"data.template is {self.template!r}; it must hold {PLACE} once, where the prompt goes")
