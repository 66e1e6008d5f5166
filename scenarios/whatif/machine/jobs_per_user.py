"""A limit of jobs per user.

Covers: a limit of a QOS; who gains and who loses, user by user.

Story: a few users submit hundreds of jobs at once and fill the machine. The operator lets nobody
run more than a few jobs at the same time. Those who submit much wait longer, with the reason
``QOSMaxJobsPerUserLimit``, while the others find free nodes; some nodes stay empty although jobs
wait. Limits of the machine that were described but not enforced hold then, too.

Run: ``python -m hpcrowd.scenarios.whatif.machine.jobs_per_user [LOG MACHINE]``
"""

from __future__ import annotations

import sys

from hpcrowd.environment.machine.model import Qos
from hpcrowd.scenarios.whatif.machine.comparison import Change, Site, machine_script

JOBS = 4  # of a user that run at the same time, in each QOS


def change(site: Site) -> Change:
    """Return the machine with the limit in every QOS; in ``normal`` if it has none."""
    machine = site.machine
    qos = [
        one.model_copy(update={"limits": one.limits.model_copy(update={"max_jobs": JOBS})})
        for one in machine.qos or (Qos(name="normal"),)
    ]
    enforced = machine.scheduling.model_copy(update={"enforce_limits": True})
    return Change(
        f"At most {JOBS} running jobs of a user", machine.changed(qos=qos, scheduling=enforced)
    )


#: Prints what the limit changes; returns the exit code.
main = machine_script("jobs_per_user", change)

if __name__ == "__main__":
    sys.exit(main())
