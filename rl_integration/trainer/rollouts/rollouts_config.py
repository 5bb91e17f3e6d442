"""Which prompts a run has, which answers to them are drawn, when, and by what.

Not covered: top-k sampling and `min_p`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from adjudge.io.source import DatasetChoice
from adjudge.options import Count, Options, Range
from adjudge.rl_integration.trainer.rollouts.facts import Fact
from adjudge.rl_integration.trainer.rollouts.tool import ToolUse
from adjudge.rl_integration.trainer.rollouts.user import UserChoice

UNREADABLE = "\ufffd"
"""What tokens are decoded to that are not a character."""


@dataclass(frozen=True, kw_only=True)
class SamplingConfig(Options, what="sampling option"):
    """How answers are drawn.

    Attributes:
        max_new_tokens: tokens of an answer, the end token included.
        temperature: what logits are divided by; 0 takes the likeliest token.
        top_p: draw from the likeliest tokens alone that have this share of the probability together.  Log-probabilities
            are those without that, and so are those that learning compares them with: tokens count as if they had been
            drawn from all, which is a bias.
        max_num_seqs: answers written side by side.
        stop: texts that end an answer of one turn, once it holds one, besides the end token; they stay in the answer.
    """

    max_new_tokens: Count = 256
    temperature: Annotated[float, Range(ge=0)] = 1.0
    top_p: Annotated[float, Range(gt=0, le=1)] = 1.0
    max_num_seqs: Count = 256
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(self.stop) or UNREADABLE in "".join(self.stop):
            raise ValueError(
                f"rollouts.sampling.stop is {self.stop!r}; give a list of texts, none empty or with U+FFFD"
            )


Kind: TypeAlias = Literal["segments", "uncertain", "random", "scored"]


@dataclass(frozen=True, kw_only=True)
class TreeConfig(Options, what="rollouts.tree option"):
    """How the answers to one prompt branch.

    Attributes:
        kind: "segments" forks after every so many tokens (TreePO, arXiv 2508.17445); "uncertain" forks finished answers
            at the tokens that were least likely (TreeRL, arXiv 2506.11902), "random" at any.  Of answers that call
            tools, turns are forked in the place of tokens: all, those of the least mean log-probability (AT2PO, arXiv
            2601.04767), or any (Tree-GRPO, arXiv 2509.21240); "scored" those behind the turns that `scorer` gives most.
        trees: answers that begin at the prompt.
        segment: tokens between two forks; of "segments" without tools.
        width: most branches of a fork; of "segments".
        forks: tokens or turns at which each of the first answers is forked; not of "segments".
        copies: answers that go on from each of those; not of "segments".
        scorer: a name or spec, as of a reward, of one whose score has the turns in its steps; of "scored", the run's
            own reward where none is named.  With {information_gain: {engine: policy}} answers fork where the right one
            has become likelier (SIGHT, arXiv 2602.11551).
        hints: what answers that go on from a turn read there first, each of the `copies` the next one (SIGHT: to search
            for something else, to think again); not of "segments".
    """

    shorthand: ClassVar[str] = "kind"

    kind: Kind = "segments"
    trees: Count = 1
    segment: Count = 64
    width: Annotated[int, Range(ge=2)] = 2
    forks: Count = 2
    copies: Count = 2
    scorer: Any = None
    hints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hints and (self.kind == "segments" or not all(hint.strip() for hint in self.hints)):
            raise ValueError(f"rollouts.tree.hints is {self.hints!r}; give texts, and another kind than segments")
        if self.kind != "scored" and self.scorer is not None:
            raise ValueError(
                f"rollouts.tree.kind is {self.kind!r} and scorer {self.scorer!r}; only scored has a scorer of turns"
            )

    def check(self, num_generations: int) -> None:
        """Raise `ValueError` if groups of that size cannot branch so."""
        if self.kind != "segments" and num_generations != self.trees * (1 + self.forks * self.copies):
            size = self.trees * (1 + self.forks * self.copies)
            raise ValueError(
                f"rollouts.num_generations is {num_generations}, and trees * (1 + forks * copies) of "
                f"rollouts.tree is {size}; make them equal"
            )
        if self.trees > num_generations:
            raise ValueError(
                f"rollouts.tree.trees is {self.trees}; a group of {num_generations} has no room for so many"
            )


@dataclass(frozen=True, kw_only=True)
class VllmOptions(Options, what="rollouts.vllm option"):
    """How vLLM runs the policy, in the process that trains it.

    Attributes:
        dtype: of vLLM's copy of the weights; "auto" takes what the policy computes in, so that least is to be corrected
            for: float32 or bfloat16.
        max_model_len: most tokens of a prompt and its answer; 0 for all that the policy reads.
        gpu_memory_utilization: share of a GPU's memory that vLLM may fill; the rest is for learning.
        kv_cache_gib: GiB for the cache of keys and values; 0 takes what the share leaves on a GPU, and 1 on a CPU.
        enforce_eager: no CUDA graphs: starts sooner, writes slower; on a CPU it is always so.
        sleep: give the GPU's memory back between rollouts; the weights then wait in the host's memory.
    """

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_model_len: Annotated[int, Range(ge=0)] = 0
    gpu_memory_utilization: Annotated[float, Range(gt=0, le=1)] = 0.3
    kv_cache_gib: Annotated[float, Range(ge=0)] = 0.0
    enforce_eager: bool = False
    sleep: bool = False


@dataclass(frozen=True, kw_only=True)
class RolloutsConfig(Options, what="rollouts option"):
    """Which answers are drawn, and when.

    Attributes:
        tasks: prompts of a step.
        num_generations: answers to each.
        staleness: how many updates old answers are: so many batches are written before the scores of the one to learn
            from are waited for.  0 learns from the newest policy's answers alone; 1 hides scores that take as long as
            a batch takes to write, and learns from answers of the policy before, whose probabilities are corrected for.
        max_num_gen_batches: for objectives that draw groups anew: batches that one step may use up.
        tools: what the policy may call while it answers; None for answers of one turn.
        sampling: how answers are drawn.
        engine: what writes answers: "transformers", with the very model that learns, or "vllm", with a copy of it.
        vllm: how vLLM runs.
        tree: how the answers to a prompt share beginnings; None for answers that are written by themselves.
        user: who answers the policy between its turns; None for nobody.
        facts: what scorers are told of the run, in `Sample.extra`: step, progress, abstention_rate, stale_evals,
            confidence, direct (docs/trainer.md#facts-for-scorers).
    """

    tasks: Count = 8
    num_generations: Count = 8
    staleness: Annotated[int, Range(ge=0)] = 0
    max_num_gen_batches: Count = 4
    tools: ToolUse | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    engine: Literal["transformers", "vllm"] = "transformers"
    vllm: VllmOptions = field(default_factory=VllmOptions)
    tree: TreeConfig | None = None
    user: UserChoice | None = None
    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        ending = [name for name in ("tools", "user", "tree") if getattr(self, name) is not None]
        if self.sampling.stop and ending:
            raise ValueError(
                f"rollouts.sampling.stop is set, and rollouts.{ending[0]} says where "
                "pieces of an answer end; take one of the two"
            )
        if self.tree is not None:
            self.tree.check(self.num_generations)
            if (self.tree.kind == "scored" or self.tree.hints) and self.tools is None and self.user is None:
                raise ValueError("rollouts.tree forks turns (kind: scored, hints); set rollouts.tools or rollouts.user")


PLACE = "{prompt}"
"""Stands for a row's prompt in a template."""


@dataclass(frozen=True, kw_only=True)
class TaskFiles(DatasetChoice, Options, what="data option"):
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
        begun: column of what an answer begins with, of which the policy writes the rest, as `adjudge data prefixes`
            makes it; "" for whole answers.
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
    begun: str = ""
    limit: Count | None = None
    template: str = PLACE
    chat: bool = False
    system: str = ""
    max_prompt_tokens: Count | None = None
    held_out: Annotated[float, Range(ge=0, lt=1)] = 0.1
    max_held_out: Count = 256
    held_out_path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.path or not all(self.path):
            raise ValueError("data.path is empty; name a file with prompts")
        if self.template.count(PLACE) != 1:
            raise ValueError(f"data.template is {self.template!r}; it must hold {PLACE} once, where the prompt goes")
