"""Why an engine comes back from :meth:`advance`, and the end of time."""

from __future__ import annotations

from enum import IntEnum

#: A time that never comes, the largest int64.
FOREVER = 2**63 - 1


class Stop(IntEnum):
    """Why the engine returned."""

    DONE = 0  #: nothing is left to happen
    FINISHED = 1  #: units that users wait for have finished
    HALT = 2  #: the halt time is reached: its completions are done, its arrivals are not
    PAUSE = 3  #: the allowance of events is used up
    ROOM = 4  #: a compiled array is full; never seen outside the engine
    PASS = 5  #: the policy's scheduling pass is due; never seen outside the engine
    CHANGE = 6  #: the platform changes now; never seen outside the engine
