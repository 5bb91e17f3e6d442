"""A loaded model that reads rows of tokens and answers at chosen places, sharing what rows have in common.

Classifiers read rows *packed* (`transformers_packed`) where their attention allows it.  Others are read in *levels*: a
level continues rows of the one before it, so a prefix is read once for all that begin with it, and a prompt once for
all labels that may follow.  Levels are padded on the left, so that every row's newest tokens stand side by side; rows
read in one go are padded on the right and need no mask, because nothing before the padding ever sees it.  Positions are
counted without padding.

Not covered: which rows share what (`adjudge.engines.shared_prefixes`), and models whose memory is not a list of keys
and values (sliding windows, state spaces) beyond reading rows in one go.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adjudge.engines import transformers_packed
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.shared_prefixes import Group, Tokens, cost, grouped
from adjudge.engines.transformers_packed import Packed, integers
from adjudge.engines.transformers_weights import Task, output_head

if TYPE_CHECKING:
    import torch

# Sharing costs a second pass and a copy of the prefix for each row.  On a CPU (2 cores, 2 layers 64 wide and 8 layers
# 512 wide) it paid from about a fifth of the tokens on; benchmarks/engines.py measures both ways.
_WORTH = 0.25
_FEWEST = 64  # tokens saved

_SHORTEST = 16  # tokens of a prefix that packed rows share: a piece more costs attention about as much
_FEW = 2  # places of each row that the last layer's attention is asked for one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What has been read so far, one row for each context.

    Attributes:
        cache: keys and values.
        mask: (rows, width) true where a token is, false where padding is.
    """

    cache: Any
    mask: torch.Tensor

    def branched(self, parents: Sequence[int]) -> Level:
        """Return a level whose rows continue the given ones; this one stays as it is."""
        import torch

        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(layer) for layer in self.cache.layers]
        if list(parents) == list(range(self.mask.shape[0])):
            return Level(cache=cache, mask=self.mask)
        chosen = torch.tensor(parents, device=self.mask.device)
        cache.batch_select_indices(chosen)
        return Level(cache=cache, mask=self.mask[chosen])


class Network:
    """A model and how to call it; not to be called from two threads at once.

    Args:
        model: what `transformers_weights.weights` returned.
        task: what it was loaded for.
        sharing: whether common prefixes are read once where that pays.
        packing: whether rows are packed where the model allows it.
        compiling: whether layers that read packed rows are compiled.

    Attributes:
        sharing: as given.
        unpacked: why rows are not packed; "" where they are.
    """

    def __init__(self, model: Any, task: Task, *, sharing: bool = True, packing: bool = True, compiling: bool = False):
        from adjudge.engines.reward_network import RewardNetwork

        self._model = model
        self.sharing = sharing
        self._task = task
        self._head = output_head(model, task)
        self._body: Any = None
        self._config = HeadConfig()  # where published classifiers read; ours say so themselves
        if isinstance(model, RewardNetwork):
            self._body, self._head, self._config = model.backbone, model.head, model.head.config
        elif task != "generate" and hasattr(model, "score") and type(model).__module__.startswith("transformers."):
            self._body = getattr(model, model.base_model_prefix, None)
        # Keys and values of all tokens are kept, so that a gap in a row can be masked out.
        self._levels = transformers_packed.windows_of(model.config) == 0
        self._packs, self.unpacked = 0, "only classifiers of known architectures are packed"
        if self._body is not None:
            self._packs, self.unpacked = transformers_packed.usable(self._body) if packing else (0, "attn is given")
        if self._body is not None and not self._packs:
            self._levels = self._levels and _looks_back(self._body)
        for layer in getattr(self._body, "layers", ()) if compiling and self._packs else ():
            layer.compile(dynamic=True)  # in place, and once for all of them: they have the same code

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        device: torch.device = self._model.device
        return device

    @property
    def path(self) -> str:
        """How rows are read: "packed kernel", "packed pieces", "shared prefixes" where that pays, or "padded"."""
        if self._packs:
            return "packed kernel" if self.device.type == "cuda" else "packed pieces"
        return "shared prefixes" if self.sharing and self.shares else "padded"

    @property
    def embeddings(self) -> torch.nn.Embedding:
        """The layer by which tokens enter the model."""
        layer: torch.nn.Embedding = (self._model if self._body is None else self._body).get_input_embeddings()
        return layer

    @property
    def vocabulary(self) -> int:
        """How many tokens the model knows."""
        return self.embeddings.weight.shape[0]

    def end_tokens(self) -> frozenset[int]:
        """Return the tokens that end a completion, as the model's own generation settings name them."""
        given = getattr(getattr(self._model, "generation_config", None), "eos_token_id", None)
        given = self._model.config.eos_token_id if given is None else given
        return frozenset([given] if isinstance(given, int) else given or ())

    def read(self, rows: Sequence[Tokens], places: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return the outputs at places of rows, each row's after the row's before it: (places in all, outputs).

        Args:
            rows: token ids.
            places: for each row, the positions to answer at, ascending, at least one.
        """
        states = self._states(rows, places)
        return states if self._task == "generate" else self._head(states)

    def begin(self, rows: Sequence[Tokens]) -> tuple[torch.Tensor, Level]:
        """Return the outputs at the last token of each row, (rows, outputs), and the level that continues them."""
        places = [[len(row) - 1] for row in rows]
        groups = self._groups(rows, places)
        return self._read_groups(rows, places, groups) if groups else self.read_level(None, (), rows, places)

    @property
    def shares(self) -> bool:
        """Whether rows can be read in levels."""
        return self._levels and (self._task == "generate" or self._body is not None)

    def read_level(
        self, above: Level | None, parents: Sequence[int], rows: Sequence[Tokens], places: Sequence[Sequence[int]]
    ) -> tuple[torch.Tensor, Level]:
        """Read rows that continue those of a level; return the outputs at places of them, and the new level.

        Args:
            above: the level before, if any; it can be continued again.
            parents: for each row, the row of `above` that it continues.
            rows: token ids, at least one in each row.
            places: for each row, the positions in it to answer at; there may be none.
        """
        import torch

        base = above.branched(parents) if above is not None else None
        ids, own = self._padded(rows, left=True)
        width = ids.shape[1]
        mask = own if base is None else torch.cat([base.mask, own], dim=1)
        at = [(number, width - len(row) + place) for number, row in enumerate(rows) for place in places[number]]
        outputs, cache = self._call(
            at,
            input_ids=ids,
            attention_mask=mask.long(),
            position_ids=(mask.long().cumsum(1) - 1).clamp_min(0)[:, -width:],
            past_key_values=None if base is None else base.cache,
            use_cache=True,
        )
        return outputs, Level(cache=cache, mask=mask)

    def read_all(self, rows: Sequence[Tokens]) -> list[torch.Tensor]:
        """Return a token classifier's outputs: for each row (tokens, outputs)."""
        if self._body is not None:
            return _split(self.read(rows, [range(len(row)) for row in rows]), rows)
        ids, mask = self._padded(rows)
        outputs = self._model(input_ids=ids, attention_mask=mask.long())
        values = outputs[0] if not hasattr(outputs, "logits") else outputs.logits
        return [values[number, : len(row)].float() for number, row in enumerate(rows)]

    def pooled(self, rows: Sequence[Tokens]) -> torch.Tensor:
        """Return a sequence classifier's outputs: (rows, outputs).

        A decoder is read at the last token of each row, found by its length: a test for the padding token would pass
        over a real end token where both are one token.  An encoder pools in its own way.
        """
        import torch

        if self._body is None:
            ids, mask = self._padded(rows)
            outputs: torch.Tensor = self._model(input_ids=ids, attention_mask=mask.long()).logits
            return outputs.float()
        if self._config.pooling == "mean":
            states = _split(self._states(rows, [range(len(row)) for row in rows]), rows)
            pooled: torch.Tensor = self._head(torch.stack([some.float().mean(0) for some in states]))
            return pooled
        return self.read(rows, [[0 if self._config.pooling == "first" else len(row) - 1] for row in rows])

    def gated(self, rows: Sequence[tuple[Tokens, int]]) -> torch.Tensor:
        """Return a gating head's outputs: attributes of each row's end, gate logits of its prompt's: (rows, outputs).

        Args:
            rows: token ids, and how many of them are the prompt.
        """
        import torch

        outputs = self.read([row for row, _ in rows], [[prompt - 1, len(row) - 1] for row, prompt in rows])
        attributes = self._config.outputs
        return torch.cat([outputs[1::2, :attributes], outputs[::2, attributes:]], dim=1)

    def _states(self, rows: Sequence[Tokens], places: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logits of a language model, or a classifier's hidden states, at places of rows: (places in all, width)."""
        if self._packs:
            return self._read_packed(rows, places)
        groups = self._groups(rows, places)
        return self._read_groups(rows, places, groups)[0] if groups else self._read_flat(rows, places)

    def _read_packed(self, rows: Sequence[Tokens], places: Sequence[Sequence[int]]) -> torch.Tensor:
        groups = [Group(prefix=0, rows=(row,)) for row in range(len(rows))]
        if self.sharing and len(rows) > 1:
            groups = [
                part
                for group in grouped(rows, [asked[-1] for asked in places])
                for part in ([group] if group.prefix >= _SHORTEST else [groups[row] for row in group.rows])
            ]
        packed = Packed.of(rows, groups)
        at = packed.places(places)
        calls = self._packs if len(at) <= _FEW * len(rows) else 0
        return transformers_packed.read(self._body, packed, self.device, places=at, calls=calls)

    def _read_flat(self, rows: Sequence[Tokens], places: Sequence[Sequence[int]]) -> torch.Tensor:
        ids, mask = self._padded(rows)
        at = [(number, place) for number in range(len(rows)) for place in places[number]]
        # Nothing looks ahead in a language model.  A classifier's body may have been made to.
        needed = {} if self._task == "generate" or self._levels else {"attention_mask": mask.long()}
        return self._call(at, input_ids=ids, use_cache=False, **needed)[0]

    def _groups(self, rows: Sequence[Tokens], places: Sequence[Sequence[int]]) -> list[Group]:
        """The groups to read rows in; none where sharing prefixes would not pay, or cannot be done."""
        if not (self.sharing and self.shares and len(rows) > 1):
            return []
        groups = grouped(rows, [asked[-1] for asked in places])
        tokens = sum(map(len, rows))
        if tokens - cost(rows, groups) < max(_FEWEST, _WORTH * tokens):
            return []
        # A row alone is cut as well, where the others are: then both passes have rows of about one length.
        longest = max(group.prefix for group in groups)
        groups = [
            group if group.prefix else Group(prefix=min(longest, places[group.rows[0]][-1]), rows=group.rows)
            for group in groups
        ]
        return groups if all(group.prefix for group in groups) else []

    def _read_groups(
        self, rows: Sequence[Tokens], places: Sequence[Sequence[int]], groups: Sequence[Group]
    ) -> tuple[torch.Tensor, Level]:
        import torch

        home = {row: number for number, group in enumerate(groups) for row in group.rows}
        cuts = [groups[home[row]].prefix for row in range(len(rows))]
        early = [
            sorted({place for row in group.rows for place in places[row] if place < group.prefix}) for group in groups
        ]
        first, above = self.read_level(None, (), [rows[group.rows[0]][: group.prefix] for group in groups], early)
        rest, level = self.read_level(
            above,
            [home[row] for row in range(len(rows))],
            [row[cut:] for row, cut in zip(rows, cuts, strict=True)],
            [[place - cut for place in asked if place >= cut] for asked, cut in zip(places, cuts, strict=True)],
        )
        if not any(early):
            return rest, level
        where = {(number, place): at for at, (number, place) in enumerate(_pairs(early))}
        late = itertools.count(len(first))
        order = [where[home[row], place] if place < cuts[row] else next(late) for row, place in _pairs(places)]
        return torch.cat([first, rest])[order], level

    def _padded(self, rows: Sequence[Tokens], *, left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids and a mask that is true where a token is, (rows, width) each."""
        import numpy as np
        import torch

        lengths = integers(map(len, rows))[:, None]
        at = np.arange(lengths.max())
        own = at >= len(at) - lengths if left else at < lengths
        ids = np.zeros(own.shape, np.int64)
        ids[own] = integers(itertools.chain.from_iterable(rows))
        return torch.from_numpy(ids).to(self.device), torch.from_numpy(own).to(self.device)

    def _call(self, at: Sequence[tuple[int, int]], **inputs: Any) -> tuple[torch.Tensor, Any]:
        import torch

        places = (
            torch.from_numpy(integers(row for row, _ in at)).to(self.device),
            torch.from_numpy(integers(column for _, column in at)).to(self.device),
        )
        if self._task != "generate":
            output = self._body(**inputs)
            return output.last_hidden_state[places], getattr(output, "past_key_values", None)

        def at_places(_: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            return states[0][places].unsqueeze(0), *states[1:]

        # The head is where most of the memory goes (a float for each word of the vocabulary): it sees only the places
        # that were asked for, before these become 32 bits.  What a model does to logits afterwards (soft caps, scales)
        # stays its own.  The hook is gone behind the call: a policy's model is also called by others.
        with self._head.register_forward_pre_hook(at_places, prepend=True):
            output = self._model(**inputs)
        logits = output.logits
        if logits.shape[:2] == (1, len(at)):
            return logits[0].float(), output.past_key_values
        return logits[places].float(), output.past_key_values  # a head that is not called as a module sees all places


def _split(values: torch.Tensor, rows: Sequence[Tokens]) -> list[torch.Tensor]:
    ends = list(itertools.accumulate(map(len, rows)))
    return [values[end - len(row) : end] for row, end in zip(rows, ends, strict=True)]


def _pairs(places: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    for row, asked in enumerate(places):
        for place in asked:
            yield row, place


def _looks_back(body: Any) -> bool:
    """Whether a token's hidden state depends on nothing that comes after it."""
    import torch

    rows = torch.tensor([[1, 2], [1, 3]], device=body.device)
    with torch.inference_mode():
        first = body(input_ids=rows, attention_mask=torch.ones_like(rows)).last_hidden_state[:, 0].float()
    return bool(torch.allclose(first[0], first[1], rtol=1e-4, atol=1e-6))
