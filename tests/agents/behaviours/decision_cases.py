"""What holds of any log of users who make up their work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from hpcrowd.agents.behaviours.decisions import Decision, What, Why
from hpcrowd.environment import JobTable

#: After these a user submits nothing more, and comes and goes no more.
LAST = (What.DONE, What.GAVE_UP)


def ends_of(jobs: JobTable, *, hears: bool = True) -> dict[int, int]:
    """When each unit ended for its user: a job that never ran ended at once."""
    heard = np.where(jobs.end >= 0, jobs.end, jobs.submit)
    over = heard if hears else jobs.submit + jobs.run_time
    ends: dict[int, int] = {}
    for unit, end in zip(jobs.batch.tolist(), over.tolist(), strict=True):
        ends[unit] = max(end, ends.get(unit, 0))
    return ends


def check_sums(jobs: JobTable, found: Iterable[Decision], *, hears: bool = True) -> None:
    """Each unit is submitted once, by its user, at the sum of what the log says of it."""
    ends = ends_of(jobs, hears=hears)
    owner = dict(zip(jobs.batch.tolist(), jobs.user.tolist(), strict=True))
    first: dict[int, int] = {}
    for unit, at in zip(jobs.batch.tolist(), jobs.submit.tolist(), strict=True):
        first[unit] = min(at, first.get(unit, at))
    submitted: dict[int, Decision] = {}
    waits: dict[int, list[Decision]] = defaultdict(list)
    for one in found:
        if one.what == What.SUBMITTED:
            assert one.unit not in submitted
            submitted[one.unit] = one
        elif one.what == What.WAITS:
            waits[one.unit].append(one)
    assert first == {unit: one.time for unit, one in submitted.items()}
    assert set(waits) <= set(submitted)
    for unit, one in submitted.items():
        assert owner[unit] == one.user
        put_off = sum(wait.seconds for wait in waits[unit])
        if one.why in (Why.ENDED, Why.BREAK):
            assert one.user == owner[one.cause]
            assert one.seconds >= 0
            assert one.time == ends[one.cause] + one.seconds + put_off
        else:
            assert (-1, -1) == (one.cause, one.seconds)
        # Each wait begins where what came before it ends.
        at = one.time - put_off
        for wait in sorted(waits[unit], key=lambda wait: wait.why != Why.PACE):
            came = at + min(wait.seconds, 0)  # what shortens a pause is noted when it has
            assert (came, one.user, one.cause) == (wait.time, wait.user, wait.cause)
            at += wait.seconds


def check_gone(found: Iterable[Decision]) -> None:
    """Nothing is noted of who is gone, and who is away submits nothing."""
    gone: dict[int, Decision] = {}
    away: dict[int, bool] = defaultdict(bool)
    for one in sorted(found, key=lambda one: one.time):
        before = gone.get(one.user)
        assert before is None or one.time == before.time, one
        if one.what in LAST:
            gone[one.user] = one
        elif one.what in (What.WENT_AWAY, What.CAME_BACK):
            away[one.user] = one.what == What.WENT_AWAY
        elif one.what == What.SUBMITTED:
            assert not away[one.user]
