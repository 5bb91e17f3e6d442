"""Options of the embedded engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from adjudge.engines.model_digest import is_folder
from adjudge.options import Options, Range


@dataclass(frozen=True, kw_only=True)
class TransformersConfig(Options, what="engine option"):
    """Which model, where, and how it is run.

    Attributes:
        model: a folder, or a name on the Hugging Face hub.
        revision: branch, tag or commit on the hub; "" for the newest.
        adapter: a folder or name of a PEFT adapter, merged into the weights; "" for none.
        device: "cpu", "cuda:1"; "cuda" is the GPU that is current in the thread that makes the engine or asks it first,
            or else that of the launcher's LOCAL_RANK; "auto" is "cuda" if there is a GPU.
        dtype: "float32", "bfloat16", "float16"; "auto" is float32 on a CPU, and what the checkpoint has on a GPU, where
            the body of one in float32 is kept in bfloat16 if the GPU computes in that.
        attn: "sdpa", "eager", "flash_attention_2"; "auto" is what the model prefers.
        token_budget: most tokens of a batch, with padding; a completion counts a quarter of its most tokens.  None for
            4,096 on a CPU, where larger batches only fall out of its caches, and 32,768 on a GPU.  Where memory ends,
            smaller batches are tried.
        max_length: most tokens of a prompt and what follows; None for the model's window.
        share_prefixes: read what prompts have in common once, where that is worth it.
        compile: compile a classifier's layers with torch.compile where rows are packed: the first batch takes half a
            minute more, and on a GPU later ones less.
        chat_template_kwargs: for the chat template, such as `{"enable_thinking": False}`.
        trust_remote_code: run the Python files that come with the model, with all the rights of this process.
    """

    model: str
    revision: str = ""
    adapter: str = ""
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    attn: Literal["auto", "sdpa", "eager", "flash_attention_2"] = "auto"
    token_budget: Annotated[int, Range(ge=1, unit="tokens")] | None = None
    max_length: Annotated[int, Range(ge=1, unit="tokens")] | None = None
    share_prefixes: bool = True
    compile: bool = False
    chat_template_kwargs: dict[str, object] = field(default_factory=dict)
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model.strip():
            raise ValueError(f"engine option model={self.model!r}; it must be a folder or a name on the hub")
        if self.model.startswith(("/", ".", "~")) and not is_folder(self.model):
            raise ValueError(f"engine option model={self.model!r}; there is no such folder")
        if self.device != "auto" and self.device.partition(":")[0] not in ("cpu", "cuda"):
            raise ValueError(f"engine option device={self.device!r}; give auto, cpu, cuda or cuda:NUMBER")
