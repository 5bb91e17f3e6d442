"""What can stop a job over rows after it began.

A mistake of the user raises `ValueError` before any work; a bad row stops nothing.  What remains is here.
"""

from __future__ import annotations

import errno
from typing import Final

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # a full disk or quota, `ulimit -f`


class JobError(RuntimeError):
    """The job could not go on: a scorer broke, the disk is full, the input is damaged or the output is taken.

    What was committed stays beside the output; the message says what to repair before the same call goes on from there.
    """


class JobStopped(KeyboardInterrupt):
    """Ctrl-C: what was done is committed, and the same call goes on from there.  A command exits with 130."""
