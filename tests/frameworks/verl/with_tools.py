"""An agent loop of verl's in which a tool spoke: a question, a call, the tool, an answer."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_Single: Any = import_module("verl.experimental.agent_loop.single_turn_agent_loop").SingleTurnAgentLoop


class WithTools(_Single):  # type: ignore[misc]
    """Answers once, and says that it took four turns."""

    async def run(self, sampling_params: dict[str, Any], **columns: Any) -> Any:
        """Return what verl's own loop does, as an agent loop with tools would."""
        output = await super().run(sampling_params, **columns)
        output.num_turns = 4
        return output
