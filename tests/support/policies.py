"""Random workloads and policies for the tests of schedulers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hpcrowd import JobTable, SessionDefinition, Simulation, State, Work, add_users
from hpcrowd.environment.engine.kernel.profile import WIDTH
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.schedulers.ordered import BACKFILL_MEANING, KEYS
from hpcrowd.platform import Failures, Maintenance, NodesDown, Resize, SpeedChange, SwitchPolicy
from hpcrowd.predictors import Predictor
from hypothesis import strategies as st

from tests.support.simulations import recorded, simulation_of

Rows = list[tuple[int, ...]]

#: What a run fills.
OUTCOME = ("submit", "estimate", "promised", "start", "end", "state")

#: (submission, run time, processors, requested time, user, group, queue), full of ties.
times = st.integers(0, 30), st.integers(0, 10), st.integers(1, 7), st.integers(0, 12)
who = st.sampled_from([-1, 1, 2, 3]), st.integers(1, 2), st.integers(0, 2)
workloads = st.lists(st.tuples(*times, *who), min_size=1, max_size=40)

keys = st.builds(lambda sign, key: sign + key, st.sampled_from(["", "-"]), st.sampled_from([*KEYS]))
backfills = st.sampled_from([*BACKFILL_MEANING])
maybe_none = st.sampled_from([*BACKFILL_MEANING, "none"])
kinds_of_limits = st.sampled_from(
    ["user-jobs", "user-processors", "queue-jobs", "queue-processors"]
)
limits = st.dictionaries(kinds_of_limits, st.integers(1, 6), max_size=3).map(
    lambda found: [f"{name}={most}" for name, most in found.items()]
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
    st.builds(lambda how: text("easy", backfill=how), backfills),
    st.builds(
        lambda order, how, most: text("easy", order=order, backfill=how, **most),
        keys,
        backfills,
        st.fixed_dictionaries(
            {}, optional={"reservations": st.integers(1, 4), "depth": st.integers(1, 6)}
        ),
    ),
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
            "fair-share",
            **{"half-life": life, "by": by, "shares": "2:3+1:0.7", "backfill": how},
        ),
        st.sampled_from(["1s", "7s", "1h"]),
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
        self.jobs, self.last = jobs, dict[int, int]()

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

#: Processors of a machine whose platform changes, at first.
SIZE = 7
Changes = list[Any]
seconds = st.integers(0, 60)
fates = st.sampled_from(["requeue", "resubmit", "fail"])
downs = st.builds(
    lambda at, lasts, processors, fate: NodesDown(at, lasts and at + lasts, processors, fate),
    seconds,
    st.none() | st.integers(1, 30),
    st.integers(1, 2),
    fates,
)
failures = st.builds(
    Failures,
    mean=st.floats(3, 60),
    repair_mean=st.floats(1, 20),
    distribution=st.sampled_from(["exponential", "weibull"]),
    shape=st.floats(0.5, 2),
    processors=st.integers(1, 3),
    start=st.integers(0, 30),
    until=st.integers(31, 120),
    jobs=fates,
)
windows = st.builds(
    lambda start, lasts, announced, fate: Maintenance(start, start + lasts, announced, fate),
    st.integers(1, 50),
    st.integers(1, 30),
    st.integers(0, 50),
    fates | st.just("run"),
)


def apart(changes: st.SearchStrategy[Any]) -> st.SearchStrategy[Changes]:
    """At most three changes of a kind, each at a second of its own."""
    return st.lists(changes, max_size=3, unique_by=lambda change: change.at)


resizes = apart(st.builds(Resize, seconds, st.integers(4, 9)))
speeds = apart(st.builds(SpeedChange, seconds, st.sampled_from([0.05, 0.3, 0.5, 1.7, 2])))
switches = apart(st.builds(SwitchPolicy, seconds, policies | st.just("adaptive")))
#: The most of each that do not contradict each other.
platforms = st.tuples(
    st.lists(downs, max_size=2), st.lists(failures, max_size=2), st.lists(windows, max_size=1),
    resizes, speeds, switches,
).map(lambda kinds: [change for kind in kinds for change in kind])  # fmt: skip

#: A run, and all that may happen in it.
cases = st.fixed_dictionaries(
    {
        "rows": workloads,
        "policy": policies | st.just("adaptive"),
        "cluster": clusters,
        "platform": st.just([]) | platforms,
        "users": st.sampled_from(["rigid", "think-time"]),
        "gap": st.sampled_from([None, 2]),  # s from one job to the next of a session
        "renounced": st.just([]) | st.lists(st.integers(0, 39), max_size=5),
        "taken": st.just([]) | st.lists(st.tuples(st.integers(0, 39), seconds), max_size=5),
    }
)


def make(rows: Rows) -> JobTable:
    """The table of these jobs."""
    submit, run, processors, requested, user, group, queue = np.array(rows).T
    who = {"user": user, "group": group, "queue": queue}
    return recorded(submit, run, processors=processors, requested_time=requested, **who)


def options_of(cluster: dict[str, Any]) -> dict[str, Any]:
    """The options of a cluster, with a predictor of its own where it has one."""
    estimates = cluster["estimates"]
    return cluster | {"estimates": estimates() if isinstance(estimates, type) else estimates}


def run(
    rows: Rows, scheduler: Any, cluster: dict[str, Any], room: int = 1024, plain: bool = False
) -> JobTable:
    """The jobs after all were submitted as recorded."""
    jobs = make(rows)
    with limited(room):
        model = simulation_of(jobs, scheduler=scheduler, plain=plain, **options_of(cluster))
        model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
        return model.run().jobs


@contextmanager
def limited(room: int, events: int = 10**6) -> Iterator[None]:
    """Let arrays of compiled code have room for few jobs at first, and run few events at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcrowd.environment.simulation.SLICE", events)
        patch.setattr("hpcrowd.environment.engine.compiled.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.engine.passes.ordered.FIRST_ROOM", room)
        patch.setattr("hpcrowd.environment.engine.passes.ordered.FIRST_BLOCKS", room)
        patch.setattr("hpcrowd.environment.engine.passes.planned.FIRST_ROOM", max(room, WIDTH))
        yield


def begun(case: dict[str, Any], *, plain: bool) -> Simulation:
    """The simulation of a case, ready to run."""
    jobs, cluster, platform = make(case["rows"]), options_of(case["cluster"]), case["platform"]
    if platform:
        cluster |= {"processors": SIZE, "platform": platform}
    model = simulation_of(
        jobs, scheduler=case["policy"], plain=plain, resubmit_after=5, seed=3, **cluster
    )
    add_users(model, Work.of(jobs, SessionDefinition("arrival", case["gap"])), case["users"])
    jobs.state[[row for row in case["renounced"] if row < len(jobs)]] = State.RENOUNCED

    def take_back(row: int) -> None:
        if row < len(jobs) and jobs.state[row] == State.UNFINISHED and jobs.submit[row] >= 0:
            model.cancel(row)

    for row, second in case["taken"]:
        model.call_at(second, take_back, row)
    return model


def outcome(jobs: JobTable) -> dict[str, list[int]]:
    """The outcome of every job."""
    return {name: getattr(jobs, name).tolist() for name in OUTCOME}
