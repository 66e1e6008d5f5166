"""The compiled pass of a site's own rules."""

from __future__ import annotations

from typing import Any, override

import numpy as np

from hpcrowd.environment.engine.kernel.arrays import wider
from hpcrowd.environment.engine.kernel.cluster import Cluster
from hpcrowd.environment.engine.kernel.heap import Heap
from hpcrowd.environment.engine.passes import site_rules as S
from hpcrowd.environment.engine.passes.base import CompiledPass, Machine
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.stops import FOREVER

#: Places that arrays have at first.
FIRST_ROOM = 1024


class SitePass(CompiledPass):
    """Runs :class:`~hpcrowd.environment.schedulers.policies.site.Site` in compiled code."""

    def __init__(self, scheduler: Any, engine: Machine) -> None:
        super().__init__(scheduler, engine)
        sizes = [size for _, size in scheduler.parts]
        parts = np.zeros((S.PART_ROWS, 1 + len(sizes)), np.int64)
        own = FOREVER if scheduler.processors is None else scheduler.processors
        parts[0] = [own, *sizes]
        site = self.site = S.SiteRules(
            np.zeros(FIRST_ROOM, np.int64), np.zeros(0), np.zeros(0),
            np.zeros((S.OF_ROWS, 0), np.int64),
            parts, np.zeros((S.USER_ROWS, 0), np.int64), Heap(np.zeros((2, FIRST_ROOM), np.int64)),
        )  # fmt: skip
        for name, limit in (
            ("most_jobs", scheduler.user_jobs),
            ("most_held", scheduler.user_processors),
            ("most_seen", scheduler.user_queued),
        ):
            setattr(site, name, FOREVER if limit is None else limit)
        site.backfill = scheduler.backfill != "none"
        site.sign = scheduler.sign
        site.corrects = engine.predictor is not None
        site.boundary = engine.now if scheduler.rules else FOREVER
        self._users: dict[int, int] = {}
        self._known = 0
        self._make_room(0)
        for job in engine.running.tolist():
            S.charge(site, engine.arrays().jobs, job, 1)

    @property
    @override
    def waiting(self) -> Int64s:
        found: Int64s = np.asarray(self.site.queue)[: self.site.count].copy()
        return found

    @override
    def advance(self, cluster: Cluster, remaining: Int64s, halt: int) -> int:
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        return S.advance_site(cluster, remaining, halt, self.site)

    @override
    def schedule(self, ended: Int64s, arrived: Int64s) -> int:
        self._make_room(len(arrived))
        site, now = self.site, self.engine.now
        if now >= site.boundary:
            site.shut, site.boundary = self.scheduler.hours_at(now)
        S.site_pass(self.engine.arrays(), site, ended, arrived)
        return int(site.boundary)

    def _make_room(self, arrived: int) -> None:
        """Give more room to whatever array could become full in a pass."""
        if self._known < len(self.engine.jobs):
            self._learn_jobs()
        site, state = self.site, self.engine.state
        if site.count + arrived > len(site.queue):
            site.queue = wider(site.queue, 2 * (site.count + arrived))
        need = state.running + state.waiting + arrived
        if need > site.ends.table.shape[1]:
            site.ends.table = wider(site.ends.table, 2 * need)

    def _learn_jobs(self) -> None:
        """Note partitions, users, rules and keys of jobs that the table did not have yet."""
        jobs, policy, site = self.engine.jobs, self.scheduler, self.site
        first, last, room = self._known, len(jobs), jobs.matrix.shape[1]
        self._known = last
        if room > len(site.keys):
            site.keys, site.base = wider(site.keys, room), wider(site.base, room)
            site.of = wider(site.of, room)
        of, new = np.asarray(site.of), slice(first, last)
        of[0, new] = policy.parts_of(jobs.queue[new], jobs.processors[new])
        users = jobs.user[new].tolist()
        of[1, new] = [self._users.setdefault(one, len(self._users)) for one in users]
        of[2, new] = policy.rules_of(jobs.requested_time[new], jobs.queue[new])
        np.asarray(site.base)[new] = policy.keys(
            jobs.requested_time[new], jobs.processors[new], jobs.queue[new]
        )
        if len(self._users) > site.users.shape[1]:
            site.users = wider(site.users, 2 * len(self._users))
