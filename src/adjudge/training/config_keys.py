"""The keys that a configuration file may hold, read from its dataclasses; and the key meant by one that is unknown.

`WORDS` has what TRL, transformers, verl and OpenRLHF call our options.  A word is an option's own name, or the end of
its path in verl where the name alone says too little.  Of the keys that it stands for, those that a configuration has
are meant; what begins with "--" is a flag.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, Final, Literal, Union, get_args, get_origin

from docstring_parser import google

_OURS: Final[Mapping[tuple[str, ...], str]] = {
    # the model
    ("model.name",): "model_name_or_path model.path pretrain",
    ("model.attn",): "attn_implementation",
    ("model.chat_template",): "chat_template_path",
    ("model.chat_template_kwargs",): "chat_template_kwargs apply_chat_template_kwargs",
    ("reference_model",): "ref_model",
    ("learning.lora", "schedule.lora"): "use_peft peft_config",
    ("learning.lora.rank", "schedule.lora.rank"): "lora_r lora_rank lora.r peft_config.r",
    ("learning.lora.alpha", "schedule.lora.alpha"): "lora_alpha",
    ("schedule.lora.dropout",): "lora_dropout",
    ("learning.lora.targets", "schedule.lora.targets"): "lora_target_modules target_modules",
    # data
    ("data.path",): "dataset_name train_dataset train_files prompt_data",
    ("data.held_out_path",): "eval_dataset val_files",
    ("data.subset",): "dataset_config",
    ("data.split",): "dataset_train_split",
    ("data.prompt",): "prompt_key input_key",
    ("data.reference",): "label_key reward_model.ground_truth",
    ("data.system",): "system_prompt",
    ("data.chat",): "apply_chat_template",
    ("data.limit",): "train_max_samples max_samples",
    ("data.max_prompt_tokens", "max_length"): "max_prompt_length prompt_max_len",
    ("max_length",): "max_len",
    ("layout.separator",): "step_separator",
    # the reward
    ("reward.scorer",): (
        "reward_funcs reward_model reward_manager reward_weights custom_reward_function.path reward_pretrain"
    ),
    ("reward.server",): "remote_rm_url",
    # rollouts
    ("rollouts.num_generations",): "num_generations rollout.n n_samples_per_prompt group_size",
    ("rollouts.tasks", "schedule.batch_size"): "data.train_batch_size per_device_train_batch_size train_batch_size",
    ("rollouts.tasks",): "rollout_batch_size generation_batch_size gen_batch_size",
    ("rollouts.sampling.max_new_tokens",): (
        "max_completion_length max_response_length response_length max_new_tokens max_tokens generate_max_len"
    ),
    ("rollouts.sampling.stop",): "stop_strings stop_sequences",
    ("rollouts.engine",): "use_vllm rollout.name",
    ("rollouts.vllm.gpu_memory_utilization",): "vllm_gpu_memory_utilization",
    ("rollouts.vllm.max_model_len",): "vllm_max_model_length",
    ("rollouts.vllm.sleep",): "vllm_enable_sleep_mode free_cache_engine",
    ("rollouts.tools.max_turns",): "max_tool_calling_iterations max_assistant_turns",
    # what is learnt
    ("objective.name",): "adv_estimator advantage_estimator policy_loss.loss_mode",
    ("objective.name", "loss.name"): "loss_type",
    ("objective.set.policy.beta", "loss.beta"): "beta kl_loss_coef",
    ("objective.set.reward_beta",): "kl_coef init_kl_coef use_kl_in_reward",
    ("objective.set.rule.scale",): "scale_rewards norm_adv_by_std_in_grpo",
    ("objective.set.policy.level",): "importance_sampling_level",
    ("objective.set.policy.weighting.share",): "top_entropy_quantile",
    ("objective.set.policy.kl_estimator",): "kl_loss_type kl_estimator",
    ("objective.set.policy.clip_ratio_low",): "epsilon clip_ratio clip_ratio_low cliprange eps_clip",
    ("objective.set.policy.clip_ratio_high",): "epsilon_high clip_ratio_high",
    ("objective.set.policy.clip_ratio_c",): "clip_ratio_c delta",
    ("objective.set.policy.aggregation",): "loss_agg_mode",
    ("objective.set.policy.entropy_coef",): "entropy_coeff entropy_coef",
    ("objective.set.critic.gae.gamma",): "gamma",
    ("objective.set.critic.gae.lam",): "lam lambd",
    ("objective.set.critic.loss.weight",): "vf_coef",
    ("objective.set.critic.loss.clip",): "cliprange_value",
    ("loss.smoothing", "loss.noise"): "label_smoothing",
    ("regularizers.centering",): "center_rewards_coefficient",
    ("likelihood",): "rpo_alpha",
    ("reference",): "reference_free",
    # updates
    ("learning.learning_rate", "schedule.learning_rate"): "lr optim.lr actor_learning_rate",
    ("learning.critic_learning_rate",): "critic.optim.lr critic_learning_rate",
    ("learning.epochs",): "num_iterations ppo_epochs num_ppo_epochs",
    ("learning.minibatches",): "num_mini_batches ppo_mini_batch_size steps_per_generation",
    ("learning.micro_tokens", "schedule.micro_tokens"): (
        "gradient_accumulation_steps ppo_micro_batch_size_per_gpu ppo_max_token_len_per_gpu micro_train_batch_size"
    ),
    ("learning.warmup_steps", "schedule.warmup"): (
        "warmup_ratio warmup_steps lr_warmup_steps lr_warmup_steps_ratio lr_warmup_ratio"
    ),
    ("learning.decay", "schedule.scheduler"): "lr_scheduler_type lr_scheduler",
    ("schedule.optimizer",): "optim",
    ("learning.betas",): "adam_betas adam_beta1 adam_beta2",
    ("learning.max_grad_norm", "schedule.max_grad_norm"): "grad_clip",
    ("learning.precision", "schedule.precision"): "bf16 fp16 param_dtype",
    ("learning.gradient_checkpointing", "schedule.checkpointing"): (
        "checkpointing gradient_checkpointing enable_gradient_checkpointing"
    ),
    ("schedule.dropout",): "disable_dropout",
    # the run
    ("steps", "schedule.epochs"): "steps max_steps total_training_steps num_train_epochs total_epochs max_epochs",
    ("output",): "output_dir default_local_dir save_path",
    ("save_steps", "schedule.save_steps"): "save_freq",
    ("eval_steps", "schedule.eval_steps"): "test_freq eval_strategy",
    ("keep_checkpoints", "schedule.keep_checkpoints"): "save_total_limit max_actor_ckpt_to_keep",
    ("save_hf_ckpt",): "save_contents",
    ("schedule.log_steps",): "logging_steps",
    ("report_to", "schedule.report_to"): "logs logger use_wandb",
    ("--resume",): "resume_from_checkpoint resume_mode",
    (): "target_kl horizon",  # of a coefficient that adapts, which there is not: what is spelt like them is not meant
}

# What options were called before they had the field's names.
_EARLIER: Final[Mapping[str, str]] = {
    "rollouts.group": "rollouts.num_generations",
    "rollouts.ahead": "rollouts.staleness",
    "rollouts.rounds": "rollouts.max_num_gen_batches",
    "rollouts.sampling.most_new_tokens": "rollouts.sampling.max_new_tokens",
    "rollouts.sampling.rows": "rollouts.sampling.max_num_seqs",
    "rollouts.tools.most_turns": "rollouts.tools.max_turns",
    "rollouts.tools.patience": "rollouts.tools.timeout",
    **{
        f"{at}.{old}": f"{at}.{new}"
        for at in ("reward", "measured_by", "guard.gold")
        for old, new in (("most_failed", "max_failed"), ("calls", "concurrency"), ("patience", "timeout"))
    },
    "data.most_held_out": "data.max_held_out",
    "learning.critic_rate": "learning.critic_learning_rate",
    "watch.flat_groups": "watch.frac_reward_zero_std",
    "watch.cut_off": "watch.clipped_ratio",
    "policy.clip_low": "objective.set.policy.clip_ratio_low",
    "policy.clip_high": "objective.set.policy.clip_ratio_high",
    "policy.ceiling": "objective.set.policy.clip_ratio_c",
    "policy.estimator": "objective.set.policy.kl_estimator",
    "policy.weigh_divergence": "objective.set.policy.use_bias_correction_kl",
    "policy.entropy_bonus": "objective.set.policy.entropy_coef",
    "policy.staleness": "objective.set.policy.importance_sampling",
    **{
        f"policy.staleness.{old}": f"objective.set.policy.importance_sampling.{new}"
        for old, new in (("unit", "level"), ("beyond", "mode"), ("low", "low"), ("high", "high"))
    },
    "policy.weighting.least": "objective.set.policy.weighting.min_weight",
    "policy.weighting.most": "objective.set.policy.weighting.max_weight",
}

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{word: keys for keys, words in _OURS.items() for word in words.split()},
    **{word: (key,) for word, key in _EARLIER.items()},
}
"""Each word in lower case, and the keys that it may stand for."""

_TYPES: Mapping[Any, str] = {int: "int", float: "float", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a configuration file, with its annotation, its default (MISSING where there is none) and its meaning.

    Attributes:
        path: with dots: "schedule.epochs".
        section: the dataclass that its value is, if it is one.
        several: its value is a list of such sections.
    """

    path: str
    hint: Any
    default: Any
    said: str
    section: type | None = None
    several: bool = False

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def parent(self) -> str:
        """The section that holds it; "" at the top."""
        return self.path.rpartition(".")[0]

    @property
    def shorthand(self) -> str:
        """The key within the section that a plain value stands for; "" if there is none."""
        return getattr(self.section, "shorthand", "")

    @property
    def any_names(self) -> bool:
        """Whether the value is a mapping whose keys are not fields."""
        return get_origin(self.hint) is Mapping

    @property
    def type(self) -> str:
        """What the value must be, in a word or two."""
        return _type_named(self.hint)


def attribute_docs(target: Any) -> dict[str, str]:
    """Return what a class's docstring, or a function's, says of each attribute or argument, as one line each."""
    docs: dict[str, str] = {}
    for each in reversed(getattr(target, "__mro__", (target,))):
        for item in google.parse(inspect.cleandoc(each.__doc__ or "")).params:
            said = " ".join((item.description or "").split())
            docs |= dict.fromkeys(item.arg_name.split(", "), said)  # "low, high: the scale"
    return docs


def config_keys(kind: Any, where: str = "") -> Iterator[Key]:
    """Yield the keys of a configuration, those without a default first, each section followed by its own keys."""
    hints = typing.get_type_hints(kind)
    said = attribute_docs(kind)
    required = [item for item in dataclasses.fields(kind) if item.default is item.default_factory is MISSING]
    for item in (*required, *(each for each in dataclasses.fields(kind) if each not in required)):
        hint = hints[item.name]
        section = next((part for part in (hint, *get_args(hint)) if dataclasses.is_dataclass(part)), None)
        key = Key(
            path=f"{where}.{item.name}" if where else item.name,
            hint=hint,
            default=item.default if item.default_factory is MISSING else item.default_factory(),
            said=said.get(item.name, "").replace("None", "null"),
            section=typing.cast("type | None", section),
            several=get_origin(hint) is tuple,
        )
        yield key
        if section is not None:
            yield from config_keys(section, key.path)


def meant(kind: Any, path: str, value: Any = None) -> list[str]:
    """Return the keys that an unknown one may stand for, nearest first: ours, or words of TRL, verl and OpenRLHF."""
    if isinstance(value, Mapping) and value:
        return list(dict.fromkeys(key for name in value for key in meant(kind, f"{path}.{name}", value[name])))
    keys = list(config_keys(kind))
    paths = [key.path for key in keys]
    parts = path.split(".")
    for start in range(len(parts)):  # the longest known end of the path says most
        word = ".".join(parts[start:]).lower()
        words = WORDS.get(word, ())
        if word in WORDS and not words:
            return []
        inside = tuple(f"{key.path}." for key in keys if key.any_names)
        if known := [word for word in words if word in paths or word.startswith((*inside, "--"))]:
            return known
    same = [key.path for key in keys if key.name == parts[-1]]
    here = [key.path for key in keys if key.parent == ".".join(parts[:-1])]
    return same or _near(path, here) or _near(parts[-1], paths)


def _near(word: str, paths: Sequence[str]) -> list[str]:
    """Paths whose last part is nearest to the word's."""
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition(".")[2], []).append(path)
    close = difflib.get_close_matches(word.rpartition(".")[2].lower().replace("-", "_"), by_name, n=1, cutoff=0.7)
    return [path for name in close for path in by_name[name]]


def _type_named(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_named(part) for part in inner if part is not type(None))
    if origin is Literal:
        return "|".join(map(str, inner))
    if origin is tuple:
        return f"list of {_type_named(inner[0])}"
    if origin is not None:
        return "mapping"
    return _TYPES.get(hint, "section" if dataclasses.is_dataclass(hint) else "any")
