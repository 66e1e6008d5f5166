"""Doubling the weight of fair share.

Covers: a weight of the multifactor priority; waits by account.

Story: accounts that have used little complain that they queue behind accounts that use much. The
operator doubles the weight of fair share, and asks who waits longer then. Waits move from one
account to another; the machine does no more work.

Run: ``python -m hpcrowd.scenarios.whatif.machine.fair_share_weight [LOG MACHINE]``
"""

from __future__ import annotations

import sys

from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.whatif.machine.comparison import Change, Site, machine_script

FACTOR = 2  # by which the weight is multiplied


def change(site: Site) -> Change:
    """Return the machine with the larger weight."""
    priority = site.machine.priority
    weight = priority.weight_fair_share
    if not weight:
        raise QuantityError(
            "priority.weight_fair_share 0: fair share has no weight; give the machine one, such "
            "as MACHINE:priority.weight-fair-share=1000"
        )
    return Change(
        f"Weight of fair share {FACTOR * weight:,} instead of {weight:,}",
        site.machine.changed(
            priority=priority.model_copy(update={"weight_fair_share": FACTOR * weight})
        ),
    )


#: Prints what the weight changes; returns the exit code.
main = machine_script("fair_share_weight", change)

if __name__ == "__main__":
    sys.exit(main())
