"""Double the nodes.

Covers: a change of the platform; rigid users compared with users who keep their think times.

Story: an operator buys the same machine again and asks how much shorter the queue becomes. A rigid
replay answers for users who do not notice. Users who wait for their jobs get their answers sooner
and submit sooner too, so part of the gain goes into more work per day. The run times stay as they
are, so on a machine that was not full the users gain little (Madon et al. 2024, infra * 2).

Run: ``python -m hpcrowd.scenarios.whatif.double_nodes TRACE``
"""

from __future__ import annotations

import sys

from hpcrowd.scenarios.whatif.scripts import change_script

PROCESSORS = "2x"  # processors after the change, a multiple of the trace's
SCHEDULER = "easy"  # before and after
SESSIONS = "arrival:60m"  # a gap of more than 60 minutes between submissions ends a session
REQUESTED = "given"  # requested times as the users gave them

CHANGE = {"processors": PROCESSORS}

#: Prints the comparison; returns the exit code.
main = change_script(
    "double_nodes",
    f"Nodes {PROCESSORS}",
    CHANGE,
    scheduler=SCHEDULER,
    sessions=SESSIONS,
    requested=REQUESTED,
)

if __name__ == "__main__":
    sys.exit(main())
