"""Random workloads and policies for the tests of schedulers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import JobTable, Predictor, Simulation, parse_scheduler
from hpcrowd.environment.engine.kernel.profile import WIDTH
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.ordered import BACKFILL_MEANING, KEYS
from hypothesis import strategies as st

Rows = list[tuple[int, ...]]

#: What a run fills.
OUTCOME = ("submit", "estimate", "promised", "start", "end", "state")

#: (submission, run time, processors, requested time, user, group, queue), full of ties.
workloads = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, 10),
        st.integers(1, 7),
        st.integers(0, 12),
        st.sampled_from([-1, 1, 2, 3]),
        st.integers(1, 2),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=40,
)

keys = st.builds(lambda sign, key: sign + key, st.sampled_from(["", "-"]), st.sampled_from([*KEYS]))
backfills = st.sampled_from([*BACKFILL_MEANING])
maybe_none = st.sampled_from([*BACKFILL_MEANING, "none"])
limits = st.lists(
    st.builds(
        lambda who, what, most: f"{who}-{what}={most}",
        st.sampled_from(["user", "queue"]),
        st.sampled_from(["jobs", "processors"]),
        st.integers(1, 6),
    ),
    max_size=3,
    unique_by=lambda text: text.partition("=")[0],
)


def text(name: str, **options: Any) -> str:
    """The text of a policy with these options."""
    return f"{name}:" + ",".join(f"{key}={value}" for key, value in options.items())


#: Texts of policies that keep a plan of reservations.
plans = st.one_of(
    st.just("conservative"),
    st.builds(
        lambda name, threshold, cuts, bound: text(
            name, threshold=threshold, categories=cuts, bound=bound
        ),
        st.sampled_from(["selective", "selective-categorized"]),
        st.sampled_from(["adaptive", 1, 1.5, 4]),
        st.sampled_from(["none", "4", "2/6", "1/3/5/8"]),
        st.sampled_from([1, 3]),
    ),
)

#: Texts of policies with random options.
policies = st.one_of(
    plans,
    st.sampled_from(["fcfs", "easy", "sjf", "ljf"]),
    st.builds(lambda by: text("order", by=by), keys),
    st.builds(lambda order, how: text("easy", order=order, backfill=how), keys, backfills),
    st.builds(lambda how: text("easy", backfill=how), backfills),
    st.builds(
        lambda most, how, first: ",".join(
            [text("multi-queue", backfill=how, priorities=first), *most]
        ),
        limits,
        maybe_none,
        st.sampled_from(["1:2", "0:-1+2:0.5"]),
    ),
    st.builds(
        lambda life, by, how: text(
            "fair-share", **{"half-life": life, "by": by, "shares": "2:3+1:0.7", "backfill": how}
        ),
        st.sampled_from(["1", "7s", "1h"]),
        st.sampled_from(["user", "group"]),
        maybe_none,
    ),
    st.builds(
        lambda alpha, how: text("creasy", alpha=alpha, backfill=how),
        st.sampled_from([0, 10.5, 36000]),
        backfills,
    ),
)


class LastRun(Predictor):
    """Predicts the last run time of the user, or too little at first."""

    name = "last run"

    def begin(self, jobs: JobTable) -> None:
        """Know no user."""
        self.jobs = jobs
        self.last: dict[int, int] = {}

    def arrived(self, rows: Int64s, now: int) -> None:
        """Not looked at."""

    def ended(self, rows: Int64s, now: int) -> None:
        """Remember."""
        for row in rows.tolist():
            self.last[int(self.jobs.user[row])] = max(now - int(self.jobs.start[row]), 1)

    def predict(self, rows: Int64s, now: int) -> Int64s:
        """As before."""
        return np.array([self.last.get(int(self.jobs.user[row]), 1) for row in rows], np.int64)


clusters = st.fixed_dictionaries(
    {
        "processors": st.integers(3, 8),
        "overrun": st.sampled_from(["keep", "kill"]),
        "estimates": st.sampled_from(["requested", "exact", "0.5x", "1.5x", LastRun]),
    }
)
rooms = st.sampled_from([1, 2, 5, 16, 1024])


def make(rows: Rows) -> JobTable:
    """The table of these jobs."""
    jobs = JobTable()
    submit, run, processors, requested, user, group, queue = np.array(rows).T
    jobs.append(
        len(rows),
        recorded_submit=submit,
        recorded_start=submit,
        recorded_end=submit + run,
        run_time=run,
        processors=processors,
        requested_time=requested,
        user=user,
        group=group,
        queue=queue,
    )
    return jobs


def options_of(cluster: dict[str, Any]) -> dict[str, Any]:
    """The options of a cluster, with a predictor of its own where it has one."""
    estimates = cluster["estimates"]
    return cluster | {"estimates": estimates() if isinstance(estimates, type) else estimates}


def run(
    rows: Rows,
    scheduler: Any,
    cluster: dict[str, Any],
    room: int = 1024,
    plain: bool = False,
    switch: tuple[int, str | None] | None = None,
) -> JobTable:
    """The jobs after all were submitted as recorded.

    At the second ``switch[0]`` another policy takes over, or, if it is None, the same one again.
    """
    jobs = make(rows)
    cluster = options_of(cluster)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.engine.passes.ordered.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.engine.passes.ordered.FIRST_BLOCKS", room)
        patch.setattr("hpcrowd.environment.engine.passes.planned.FIRST_ROOM", max(room, WIDTH))
        model = Simulation(jobs, scheduler=scheduler, plain=plain, **cluster)
        model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
        if switch is not None:
            take_over(model, *switch)
        model.run()
    return jobs


def take_over(model: Simulation, at: int, scheduler: str | None) -> None:
    """Run up to a second and let another policy, or the same one, take over."""
    model.run(until=at)
    engine = model.cluster.engine
    if scheduler is None:
        engine.settle()
        engine.take_over(engine.waiting, engine.running)
    else:
        policy = parse_scheduler(scheduler)
        assert policy is not None
        engine.switch(policy)


def outcome(jobs: JobTable) -> dict[str, list[int]]:
    """The outcome of every job."""
    return {name: getattr(jobs, name).tolist() for name in OUTCOME}
