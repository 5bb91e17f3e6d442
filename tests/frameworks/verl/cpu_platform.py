"""What verl needs on a machine without a GPU: a platform, and rollouts by transformers in place of vLLM's.

Each of verl's processes imports this file, because VERL_USE_EXTERNAL_MODULES names it: verl's own way to add hardware.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import ray
import torch
from transformers import AutoModelForCausalLM

platform: Any = import_module("verl.plugin.platform")
cuda: Any = import_module("verl.plugin.platform.platform_cuda")
groups: Any = import_module("verl.utils.distributed")
# verl names the backend for the processor and for the device, which are one here.  No setting changes that, so this has
# to stand before what takes the function from its module.
groups.initialize_global_process_group_ray = partial(groups.initialize_global_process_group_ray, backend="cpu:gloo")
base: Any = import_module("verl.workers.rollout.base")
replica: Any = import_module("verl.workers.rollout.replica")

NAME = "transformers"
SERVER = "rollout_server_{}"


class Device:
    """Stands for the module `torch.cuda`; `torch.cpu` lacks what is asked of memory."""

    def is_available(self) -> bool:
        """Whether there is memory to empty and to measure."""
        return False

    def get_device_name(self) -> str:
        """The name by which verl looks up how fast the device is."""
        return "CPU"

    def mem_get_info(self) -> tuple[int, int]:
        """Bytes that are free, and all."""
        return 0, 0

    def memory_allocated(self) -> int:
        """Bytes in use on the device."""
        return 0

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def empty_cache(self) -> None:
        """There is none."""

    synchronize = empty_cache


@platform.PlatformRegistry.register(platform="cpu")
class Processor(cuda.PlatformCUDA):  # type: ignore[misc]  # verl has no types
    """The processor in CUDA's place; Ray is told that it has one GPU."""

    device_name = "cpu"
    device_module = Device()

    def is_available(self) -> bool:
        """Whether it can be used."""
        return True

    def current_device(self) -> Any:
        """The device: where verl expects a number, this does as well."""
        return torch.device("cpu")

    def set_allocator_settings(self, settings: str) -> None:
        """There is nothing to set."""

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        """Measure nothing."""
        yield


class Server:
    """A Ray actor that answers what verl's client for vLLM asks."""

    def __init__(self, path: str, longest: int, seed: int) -> None:
        self._model: Any = AutoModelForCausalLM.from_pretrained(path)
        self._longest = longest
        self._steps = -1  # no weights came yet
        torch.manual_seed(seed)

    def update_weights(self, weights: dict[str, Any], steps: int) -> None:
        """Take the weights that the trainer has after so many steps."""
        self._model.load_state_dict(weights)
        self._steps = steps

    def generate(self, prompt_ids: list[int], sampling_params: dict[str, Any], **more: Any) -> Any:
        """Return the tokens of one answer, with the end token if it came to an end."""
        temperature = sampling_params["temperature"]
        ids: list[int] = []
        log_probs: list[float] = []
        cache, new = None, list(prompt_ids)
        with torch.inference_mode():  # without `model.generate`, which takes as long again for each token
            while len(ids) < self._longest and new != [self._model.generation_config.eos_token_id]:
                out = self._model(torch.tensor([new]), past_key_values=cache)
                cache = out.past_key_values
                likely = (out.logits[0, -1] / (temperature or 1.0)).log_softmax(-1)
                new = [int(likely.exp().multinomial(1) if temperature else likely.argmax())]
                ids += new
                log_probs.append(likely[new[0]].item())
        return replica.TokenOutput(
            token_ids=ids,
            log_probs=log_probs,
            stop_reason="completed",
            extra_fields={"global_steps": self._steps},
        )

    def sleep(self) -> None:
        """Keep the memory: it is not the trainer's."""

    wake_up = sleep


class Replica(replica.RolloutReplica):  # type: ignore[misc]
    """Starts the server."""

    async def launch_servers(self) -> None:
        """Start it as an actor with a name, by which the trainer's side finds it."""
        self._server_address = SERVER.format(self.replica_rank)
        actor = ray.remote(Server).options(name=self._server_address)
        self._server_handle = actor.remote(self.model_config.path, self.config.response_length, self.config.seed)
        self.servers = [self._server_handle]


class Adapter(base.BaseRollout):  # type: ignore[misc]
    """The trainer's side: hands its weights to the server."""

    async def resume(self, tags: list[str]) -> None:
        """Nothing was given back."""

    async def release(self) -> None:
        """Nothing is taken."""

    async def update_weights(self, weights: Any, global_steps: int | None = None, **more: Any) -> None:
        """Send all of them, on verl's first call and after each step."""
        server = ray.get_actor(SERVER.format(0))
        await server.update_weights.remote({name: weight.detach().cpu() for name, weight in weights}, global_steps)


replica.RolloutReplicaRegistry.register(NAME, lambda: Replica)
base._ROLLOUT_REGISTRY[NAME, "async"] = f"{__name__}.Adapter"  # the one table of verl's without a function to register
