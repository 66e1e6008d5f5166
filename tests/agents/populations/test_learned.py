"""Made-up users of the learned model: sessions on time, and what happens within them."""

import numpy as np
import pytest
from hpcrowd import JobTable, Simulation
from hpcrowd.agents.generative.pool_users import BatchPool, PoolMember, add_pool_users
from hpcrowd.agents.learned.model import LearnedModel
from hpcrowd.agents.populations.learned import FromPool, InOrder, session_begins
from hpcrowd.agents.populations.semi_open import Roster
from hpcrowd.agents.work.units import REPEATED
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.environment.clock import DAY, HOUR, WEEK
from hpcrowd.environment.jobs import UNKNOWN, Column
from hpcrowd.forecasts import ClusterState
from hpcrowd.populations import Member

from tests.scenarios.forecasts.forecast_cases import CLOCK
from tests.support.populations import ONE, pool_of, record, simulated, submissions

#: The minutes after nine at which a user submits on two days of each week, each job after the end
#: of the one before; and the work of eight such weeks, for one user.
MINUTES = (0, 20, 45)
WORK = [
    (1, week * WEEK + day * DAY + 9 * HOUR + 60 * minute, 600, 1, 0)
    for week in range(8)
    for day in (0, 3)
    for minute in MINUTES
]


@pytest.fixture(scope="module")
def model():
    """The model that comes with hpcrowd."""
    return LearnedModel.named("learned")


def sessions_of(times):
    """Return the submissions of each session; they are hours apart."""
    return np.split(times, np.flatnonzero(np.diff(times) > 3 * HOUR) + 1)


def test_sessions_begin_on_time(model):
    """Each session begins when it did, with as many jobs; the pauses within it are the model's."""
    pool = pool_of(WORK, unit="batches", rules=ONE)
    roster = Roster((Member(7, 0, 0),), ())
    jobs, _, _ = simulated(pool, roster, weeks=8, behaviour=InOrder(pool, model))
    found = sessions_of(np.array(submissions(jobs, 7)))
    recorded = np.array([row[1] for row in WORK[:: len(MINUTES)]])
    assert recorded.tolist() == [int(times[0]) for times in found]
    assert {len(MINUTES)} == {len(times) for times in found}
    within = np.concatenate([np.diff(times) for times in found])
    assert within.min() >= 600  # the job before has ended
    assert within.max() <= 600 + HOUR
    assert len(set(within.tolist())) > 5  # not as recorded


def test_a_session_waits_for_what_is_late(model):
    """Who waits for a job that ends late comes after its end; the next session is on time."""
    rows = [(1, 0, 600, 1, 0), (1, 9 * HOUR, HOUR, 1, 0), (1, 12 * HOUR, 600, 1, 0),
            (1, 3 * DAY, 600, 1, 0), (1, 20 * DAY, 600, 1, 0)]  # fmt: skip
    pool = pool_of(rows, unit="batches", rules=ONE)
    roster = Roster((Member(7, 0, 0),), ())
    on_time = [row[1] for row in rows]
    jobs, _, _ = simulated(pool, roster, weeks=3, behaviour=InOrder(pool, model))
    assert on_time == submissions(jobs, 7)
    run_times = pool.units.repeated[:, Column.RUN_TIME - REPEATED.start]
    run_times[run_times == HOUR] = 10 * HOUR  # ends at 19:00
    jobs, _, _ = simulated(pool, roster, weeks=3, behaviour=InOrder(pool, model))
    found = submissions(jobs, 7)
    assert on_time[:2] + on_time[3:] == found[:2] + found[3:]
    assert 19 * HOUR < found[2] <= 19 * HOUR + DAY


def test_batches_of_one_session_begin_one(model):
    """The first batch of each session begins it, of each user."""
    pool = pool_of([*WORK, (2, 9 * HOUR, 60, 1, 0)], unit="batches", rules=ONE)
    begins = session_begins(pool.units)
    assert len(begins) == len(WORK) + 1
    assert [True, False, False] * 16 + [True] == begins.tolist()


@pytest.mark.parametrize("days", [7, 28])
def test_a_forecast_keeps_its_level(model, days):
    """Users of the model submit as much in the weeks after a second as in those before it."""
    rows = [
        (user, week * WEEK + day * DAY + (9 + user % 8) * HOUR + 60 * minute, 600, 1, 0)
        for user in range(1, 13)
        for week in range(10)
        for day in range(5)
        for minute in MINUTES
    ]
    jobs, now = record(rows), 10 * WEEK
    state = ClusterState.of(jobs, now, CLOCK, 100)
    outset = Outset(state, days * DAY, users="learned", model=model)
    counts = []
    for number in range(8):
        seen = []
        outset.simulate(number, watch=seen.append)
        table = seen[0].jobs
        counts.append(int((table.submit[len(outset.rows) :] != UNKNOWN).sum()))
    assert len(rows) / 10 * days / 7 == pytest.approx(np.mean(counts), rel=0.12)


@pytest.mark.parametrize(
    ("run", "processors"), [(600, 50), (3000, 1)], ids=["on time", "late if they wait"]
)
def test_users_of_a_workload_keep_its_sessions(model, run, processors):
    """They submit as many batches as there, and begin sessions when these do, or later."""
    begins = DAY * np.arange(8)[:, None] + 60 * np.array(MINUTES)
    numbers, pause = range(1, 13), np.array([60])
    members = [PoolMember(one, 1, 0, pause, begins.ravel()) for one in numbers]
    long = np.array([run])
    pools = {1: BatchPool(np.arange(2), long, long, np.ones(1, np.int64))}
    simulation = Simulation(JobTable(), processors, "fcfs", seed=1)
    add_pool_users(simulation, members, pools, behaviour=FromPool(members, pools, model))
    simulation.run()
    found = np.array([submissions(simulation.jobs, one) for one in numbers])
    assert (len(numbers), begins.size) == found.shape
    late = found[:, :: len(MINUTES)] - begins[:, 0]
    assert late.min() == 0
    assert (late > 0).any() == (processors == 1)
    if processors > 1:  # pauses within sessions are the model's
        within = np.diff(found.reshape(len(numbers), *begins.shape))
        assert 0 <= within.min() < within.max() <= run + HOUR
