"""Loading a model with `transformers`: the right head, no weight left to chance, heads in 32 bits.

A checkpoint without the head that is asked for would get a random one, with a warning in the log; here that is an
error.  Heads compute in 32 bits whatever the rest of the model computes in: scores from a head in bfloat16 have three
digits, and so ties where there are none.

Folders that `RewardNetwork.save` wrote, and published models whose class transformers lacks
(`adjudge.engines.published_heads`), are loaded with their own heads, and no Python file that comes with them is run.
Whether a checkpoint has the head that is asked for is seen in its configuration and its names of tensors, before any
weight is loaded.

Not covered: encoder-decoder models, several devices for one model, quantised checkpoints beyond what `transformers`
loads by itself.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.engines.model_digest import model_lock
from adjudge.engines.published_heads import foreign, published_family
from adjudge.extras import install_hint

if TYPE_CHECKING:
    from adjudge.engines.transformers_config import TransformersConfig

Task = Literal["generate", "classify", "classify_tokens"]

_CLASSES: Mapping[Task, str] = {
    "generate": "AutoModelForCausalLM",
    "classify": "AutoModelForSequenceClassification",
    "classify_tokens": "AutoModelForTokenClassification",
}
_HEADS: Mapping[Task, str] = {
    "generate": (
        "a language model's head, which generate, label_logprobs and reference_logprobs need: give a model that writes "
        "(a classifier is for reward_model, or a judge with readout: classes)"
    ),
    "classify": (
        "a sequence classifier's head, which classify needs: give a classifier or a reward model, or a judge another "
        "readout: text or probabilities"
    ),
    "classify_tokens": "a token classifier's head, which classify_tokens needs: give a process model that has one",
}
HEAD_TENSORS = ("score.weight", "classifier.weight", "classifier.out_proj.weight")
"""What the last layer of a classifier is called in a checkpoint."""

_ENDINGS: Mapping[str, Task] = {
    "ForCausalLM": "generate",
    "LMHeadModel": "generate",
    "ForSequenceClassification": "classify",
    "ForTokenClassification": "classify_tokens",
}


def needed() -> Any:
    """Return the `transformers` module, or raise `ValueError` naming what to install."""
    try:
        import torch  # noqa: F401 without it, transformers imports and then has no models
        import transformers
    except ImportError as error:
        raise ValueError(
            f"the transformers engine needs PyTorch and transformers ({error}); {install_hint('models')}"
        ) from error
    return transformers


def configuration(config: TransformersConfig) -> Any:
    """Return the model's own configuration, without its weights.

    Raises:
        ValueError: there is no such model.
    """
    return _loaded(config, needed().AutoConfig)


def tokenizer(config: TransformersConfig) -> Any:
    """Return the model's tokenizer.

    Raises:
        ValueError: there is none.
    """
    return _loaded(config, needed().AutoTokenizer)


def notes_of(config: TransformersConfig) -> CheckpointNotes | None:
    """Return the notes beside the weights, or what is known of a published head; None for what transformers reads.

    Raises:
        ValueError: the model's class is not known to transformers, nor its head here, and no remote code is trusted.
    """
    path = Path(config.model).expanduser()
    if not path.is_dir():
        return _published(config.model, config.revision, config.trust_remote_code)
    settings = path / "config.json"
    changed = settings.stat().st_mtime_ns if settings.is_file() else 0
    return CheckpointNotes.read(path) or _published(str(path), "", config.trust_remote_code, changed)


@functools.lru_cache(maxsize=16)
def _published(model: str, revision: str, trusted: bool, changed: int = 0) -> CheckpointNotes | None:
    """What is known of a published head; `changed` tells a folder's contents apart."""
    try:
        own, _ = needed().PretrainedConfig.get_config_dict(model, revision=revision or None)
    except OSError:  # whoever loads the model says so
        return None
    if not foreign(own.get("architectures") or ()):
        return None
    files = CheckpointFiles.of(model, revision)
    try:
        if not files.shapes:  # the names are in the weights alone
            files = CheckpointFiles.of(model, revision, weights=True)
        family = published_family(files)
    except ValueError as error:
        if trusted:
            return None
        raise ValueError(
            f"{error}; if you trust the code that comes with it, set the engine's option trust_remote_code: true"
        ) from error
    if family is None or family.head is None:
        return None
    files = CheckpointFiles.of(model, revision, weights=True)
    return family.notes(family.head(files), files.folder.name)


def weights(config: TransformersConfig, task: Task, device: str) -> Any:
    """Return the model for a task on its device, in evaluation mode, with its head in 32 bits.

    A classifier that we trained is a `RewardNetwork`; any other is what `transformers` makes of it.

    Raises:
        ValueError: the checkpoint lacks the head, or cannot be loaded as configured.
    """
    transformers = needed()
    notes = None if task == "generate" else notes_of(config)
    if notes is not None:
        return _placed(config, _own(config, task, notes, device), device)
    own = configuration(config)
    if getattr(own, "is_encoder_decoder", False):
        raise ValueError(
            f"{config.model!r} is an encoder-decoder model, which the transformers engine does not run; "
            "serve it, and use the openai engine"
        )
    if outputs := adapter_outputs(config, task):
        own.num_labels = outputs
    else:
        _check_architecture(config.model, getattr(own, "architectures", None) or (), task)
    if task != "generate" and own.get_text_config().pad_token_id is None:
        own.get_text_config().pad_token_id = 0  # only so that batches are not refused; pooling never looks at it
    name = _CLASSES[task]
    published = getattr(own, "auto_map", None) or {}
    if config.trust_remote_code and name not in published and "AutoModel" in published:
        name = "AutoModel"  # process reward models often publish their head that way
    options: dict[str, Any] = {"config": own, "dtype": _dtype(config, device), "output_loading_info": True}
    if attention := _attention(config, own):
        options["attn_implementation"] = attention
    if task != "generate" and name != "AutoModel" and not config.adapter:
        _check_head(config, own, getattr(transformers, name), task)
    model, info = _loaded(config, getattr(transformers, name), **options)
    saved: tuple[str, ...] = ()
    if config.adapter:
        model, saved = _adapted(config, model)
    lacking = sorted(map(str, [*info["missing_keys"], *info.get("mismatched_keys", ())]))
    absent = [weight for weight in lacking if not set(weight.split(".")) & set(saved)]
    if absent:
        raise ValueError(
            f"the checkpoint {config.model!r} has no weights for {', '.join(absent[:5])}; it lacks {_HEADS[task]}"
        )
    head = output_head(model, task)
    if head is not None:
        _in_32_bits(head)
    if lowered(config, own, device):
        _in_16_bits(model, head)
    return _placed(config, model, device)


def adapter_outputs(config: TransformersConfig, task: Task = "classify") -> int:
    """How many outputs the head for a task has that comes with the adapter; 0 where none does.

    A reward model trained with LoRA is a language model and an adapter that holds the whole head.

    Raises:
        ValueError: there is no such adapter.
    """
    if not config.adapter or task == "generate":
        return 0
    with _peft(config) as peft:
        made_for = peft.PeftConfig.from_pretrained(config.adapter).task_type
        tensors = peft.load_peft_weights(config.adapter, device="cpu")
    if (made_for == "TOKEN_CLS") != (task == "classify_tokens"):
        return 0
    return next((len(tensor) for name, tensor in tensors.items() if name.endswith(HEAD_TENSORS)), 0)


def lowered(config: TransformersConfig, own: Any, device: str) -> bool:
    """Whether dtype "auto" means a body in bfloat16: for a checkpoint in 32 bits, on a GPU that computes in bfloat16.

    PyTorch has no attention for packed rows in 32 bits.

    Args:
        config: the engine's.
        own: the model's own configuration.
        device: "cpu", "cuda" or "cuda:1".

    Raises:
        ValueError: the GPU cannot be used, as in a forked process.
    """
    import torch

    if not (may_be_lowered(config, own) and device.startswith("cuda")):
        return False
    with _used(config, device):
        return torch.cuda.get_device_capability(device) >= (8, 0)


def may_be_lowered(config: TransformersConfig, own: Any) -> bool:
    """Whether `lowered` would say so on some device; asks none."""
    stored = str(getattr(own, "dtype", None)).removeprefix("torch.")
    whole = getattr(own, "quantization_config", None) is None
    return config.dtype == "auto" and whole and stored in ("float32", "None")  # old checkpoints do not say


def output_head(model: Any, task: Task) -> Any:
    """Return the last linear layer of a model; None if it has no single one."""
    import torch

    if task == "generate":
        head = model.get_output_embeddings()
    else:
        head = getattr(model, "score", None) or getattr(model, "classifier", None)
    return head if isinstance(head, torch.nn.Module) else None


def _own(config: TransformersConfig, task: Task, notes: CheckpointNotes, device: str) -> Any:
    from adjudge.engines.reward_network import RewardNetwork

    if (notes.what == "process") != (task == "classify_tokens"):
        call = "classify_tokens" if notes.what == "process" else "classify"
        raise ValueError(f"{config.model!r} is a {notes.what} model, which {call} reads; it lacks {_HEADS[task]}")
    if config.adapter:
        raise ValueError(
            f"engine option adapter={config.adapter!r}; {config.model!r} has its own head: merge them first"
        )
    own = configuration(config)
    options: dict[str, Any] = {"dtype": _dtype(config, device), "trust_remote_code": config.trust_remote_code}
    if attention := _attention(config, own):
        options["attn_implementation"] = attention
    folder = Path(config.model).expanduser()
    if not folder.is_dir():
        folder = CheckpointFiles.of(config.model, config.revision, weights=True).folder
    network = RewardNetwork.load(folder, **options)
    if lowered(config, own, device):
        _in_16_bits(network.backbone, None)
    return network


def _placed(config: TransformersConfig, model: Any, device: str) -> Any:
    with _used(config, device):
        return model.to(device).eval().requires_grad_(False)


@contextmanager
def _used(config: TransformersConfig, device: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # no room, or a GPU in a forked process
        raise ValueError(
            f"the model {config.model!r} cannot be put on {device!r}: {str(error)[:300]}; give a smaller dtype or "
            "another device, and start processes by spawn"
        ) from error


def _check_architecture(model: str, architectures: Any, task: Task) -> None:
    for name in architectures:
        for ending, made_for in _ENDINGS.items():
            if name.endswith(ending) and made_for != task:
                raise ValueError(f"the model {model!r} is a {name}; it lacks {_HEADS[task]}")


def _check_head(config: TransformersConfig, own: Any, kind: Any, task: Task) -> None:
    """Raise `ValueError` for a folder whose tensors are not those of a classifier, as far as their names are known."""
    import torch

    path = Path(config.model).expanduser()
    files = CheckpointFiles.of(str(path)) if path.is_dir() else None
    if files is None or not files.shapes:
        return
    try:
        with model_lock(), torch.device("meta"):
            shell = kind.from_config(copy.deepcopy(own), trust_remote_code=config.trust_remote_code)
    except (OSError, ValueError, ImportError):  # there is no such class, which loading it says
        return
    body = f"{shell.base_model_prefix}."
    absent = [name for name in shell.state_dict() if not name.startswith(body) and name not in files.shapes]
    if absent:
        raise ValueError(
            f"the checkpoint {config.model!r} has no weights for {', '.join(sorted(absent)[:5])}; it lacks "
            f"{_HEADS[task]}; beside the body it has {files.seen}"
        )


def _attention(config: TransformersConfig, own: Any) -> str:
    """The attention to load a model with; "" for what it prefers.

    PyTorch's own leaves out the soft cap on attention's scores (Gemma 2), without a word and with other numbers.
    """
    capped = getattr(own.get_text_config(), "attn_logit_softcapping", None) is not None
    if capped and config.attn == "sdpa":
        raise ValueError(
            f"engine option attn='sdpa'; {config.model!r} caps its attention's scores: give auto, or eager"
        )
    if config.attn == "auto":
        return "eager" if capped else ""
    return config.attn


def _dtype(config: TransformersConfig, device: str) -> str:
    """The name of the type weights are loaded in; a CPU computes in 32 bits unless told otherwise."""
    if config.dtype == "auto" and device == "cpu":
        return "float32"
    return config.dtype


def _loaded(engine: TransformersConfig, kind: Any, /, **options: Any) -> Any:
    path = Path(engine.model).expanduser()
    try:
        with model_lock():
            return kind.from_pretrained(
                str(path) if path.is_dir() else engine.model,
                revision=engine.revision or None,
                trust_remote_code=engine.trust_remote_code,
                **options,
            )
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        problem = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        if "trust_remote_code" in str(error) and not engine.trust_remote_code:
            problem += "; if you trust the code that comes with it, set the engine's option trust_remote_code: true"
        raise ValueError(f"the model {engine.model!r} cannot be loaded: {problem}") from error


def _adapted(config: TransformersConfig, model: Any) -> tuple[Any, tuple[str, ...]]:
    """The model with its adapter merged in, and the names of the modules that the adapter replaces whole."""
    with _peft(config) as peft:
        adapted = peft.PeftModel.from_pretrained(model, config.adapter)
    return adapted.merge_and_unload(), tuple(adapted.active_peft_config.modules_to_save or ())


@contextmanager
def _peft(config: TransformersConfig) -> Iterator[Any]:
    """The module, and what its errors mean."""
    try:
        import peft
    except ImportError as error:
        raise ValueError(f"the engine's option adapter needs peft; {install_hint('models')}") from error
    try:
        with model_lock():
            yield peft
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        problem = str(error).strip().partition("\n")[0][:300]
        raise ValueError(f"the adapter {config.adapter!r} cannot be used with {config.model!r}: {problem}") from error


def _in_32_bits(head: Any) -> None:
    import torch

    for part in head.modules():
        for name, value in list(part.named_parameters(recurse=False)):
            if value.is_floating_point():
                # A new parameter: the old one may be the input embedding as well, and stays as it is.
                setattr(part, name, torch.nn.Parameter(value.detach().float(), requires_grad=False))
    head.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(), *inputs[1:]))


def _in_16_bits(model: Any, head: Any) -> None:
    """Keep a loaded model in bfloat16, but for its head and what its architecture wants in 32 bits.

    Loading it in bfloat16 would round the head, and merge adapters in 16 bits.
    """
    import torch

    kept = set(map(id, head.parameters())) if head is not None else set()
    whole = set(getattr(model, "_keep_in_fp32_modules_strict", None) or ())
    for name, value in model.state_dict(keep_vars=True).items():
        if value.dtype == torch.float32 and id(value) not in kept and not whole & set(name.split(".")):
            value.data = value.data.bfloat16()
