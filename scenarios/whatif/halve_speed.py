"""Halve the speed of the nodes.

Covers: a change of the platform that affects every job; backlog; rigid users compared with users
who keep their think times.

Story: to save power, the nodes run at half their speed and every job takes twice as long. Rigid
users keep submitting as if nothing had happened, and the queue grows without end: such a forecast
is useless. Users who wait for their jobs submit later than recorded instead, and the queue stays
bearable (Madon et al. 2024, perf / 2).

Run: ``python -m hpcrowd.scenarios.whatif.halve_speed TRACE``
"""

from __future__ import annotations

import sys

from hpcrowd.scenarios.whatif.scripts import change_script

SPEED = "0.5x"  # speed of the nodes after the change; run times are divided by it
SCHEDULER = "easy"  # before and after
SESSIONS = "arrival:60m"  # a gap of more than 60 minutes between submissions ends a session
REQUESTED = "at-least:2x"  # requested times cover the doubled run times, before and after

CHANGE = {"speed": SPEED}

#: Prints the comparison; returns the exit code.
main = change_script(
    "halve_speed",
    f"Speed {SPEED}",
    CHANGE,
    scheduler=SCHEDULER,
    sessions=SESSIONS,
    requested=REQUESTED,
)

if __name__ == "__main__":
    sys.exit(main())
