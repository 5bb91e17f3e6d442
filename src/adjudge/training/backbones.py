"""Opening the model that a training starts from: a published one, one of our own, or a new small one.

Weights that are trained are kept in 32 bits: a step of 1e-6 is lost in the eight bits of bfloat16.  With LoRA the
frozen weights may be in bfloat16.

Not covered: quantised weights (QLoRA), models of several modalities, and encoder-decoder models.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from adjudge.engines import smollm2
from adjudge.engines.model_digest import model_lock
from adjudge.extras import install_hint
from adjudge.options import Options, Range


@dataclass(frozen=True, kw_only=True)
class Lora(Options, what="lora option"):
    """Train small factors beside the weights instead of the weights (LoRA, arXiv 2106.09685); merged when saved.

    Attributes:
        rank: of the factors.
        alpha: the factors' product counts `alpha / rank` times.
        dropout: share of their inputs left out in training.
        targets: names of layers; "all-linear" for every linear layer of the body.
    """

    shorthand: ClassVar[str] = "rank"

    rank: Annotated[int, Range(ge=1)] = 16
    alpha: Annotated[float, Range(gt=0)] = 32.0
    dropout: Annotated[float, Range(ge=0, lt=1)] = 0.0
    targets: tuple[str, ...] = ("all-linear",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.targets:
            raise ValueError("lora.targets is empty; name layers, or give all-linear")


def with_lora(body: Any, lora: Lora) -> Any:
    """Return a body whose weights are frozen, with factors beside them that are trained.

    Raises:
        ValueError: the targets name no layer.
    """
    import peft

    options: dict[str, Any] = {
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": lora.targets[0] if lora.targets == ("all-linear",) else list(lora.targets),
    }
    config = peft.LoraConfig(**options)
    try:
        adapted: Any = peft.get_peft_model(body, config)
    except ValueError as error:
        raise ValueError(f"lora.targets are {', '.join(lora.targets)}: {str(error)[:300]}") from error
    for value in adapted.parameters():
        if value.requires_grad:
            value.data = value.data.float()
    return adapted


PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
"""A chat template for models that have none; every turn ends with the end token."""


def with_template(tokenizer: Any, template: str) -> None:
    """Give a tokenizer a chat template: "" keeps its own, "plain" is `PLAIN_TEMPLATE`, else the name of a file.

    Raises:
        ValueError: the file cannot be read, or the plain template meets a tokenizer without an end token.
    """
    if not template:
        return
    if template == "plain":
        if not tokenizer.eos_token:
            raise ValueError("model.chat_template is plain, which needs an end token, and the tokenizer has none")
        tokenizer.chat_template = PLAIN_TEMPLATE
        return
    try:
        with open(template, encoding="utf-8") as file:
            tokenizer.chat_template = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"model.chat_template {template!r} cannot be read: {error}") from error


NGRAMS = "ngrams"


@dataclass(frozen=True, kw_only=True)
class NewModel:
    """A small transformer made from nothing, with a tokenizer trained on the training texts.

    Attributes:
        size: "tiny" (2 layers, 128 wide) or "small" (4 layers, 256 wide).
    """

    shorthand: ClassVar[str] = "size"

    size: Literal["tiny", "small"] = "tiny"


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """Which model is trained.

    Attributes:
        name: a folder, a name on the Hugging Face hub, "smollm2" for the small one that comes as a package, or "ngrams"
            for the scikit-learn model, which needs no PyTorch.
        from_scratch: a new small transformer in its place.
        revision: branch, tag or commit on the hub.
        chat_template: a file with a template for models that have none, or "plain"; "" for the model's own.
        attn: "sdpa", "eager", "flash_attention_2"; "" for what the model prefers.
        trust_remote_code: run the Python files that come with the model, with all the rights of this process.
    """

    shorthand: ClassVar[str] = "name"

    name: str = ""
    from_scratch: NewModel | None = None
    revision: str = ""
    chat_template: str = ""
    attn: str = ""
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if bool(self.name) == (self.from_scratch is not None):
            raise ValueError(
                f"model.name is {self.name!r} and model.from_scratch {self.from_scratch!r}; give one of the two: a "
                "folder, a name on the hub, ngrams, or from_scratch: tiny"
            )

    @property
    def label(self) -> str:
        """The model's name for people."""
        return self.name or f"a new {self.from_scratch.size if self.from_scratch else ''} transformer"


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A model that is ready to be trained, and its tokenizer, with a chat template if it has one or was given one.

    Attributes:
        body: the model without a language head, a plain model of `transformers`.
        language_model: the causal model around that body, if one was asked for.
    """

    body: Any
    language_model: Any
    tokenizer: Any
    name: str

    @property
    def window(self) -> int:
        """Most tokens that the model reads."""
        own = getattr(self.body.config.get_text_config(), "max_position_embeddings", None)
        limits = [limit for limit in (own, self.tokenizer.model_max_length) if limit is not None]
        return int(min(limits)) if limits else 2**31


def libraries() -> Any:
    """Return `transformers`, after a look at everything that training needs.

    Raises:
        ValueError: something is missing; the message names the extra.
    """
    try:
        for name in ("accelerate", "peft"):  # only some runs use them, and they take a second to import
            if importlib.util.find_spec(name) is None:
                raise ImportError(f"No module named {name!r}")
        import torch
        import transformers
    except ImportError as error:
        raise ValueError(
            f"training needs PyTorch, transformers, accelerate and peft ({error}); {install_hint('train')}"
        ) from error
    del torch
    return transformers


def open_backbone(
    model: ModelChoice,
    *,
    kind: Literal["body", "causal"] = "body",
    texts: Iterable[str] = (),
    folder: Path,
    seed: int = 0,
    dtype: str = "float32",
    dropout: bool = False,
) -> Opened:
    """Return a model and its tokenizer.

    Args:
        model: which one.
        kind: "causal" keeps the language head around the body.
        texts: what the tokenizer of a new model learns from.
        folder: where a new model is kept; one that is there is used as it is.
        seed: of a new model's weights.
        dtype: "float32" or "bfloat16", of the weights.
        dropout: keep the model's dropout; else it is 0.

    Raises:
        ValueError: there is no such model, it lacks weights, or it is of a kind that is not trained here.
    """
    transformers = libraries()
    home, options = model.name, {"revision": model.revision or None, "trust_remote_code": model.trust_remote_code}
    if model.from_scratch is not None:
        from adjudge.training.small_transformer import new_backbone

        if not folder.is_dir():
            draft = folder.with_name(f"{folder.name}.part")  # a training killed in here must not leave half a model
            shutil.rmtree(draft, ignore_errors=True)
            new_backbone(texts, draft, size=model.from_scratch.size, seed=seed).rename(folder)
        home, options = str(folder), {}
    elif home == smollm2.NAME:
        home, options = smollm2.smollm2_folder(), {}
    elif home.startswith(("/", ".", "~")) and not Path(home).expanduser().is_dir():
        raise ValueError(f"model.name is {home!r}; there is no such folder")
    elif Path(home).expanduser().is_dir():
        home = str(Path(home).expanduser())
    adapter = Path(home, "adapter_config.json")
    if adapter.is_file() and not Path(home, "config.json").is_file():
        base = json.loads(adapter.read_text(encoding="utf-8")).get("base_model_name_or_path")
        raise ValueError(
            f"model.name is {model.name!r}, which holds an adapter of {base!r} and no model; merge the two (PEFT's "
            "merge_and_unload), or give that model"
        )
    config = _loaded(transformers.AutoConfig, home, options)
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(f"{home!r} is an encoder-decoder model, which is not trained here; give a decoder or encoder")
    if not dropout:
        _without_dropout(config)
    more: dict[str, Any] = {**options, "config": config, "dtype": dtype, "output_loading_info": True}
    if model.attn:
        more["attn_implementation"] = model.attn
    auto = transformers.AutoModelForCausalLM if kind == "causal" else transformers.AutoModel
    loaded, info = _loaded(auto, home, more)
    if lacking := sorted(map(str, [*info["missing_keys"], *info.get("mismatched_keys", ())])):
        raise ValueError(f"the checkpoint {home!r} has no weights for {', '.join(lacking[:5])}; give another model")
    tokenizer = _loaded(transformers.AutoTokenizer, home, options)
    with_template(tokenizer, model.chat_template)
    body = loaded.base_model if kind == "causal" else loaded
    if body.get_output_embeddings() is not None:
        raise ValueError(f"{home!r} has a {type(body).__name__} for a body, which has a head of its own; give another")
    loaded.config.use_cache = False
    return Opened(
        body=body, language_model=loaded if kind == "causal" else None, tokenizer=tokenizer, name=model.name or home
    )


def _without_dropout(config: Any) -> None:
    """Set every dropout of a configuration to 0."""
    for part in {id(part): part for part in (config, config.get_text_config())}.values():
        for name, value in vars(part).items():
            if isinstance(value, float) and ("dropout" in name or name.endswith("pdrop")):
                setattr(part, name, 0.0)


def _loaded(kind: Any, name: str, options: Mapping[str, Any]) -> Any:
    try:
        with model_lock():
            return kind.from_pretrained(name, **options)
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        problem = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        raise ValueError(f"the model {name!r} cannot be loaded: {problem}") from error
