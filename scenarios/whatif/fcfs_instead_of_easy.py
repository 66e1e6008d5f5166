"""First come, first served instead of EASY backfilling.

Covers: a change of the scheduler; rigid users compared with users who keep their think times.

Story: backfilling is switched off, because users find it unfair that later jobs overtake. Jobs that
need many processors now block all jobs behind them while the machine drains. Rigid users
queue up; users who wait for their jobs submit later, and the load falls below what the machine
could carry (Madon et al. 2024, FCFS).

Run: ``python -m hpcrowd.scenarios.whatif.fcfs_instead_of_easy TRACE``
"""

from __future__ import annotations

import sys

from hpcrowd.scenarios.whatif.scripts import change_script

BEFORE = "easy"  # scheduler before the change
AFTER = "fcfs"  # scheduler after it
SESSIONS = "arrival:60m"  # a gap of more than 60 minutes between submissions ends a session
REQUESTED = "given"  # requested times as the users gave them; FCFS does not use them

CHANGE = {"scheduler": AFTER}

#: Prints the comparison; returns the exit code.
main = change_script(
    "fcfs_instead_of_easy",
    f"{AFTER.upper()} instead of {BEFORE.upper()}",
    CHANGE,
    scheduler=BEFORE,
    sessions=SESSIONS,
    requested=REQUESTED,
)

if __name__ == "__main__":
    sys.exit(main())
