"""Families of published reward models: how each is recognised, and what its head is in our terms.

A family is recognised by its configuration and the names of its tensors, never by the model's name.  A head that is not
known is an error that names what was seen.  Programs that load such a checkpoint as a plain classifier get a head of
random numbers, or ignore the half of it that they do not know.

**plain**: one linear layer named `score`, read at the last token.  Skywork-Reward (v0.1, v0.2, V2; Llama, Gemma and
Qwen), FsfairX, RM-Mistral and most others.  Engines read them as they are.  transformers would ignore a gate beside
`score` and go on; here that is not a plain classifier.

**armorm**: attributes of the answer, weighted by a gate that reads the prompt (arXiv 2406.12845).

    score = sum_i logit_scale * softmax(gate(h_prompt) / temperature)_i * (z T)_i,    z = R h_answer

R is `regression_layer` and T `reward_transform_matrix`, which takes verbosity out of the other attributes.  Both T and
logit_scale are linear in the attributes, so our attributes are logit_scale * T' R h_answer.  h_answer is read at the
last token, h_prompt where the pattern that opens the assistant's turn begins.

**qrm**: quantiles of each attribute, weighted by such a gate (arXiv 2409.10164).  `regression_layer` gives
`num_quantiles` numbers for the first attribute, then for the second, ...; the published score is the gated sum of each
attribute's mean over its quantiles.  That mean is linear, so our attributes are the means; the distribution behind the
score is not read.

**inf_orm**: two linear layers with ReLU between them, read at the last token: score = W2 relu(W1 h + b1) + b2.

**qwen_prm**: the same two layers with two classes, read at every token (arXiv 2501.07301); `architectures` tells them
apart.

**value_head**: one linear layer with a bias, `v_head.summary`, read at every token.  The publisher's code and
`adjudge.reward_models.process` put a sigmoid on it.

**gaussian**: Gaussian attributes in the layout of URM (arXiv 2410.00847): `score` gives mean and log of the deviation
of each attribute in turn, mean_i = (S h)_(2i), std_i = exp((S h)_(2i+1)); our rows are all means, then all logs.  It is
never recognised by itself: whoever asks for `family: gaussian` gives fixed `weights`.

**urm**: those means, each times a number from three linear layers with SELU between them, all read at the last token
(arXiv 2410.00847): score = sum_i mean_i G(h)_i.  The published reward leaves the deviations out, and so is our head.

Gates become plain layers with ReLU between them.  Two forms are known: linear layers with ReLU between them (ArmoRM),
and blocks of a linear layer without bias, ReLU and batch normalisation, then a linear layer (QRM).  In evaluation batch
normalisation is a fixed scale and shift, a * x + b with a = weight / sqrt(variance + 1e-5), and goes into the layer
behind it: W (a * x + b) + c = (W a) x + (W b + c).  A gate reads the token that ends the last turn before the answer;
`gate_back` finds it in the folder's chat template.

Each was checked against the published formula (plain: against transformers) on random checkpoints with the published
names of tensors; the published weights themselves were not at hand.  Formulas and names are from public copies of the
publishers' modelling code (armorm, qrm, qwen_prm), of the publisher's plugin for vLLM (value_head), and from SGLang's
class for the model (urm).

Not covered: attributes before ArmoRM's transform, gates with a mask of attributes or of several places, encoders that
read prompt and response as two texts, and InternLM2-Reward: its tokenizer is published as Python code only, so what
its body would be given could not be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.checkpoint_notes import CheckpointNotes, What
from adjudge.engines.head_config import HeadConfig, Pooling

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class ForeignHead:
    """A published head, rewritten as one of ours, with weights in 32 bits, and () for labels where it has no names."""

    config: HeadConfig
    weights: Mapping[str, torch.Tensor]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family.

    Attributes:
        fits: whether a checkpoint is one of it.
        head: reads the head, or raises `ValueError` naming what is not as it should be; None where engines read the
            checkpoint as it is.
        models: published models of the family, for people.
        what: what its numbers judge, as in `CheckpointNotes`.
    """

    name: str
    fits: Callable[[CheckpointFiles], bool]
    head: Callable[[CheckpointFiles], ForeignHead] | None = None
    models: str = ""
    what: What = "scalar"

    def notes(self, head: ForeignHead, source: str) -> CheckpointNotes:
        """Return what is known of a checkpoint of the family that lies in a folder of the name `source`."""
        facts = {"family": self.name, "source": source}
        return CheckpointNotes(what=self.what, head=head.config, labels=head.labels, trained=facts)


_EPSILON = 1e-5  # of PyTorch's batch normalisation
_PREFIX = "gating.layers."
_TRIAL = ({"role": "user", "content": "x"},)


def gate_layers(files: CheckpointFiles) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return weight and bias of each layer of a gate, (outputs, inputs) and (outputs,), first layer first.

    Raises:
        ValueError: the gate has another form.
    """
    import torch

    names = [name for name in files.shapes if name.startswith(_PREFIX)]
    held = files.tensors(names)
    places = sorted({int(name.split(".")[2]) for name in names})
    layers: list[tuple[torch.Tensor, torch.Tensor]] = []
    scale: torch.Tensor | None = None
    shift: torch.Tensor | None = None
    for place in places:
        own = {
            name.removeprefix(f"{_PREFIX}{place}."): value
            for name, value in held.items()
            if name.split(".")[2] == str(place)
        }
        weight = own.get("weight")
        if weight is not None and weight.ndim == 2:
            bias = own.get("bias")
            bias = weight.new_zeros(weight.shape[0]) if bias is None else bias
            if scale is not None and shift is not None:
                weight, bias = weight * scale, bias + weight @ shift
                scale = shift = None
            layers.append((weight, bias))
        elif weight is not None and "running_mean" in own and scale is None and layers:
            scale = weight / torch.sqrt(own["running_var"] + _EPSILON)
            shift = own["bias"] - own["running_mean"] * scale
        else:
            raise ValueError(f"layer {place} of the gate in {str(files.folder)!r} holds {', '.join(sorted(own))}")
    widths = {weight.shape[0] for weight, _ in layers[:-1]}
    if scale is not None or len(layers) < 2 or len(widths) != 1:
        raise ValueError(
            f"the gate in {str(files.folder)!r} has {len(layers)} layers of the widths {sorted(widths)}; known are "
            "hidden layers of one width and a last layer"
        )
    return layers


def gate_back(files: CheckpointFiles) -> int:
    """Return how many tokens before the end of a prompt, its generation prompt included, the user's turn ends.

    Published code looks for the pattern of the generation prompt, `<|eot_id|><|start_header_id|>assistant ..` in
    Llama 3, and reads its first token.  Here it is the last special token of a chat without a generation prompt: 4 back
    in Llama 3 and in Gemma 2.

    Raises:
        ValueError: the folder has no chat template, or one whose turns do not end with a token of their own.
    """
    from transformers import AutoTokenizer

    where = repr(str(files.folder))
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(files.folder))
    except (OSError, ValueError) as error:
        raise ValueError(f"the tokenizer in {where} cannot be loaded: {str(error)[:200]}") from error
    if not tokenizer.chat_template:
        raise ValueError(f"the folder {where} has no chat template; the gate reads where a turn of one ends")
    rows = []
    for more in (False, True):
        text = tokenizer.apply_chat_template(list(_TRIAL), tokenize=False, add_generation_prompt=more)
        rows.append(list(tokenizer(text, add_special_tokens=False)["input_ids"]))
    turn, asked = rows
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    ends = [place for place, token in enumerate(turn) if token in special]
    if not ends or len(turn) >= len(asked) or asked[: len(turn)] != turn:
        raise ValueError(
            f"the chat template in {where} has no special token at a turn's end, or no generation prompt behind it; "
            "the gate reads between the two"
        )
    return len(asked) - 1 - ends[-1]


_PLAIN_HEADS = ("score.weight", "score.bias", "lm_head.weight")
_ENCODER_HEADS = ("classifier.", "pooler.", "pre_classifier.")


def _plain_fits(files: CheckpointFiles) -> bool:
    known = all(name in _PLAIN_HEADS or name.startswith(_ENCODER_HEADS) for name in files.heads)
    plain = any(name.endswith("ForSequenceClassification") for name in files.classes)
    return plain and known and "AutoModelForSequenceClassification" not in (files.config.get("auto_map") or {})


ARMORM_LABELS = tuple(
    "helpsteer-helpfulness helpsteer-correctness helpsteer-coherence helpsteer-complexity helpsteer-verbosity "
    "ultrafeedback-overall_score ultrafeedback-instruction_following ultrafeedback-truthfulness ultrafeedback-honesty "
    "ultrafeedback-helpfulness beavertails-is_safe prometheus-score argilla-overall_quality argilla-judge_lm "
    "code-complexity code-style code-explanation code-instruction-following code-readability".split()
)
"""The 19 attributes of the published model, in order."""

_TEMPERATURE = 10.0  # of the published code, where the configuration does not say


def _armorm_head(files: CheckpointFiles) -> ForeignHead:
    if files.config.get("gating_active_attribute_indices") is not None:
        raise ValueError(f"the gate in {str(files.folder)!r} leaves attributes out, which is not read here")
    return gated_head(files, files.tensors(["regression_layer.weight"])["regression_layer.weight"])


def gated_head(files: CheckpointFiles, attributes: torch.Tensor) -> ForeignHead:
    """Return a head of attributes, (outputs, width), and the checkpoint's gate.

    Raises:
        ValueError: a tensor is missing or of another shape.
    """
    import torch

    outputs = attributes.shape[0]
    more = files.tensors(["reward_transform_matrix", "gating.logit_scale"])
    transform, logit_scale = more["reward_transform_matrix"], more["gating.logit_scale"].reshape(-1)[0]
    layers = gate_layers(files)
    if tuple(transform.shape) != (outputs, outputs) or layers[-1][0].shape[0] != outputs:
        raise ValueError(
            f"the checkpoint {str(files.folder)!r} has {outputs} attributes, a transform of "
            f"{tuple(transform.shape)} and a gate with {layers[-1][0].shape[0]} outputs"
        )
    config = HeadConfig(
        kind="gating",
        outputs=outputs,
        hidden=layers[0][0].shape[0],
        depth=len(layers) - 1,
        temperature=float(files.config.get("gating_temperature", _TEMPERATURE)),
        gate_back=gate_back(files),
        bias=True,
    )
    weights = {"score.weight": logit_scale * (transform.T @ attributes), "score.bias": torch.zeros(outputs)}
    for number, (weight, bias) in enumerate(layers):
        weights |= {f"gate.{2 * number}.weight": weight, f"gate.{2 * number}.bias": bias}
    return ForeignHead(config=config, weights=weights, labels=ARMORM_LABELS if outputs == len(ARMORM_LABELS) else ())


def _qrm_head(files: CheckpointFiles) -> ForeignHead:
    weight = files.tensors(["regression_layer.weight"])["regression_layer.weight"]
    quantiles = files.config["num_quantiles"]
    if not isinstance(quantiles, int) or quantiles < 1 or weight.shape[0] % quantiles:
        raise ValueError(
            f"the checkpoint {str(files.folder)!r} has {weight.shape[0]} outputs and num_quantiles={quantiles!r}; the "
            "one must be a multiple of the other"
        )
    return gated_head(files, weight.reshape(-1, quantiles, weight.shape[1]).mean(dim=1))


_VALUE_HEAD = ("v_head.summary.weight", "v_head.summary.bias")
_PROCESS = "Qwen2ForProcessRewardModel"
_TWO_LAYERS = {
    "score.0.weight": "inner.0.weight",
    "score.0.bias": "inner.0.bias",
    "score.2.weight": "score.weight",
    "score.2.bias": "score.bias",
}


def _two_layers(pooling: Pooling) -> Callable[[CheckpointFiles], ForeignHead]:
    def head(files: CheckpointFiles) -> ForeignHead:
        held = files.tensors(list(_TWO_LAYERS))
        hidden, outputs = held["score.0.weight"].shape[0], held["score.2.weight"].shape[0]
        return ForeignHead(
            config=HeadConfig(kind="mlp", outputs=outputs, hidden=hidden, bias=True, pooling=pooling),
            weights={ours: held[theirs] for theirs, ours in _TWO_LAYERS.items()},
        )

    return head


def _has_two_layers(files: CheckpointFiles) -> bool:
    return set(files.heads) - {"lm_head.weight"} == set(_TWO_LAYERS)


def _value_head(files: CheckpointFiles) -> ForeignHead:
    held = files.tensors(_VALUE_HEAD)
    return ForeignHead(
        config=HeadConfig(bias=True, outputs=held[_VALUE_HEAD[0]].shape[0], pooling="tokens"),
        weights={name.replace("v_head.summary", "score"): value for name, value in held.items()},
    )


URM_LABELS = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
"""The attributes of HelpSteer2, in order."""


def _gaussian_head(files: CheckpointFiles) -> ForeignHead:
    import torch

    weight = files.tensors(["score.weight"])["score.weight"]
    if weight.shape[0] % 2:
        raise ValueError(
            f"the checkpoint {str(files.folder)!r} has {weight.shape[0]} outputs; Gaussian ones come in pairs of mean "
            "and log of the deviation"
        )
    outputs = weight.shape[0] // 2
    return ForeignHead(
        config=HeadConfig(kind="gaussian", outputs=outputs),
        weights={"score.weight": torch.cat([weight[0::2], weight[1::2]])},
        labels=URM_LABELS if outputs == len(URM_LABELS) else (),
    )


_URM_GATE = tuple(f"weights.fc.{layer}.{part}" for layer in (0, 2, 4) for part in ("weight", "bias"))


def _urm_head(files: CheckpointFiles) -> ForeignHead:
    import torch

    held = files.tensors(["score.weight", *_URM_GATE])
    score, last = held["score.weight"], held["weights.fc.4.weight"]
    outputs = last.shape[0]
    if score.shape[0] != 2 * outputs:
        raise ValueError(
            f"the checkpoint {str(files.folder)!r} has {score.shape[0]} outputs and weights for {outputs} attributes; "
            "each has two outputs, a mean and the log of a deviation"
        )
    gate = {name.replace("weights.fc", "gate"): held[name] for name in _URM_GATE}
    return ForeignHead(
        config=HeadConfig(
            kind="weighted", outputs=outputs, hidden=last.shape[1], depth=2, activation="selu", bias=True
        ),
        weights={"score.weight": score[0::2], "score.bias": torch.zeros(outputs), **gate},
        labels=URM_LABELS if outputs == len(URM_LABELS) else (),
    )


FAMILIES: tuple[Family, ...] = (
    Family(name="plain", fits=_plain_fits, models="Skywork-Reward v0.1, v0.2 and V2, FsfairX-LLaMA3-RM, RM-Mistral"),
    Family(
        name="armorm",
        fits=lambda files: "regression_layer.weight" in files.heads and "num_quantiles" not in files.config,
        head=_armorm_head,
        models="RLHFlow/ArmoRM-Llama3-8B-v0.1",
    ),
    Family(
        name="qrm",
        fits=lambda files: "regression_layer.weight" in files.heads and "num_quantiles" in files.config,
        head=_qrm_head,
        models="nicolinho/QRM-Llama3-8B, QRM-Llama3.1-8B",
    ),
    Family(
        name="inf_orm",
        fits=lambda files: _has_two_layers(files) and _PROCESS not in files.classes,
        head=_two_layers("last"),
        models="infly/INF-ORM-Llama3.1-70B",
    ),
    Family(
        name="qwen_prm",
        fits=lambda files: _has_two_layers(files) and _PROCESS in files.classes,
        head=_two_layers("tokens"),
        models="Qwen/Qwen2.5-Math-PRM-7B and 72B",
        what="process",
    ),
    Family(
        name="value_head",
        fits=lambda files: "Qwen2ForPrmModel" in files.classes and set(_VALUE_HEAD) <= set(files.heads),
        head=_value_head,
        models="Skywork/Skywork-o1-Open-PRM-Qwen-2.5-1.5B and 7B",
        what="process",
    ),
    Family(
        name="urm",
        fits=lambda files: set(files.heads) - {"lm_head.weight"} == {"score.weight", *_URM_GATE},
        head=_urm_head,
        models="LxzGordon/URM-LLaMa-3.1-8B",
    ),
    Family(name="gaussian", fits=lambda files: False, head=_gaussian_head),
)


def family_of(files: CheckpointFiles, name: str = "") -> Family:
    """Return the family of a name, or, without one, the one that a checkpoint is recognised as.

    Raises:
        ValueError: there is no such family, or the head is of none, or of several.
    """
    names = ", ".join(family.name for family in FAMILIES)
    if name:
        for family in FAMILIES:
            if family.name == name:
                return family
        raise ValueError(f"there is no family {name!r} of reward models; there are {names}")
    fitting = [family for family in FAMILIES if family.fits(files)]
    if len(fitting) == 1:
        return fitting[0]
    classes = ", ".join(files.classes) or "no class"
    if fitting:
        raise ValueError(
            f"the head of {str(files.folder)!r} fits {', '.join(family.name for family in fitting)}; say which with "
            "the option `family`"
        )
    raise ValueError(
        f"the head of {str(files.folder)!r} is not known: its config.json names {classes}, and beside the body it has "
        f"{files.seen}; name its family ({names}) with the option `family`, or give a plain sequence classifier"
    )


def foreign(classes: Sequence[str]) -> bool:
    """Whether classes are named, and transformers has none of them."""
    import transformers

    return bool(classes) and not set(classes) & set(dir(transformers))


def head_vllm_lacks(files: CheckpointFiles) -> str:
    """Return the name of the family of a checkpoint whose class vLLM 0.32 lacks; "" where it may have it."""
    if not foreign(files.classes) or set(files.classes) & {_PROCESS, "Qwen2ForRewardModel"}:
        return ""
    return next((family.name for family in FAMILIES if family.head is not None and family.fits(files)), "")


def published_family(files: CheckpointFiles) -> Family | None:
    """Return the family of a checkpoint of a class that transformers lacks; None where transformers reads it as it is.

    Raises:
        ValueError: its head is not known.
    """
    if not foreign(files.classes):
        return None
    family = family_of(files)
    return None if family.head is None else family
