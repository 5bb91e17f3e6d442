"""What a run writes its answers with: a generator of tokens, and a writer for one turn or several."""

from __future__ import annotations

from adjudge.rl_integration.trainer.rollouts.calls import ChatCalls, TagCalls, Toolbox, Turns, check_writable
from adjudge.rl_integration.trainer.rollouts.dialogue import Dialogue, Listening
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, TreeConfig
from adjudge.rl_integration.trainer.rollouts.tool import ToolUse
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.tree_writer import TreeWriter
from adjudge.rl_integration.trainer.rollouts.user import UserChoice
from adjudge.rl_integration.trainer.rollouts.writer import Generator, Writer


def window(policy: Policy, config: RolloutsConfig) -> int:
    """Return the most tokens of a prompt and its answer together."""
    own = policy.tokens.window
    return min(own, config.vllm.max_model_len or own) if config.engine == "vllm" else own


def open_generator(policy: Policy, config: RolloutsConfig) -> Generator:
    """Return what writes a policy's answers; a heavy engine starts with the first of them.

    Raises:
        ValueError: the engine is not installed, or cannot draw as it is told to, or a stop text cannot be written.
    """
    check_writable(policy, config.sampling.stop)
    if config.engine == "vllm":
        from adjudge.rl_integration.trainer.rollouts.vllm_generator import VllmGenerator

        return VllmGenerator(policy, config.vllm, config.sampling)
    return TransformersGenerator(policy)


def open_writer(
    policy: Policy,
    generator: Generator,
    tools: ToolUse | None,
    tree: TreeConfig | None = None,
    user: UserChoice | None = None,
) -> Writer:
    """Return what writes the answers of a run.

    Raises:
        ValueError: a tool or the user cannot be opened, or the policy cannot speak with them in this style.
    """
    listening = None
    if user is not None:
        turns = Turns(policy, "user")
        listening = Listening(user=user.opened(), turns=turns, max_turns=user.max_turns, timeout=user.timeout)
    if tools is None:
        if listening is not None:
            return Dialogue(policy, generator, listening.turns, tree=tree, user=listening)
        return Writer(policy, generator) if tree is None else TreeWriter(policy, generator, tree)
    toolbox = Toolbox([choice.opened() for choice in tools.offered], threads=tools.threads)
    style: ChatCalls | TagCalls = (
        ChatCalls(policy, toolbox.tools)
        if tools.style == "chat"
        else TagCalls(policy, toolbox.tools, before=tools.before, after=tools.after)
    )
    return Dialogue(
        policy,
        generator,
        style,
        toolbox,
        max_turns=tools.max_turns,
        timeout=tools.timeout,
        tree=tree,
        user=listening,
    )
