"""One model at a time is made in a process.

While `transformers` makes a model it replaces `PreTrainedModel.tie_weights` and the default type of new tensors for
the whole process, and then puts back what it had found (5.19: `initialization.no_tie_weights`, `local_torch_dtype`).
Of two threads at it, the one that ends last puts back the other's replacement: from then on no model of the process has
its output embeddings tied to its input embeddings, and each scores with random ones, without an error.

Not covered: models that somebody else's code makes in other threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Making:
    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget who makes a model: a forked child has no such thread."""
        self.lock = threading.RLock()


_making = _Making()
os.register_at_fork(after_in_child=_making.begin_anew)


@contextmanager
def model_lock() -> Iterator[None]:
    """Wait until no other thread makes a model, and keep others from it."""
    with _making.lock:
        yield
