"""What can be said about a reward before any work: whether it is there, and which prompts it can never judge."""

from __future__ import annotations

from adjudge.api import load
from adjudge.extras import install_hint
from adjudge.protocol import Sample, Scorer
from adjudge.rl_integration.client.client import AsyncClient
from adjudge.rl_integration.client.config import ClientConfig
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.runtime.contract import validate_sample
from adjudge.runtime.loop import run_blocking

_SECONDS = 15.0  # for a server's first answer


class RewardCheck:
    """Takes samples that a reward can judge, whatever their responses, and refuses others.

    Args:
        option: that holds it, for messages.
        config: where scores come from.

    Raises:
        ValueError: there is no such scorer, or the server does not answer.
    """

    def __init__(self, option: str, config: RewardConfig) -> None:
        self._option = option
        self.config = config
        self._scorer: Scorer | None = None
        if config.server:
            self._ask_server()
        else:
            self._scorer = self._loaded()

    def accept(self, sample: Sample) -> None:
        """Raise `ValueError` if the reward cannot judge a sample; a server is not asked.

        Raises:
            ValueError: it lacks what the scorer needs.
        """
        if self._scorer is not None:
            validate_sample(self._scorer, sample)

    def _loaded(self) -> Scorer:
        try:
            return load(self.config.scorer)
        except ValueError as error:
            raise ValueError(f"{self._option}.scorer: {error}") from error

    def _ask_server(self) -> None:
        """Look whether the server is there and has the scorer."""
        url = self.config.server
        client = AsyncClient(ClientConfig(url=url, attempts=3, timeout=_SECONDS, deadline=_SECONDS))
        try:
            names = [one.get("name") for one in run_blocking(client.scorers())]
        except ImportError as error:
            missing = f"{self._option}.server needs a package ({error})"
            raise ValueError(f"{missing}; {install_hint('serve')}") from error
        except ConnectionError as error:
            raise ValueError(
                f"{self._option}.server is {url!r}, which does not answer ({error}); start it with adjudge serve, or "
                "correct the address"
            ) from error
        wanted = self.config.scorer
        if (wanted is None and len(names) != 1) or (wanted is not None and wanted not in names):
            raise ValueError(
                f"{self._option}.scorer is {wanted!r}; the server at {url} has {', '.join(map(str, names)) or 'none'}"
            )
