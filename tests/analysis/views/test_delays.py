"""Who slows whom: what holds what a job needs, and the hours by which users delay users."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hpcrowd import JobTable, State
from hpcrowd.analysis.views import delays
from hpcrowd.analysis.views.delays import MOST_CELLS
from hpcrowd.environment.clock import HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Column
from hpcrowd.environment.machine.model import Machine, NodeType, Partition
from hpcrowd.environment.platform.changes import NodesDown
from hpcrowd.environment.schedulers.base import ReasonCode, WaitingReason
from hpcrowd.views import Moment, blockers_of, delays_of_user, delays_table
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.analysis.views.view_cases import finished, paused
from tests.support.simulations import simulation_of

COLUMNS = ("user", "processors", "cluster", "submit", "enqueued", "start", "end")


def table_of(*jobs):
    """Return a table of (user, processors, cluster, submit, enqueued, start, end)."""
    made = JobTable(len(jobs))
    made.number[:] = np.arange(1, len(jobs) + 1)
    if jobs:
        for name, values in zip(COLUMNS, np.transpose(jobs), strict=True):
            made.column(Column[name.upper()])[:] = values
    made.estimate[:] = np.maximum(made.end - made.start, 1)
    over = made.end != UNKNOWN
    made.column(Column.STATE)[:] = np.where(over, State.COMPLETED, State.UNFINISHED)
    return made


def moment_of(jobs, now, **more):
    """Return a moment of a finished run of two clusters of 8 processors."""
    clusters = {"home": 8, "away": 8}
    return Moment(jobs=jobs, now=now, clock=Clock(), processors=16, clusters=clusters, **more)


def rows_of(frame):
    """Return by (None for nobody), delayed, hours and jobs of a table, in its order."""
    by = [None if pd.isna(one) else one for one in frame["by"].tolist()]
    columns = (frame[name].tolist() for name in ("delayed", "processor_hours", "jobs"))
    return list(zip(by, *columns, strict=True))


#: Users 1 and 2 hold 3 and 1 processors; user 3 waits for 4, an hour of it for user 2 alone.
STORY = (
    (1, 3, 0, 0, 0, 0, 2 * HOUR),
    (2, 1, 0, 0, 0, 0, 3 * HOUR),
    (3, 4, 0, HOUR, HOUR, 3 * HOUR, 4 * HOUR),
)


def test_story():
    """An hour for both, 3 to 1, then an hour for user 2: 3 of the 8 processor-hours and 5."""
    moment = moment_of(table_of(*STORY), 5 * HOUR)
    frame = delays_table(moment)
    assert [(2, 3, 5.0, 1), (1, 3, 3.0, 1)] == rows_of(frame)
    assert {"processor_hours": 8.0, "nobody": 0.0} == frame.attrs
    assert ["by", "delayed", "own", "processor_hours", "jobs"] == frame.columns.tolist()
    first = delays_table(moment, most=1)
    assert ([(2, 3, 5.0, 1)], 8.0) == (rows_of(first), first.attrs["processor_hours"])
    two, three = delays_of_user(moment, 2), delays_of_user(moment, 3, most=1)
    assert [(2, 3, 5.0, 1)] == rows_of(two.delays) == rows_of(three.delayed_by)
    assert 8.0 == three.delayed_by.attrs["processor_hours"]
    assert three.delays.empty
    empty = delays_table(moment_of(JobTable(), 10))
    assert frame.columns.tolist() == empty.columns.tolist()
    assert {"processor_hours": 0.0, "nobody": 0.0} == empty.attrs
    # With names in the trace both users have theirs, and nobody is called so.
    jobs = table_of(*STORY)
    jobs.names = {"user": {2: "bob", 3: "cy"}}
    jobs.start[0] = jobs.end[0] = jobs.submit[0] = UNKNOWN
    jobs.start[1] = jobs.submit[1] = jobs.enqueued[1] = HOUR + HOUR // 2
    frame = delays_table(moment_of(jobs, 5 * HOUR))
    assert [(2, 3, 6.0, 1), (None, 3, 2.0, 1)] == rows_of(frame)
    assert ["bob", "nobody"] == frame["by_name"].tolist()
    assert ["cy", "cy"] == frame["delayed_name"].tolist()


#: User, processors, cluster, submission, then s with a broker, waiting and running; outcome.
OUTCOMES = st.sampled_from(["ran", "ran", "ran", "runs", "waits", "held", "cancelled"])
PLACE = st.integers(UNKNOWN, 3), st.integers(1, 5), st.integers(0, 1)
TIMES = st.integers(0, 30), st.sampled_from([0, 0, 0, 4]), st.integers(0, 12), st.integers(0, 12)
JOBS = st.lists(st.tuples(*PLACE, *TIMES, OUTCOMES), max_size=12)


def random_table(jobs):
    """Return jobs with all the outcomes; they need not fit on a machine."""
    rows = []
    for user, processors, cluster, submit, held, wait, run, outcome in jobs:
        queued = UNKNOWN if outcome == "held" else submit + held
        begins = UNKNOWN if outcome in ("held", "waits", "cancelled") else submit + held + wait
        end = {"ran": begins + run, "cancelled": submit + held + wait}.get(outcome, UNKNOWN)
        rows.append((user, processors, cluster, submit, queued, begins, end))
    table = table_of(*rows)
    cancelled = [job[-1] == "cancelled" for job in jobs]
    table.column(Column.STATE)[cancelled] = State.CANCELLED
    return table


def naive(jobs, begin, now):
    """Return processor-seconds and jobs by pair, added up second by second."""
    seconds: dict[tuple[int | None, int], Fraction] = {}
    waited: dict[tuple[int | None, int], set[int]] = {}
    rows = list(zip(*(getattr(jobs, name).tolist() for name in COLUMNS), strict=True))
    for at in range(begin, now):
        for row, (delayed, asks, cluster, submit, enqueued, start, end) in enumerate(rows):
            until = end if start == UNKNOWN else start
            if submit > at or (until != UNKNOWN and until <= at):
                continue
            held: dict[int, int] = {}
            for by, size, where, _, _, began, ended in rows:
                if where == cluster and UNKNOWN < began <= at and (ended > at or ended == UNKNOWN):
                    held[by] = held.get(by, 0) + size
            shares: dict[int | None, Fraction] = {None: Fraction(1)}
            if UNKNOWN < enqueued <= at and held:
                total = sum(held.values())
                shares = {by: Fraction(size, total) for by, size in held.items()}
            for user, share in shares.items():
                pair = user, delayed
                seconds[pair] = seconds.get(pair, Fraction(0)) + share * asks
                waited.setdefault(pair, set()).add(row)
    return {pair: (seconds[pair], len(waited[pair])) for pair in seconds}


@given(JOBS, st.integers(0, 60), st.sampled_from([None, 1, 15]), st.sampled_from([1, MOST_CELLS]))
@example(
    [(0, 1, 0, 0, 0, 0, 5, "ran"), (0, 1, 0, 0, 0, 5, 5, "ran"), (1, 2, 0, 0, 0, 8, 1, "ran")],
    60, None, 1,
)  # fmt: skip
@settings(max_examples=50)
def test_second_by_second(jobs, now, window, cells):
    """The table is what one gets from adding up second by second, and sums to what was waited."""
    table = random_table(jobs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delays, "MOST_CELLS", cells)
        frame = delays_table(moment_of(table, now), window)
    expected = naive(table, 0 if window is None else max(0, now - window), now)
    found = {(by, delayed): (hours, count) for by, delayed, hours, count in rows_of(frame)}
    assert expected.keys() == found.keys()
    assert [by == delayed for by, delayed, *_ in rows_of(frame)] == frame["own"].tolist()
    for pair, (seconds, count) in expected.items():
        assert float(seconds) / HOUR == pytest.approx(found[pair][0], rel=1e-9)
        assert count == found[pair][1]
    assert sorted(frame["processor_hours"], reverse=True) == frame["processor_hours"].tolist()


@pytest.fixture
def waiting(make_jobs):
    """Job 3 asks for all 10 processors, 1 is free; 4 fits but is long, 5 does not fit."""
    running, head = ((0, 100, 6, 100, 1), (0, 50, 3, 50, 2)), (1, 10, 10, 10, 3)
    return make_jobs(*running, head, (2, 500, 1, 500, 4), (3, 500, 2, 500, 1))


def held_by(found):
    """Return number, expected end and counted processors of running jobs in the way."""
    return [(one.number, one.expected_end, one.counted) for one in found.running]


def at_ten(jobs, live, scheduler="easy"):
    """Return a moment of a run that is paused, or of one that is played back."""
    if live:
        return paused(jobs, 10, "rigid", until=10, scheduler=scheduler)
    return Moment.of_run(finished(jobs, 10, "rigid", scheduler=scheduler), 10)


@pytest.mark.parametrize("live", [True, False])
def test_under_easy(waiting, live):
    """The head needs both running jobs, the one that ends first first, and nobody is ahead."""
    moment = at_ten(waiting, live)
    head, fits, large = (blockers_of(moment, row, scheduler="easy") for row in (2, 3, 4))
    assert (3, 10, 1, 0, 0) == (head.user, head.asks, head.free, head.down, head.missing)
    assert [(2, 50, 3), (1, 100, 6)] == held_by(head)
    assert [(1, "1", 6, 0.6, 1), (2, "2", 3, 0.3, 1)] == list(head.by_user)
    assert head.reason is not None
    assert ReasonCode.HEAD == head.reason.code
    assert () == head.ahead == fits.running
    assert [(2, 3, 3, "3", 10, 100, True)] == list(fits.ahead)
    assert [(2, 50, 1)] == held_by(large)
    assert [(2, 3, 3, "3", 10, 100, False)] == list(large.ahead)


@pytest.mark.parametrize("live", [True, False])
def test_under_fcfs(waiting, live):
    """Nobody overtakes, so that all ahead in the queue come first."""
    found = blockers_of(at_ten(waiting, live, "fcfs"), 4, scheduler="fcfs")
    assert [(3, True), (4, False)] == [(one.number, one.in_the_way) for one in found.ahead]
    assert (2, 11) == (found.ahead_jobs, found.ahead_processors)
    assert [(2, 50, 1)] == held_by(found)


def test_reasons(waiting):
    """With the reason at hand the scheduler is not asked; the reason says who is in the way."""
    moment = at_ten(waiting, live=False)
    told = WaitingReason(3, ReasonCode.WOULD_DELAY, 9, 1, 1, blocker=2, reserved=100)
    found = blockers_of(moment, 3, reason=told)
    assert (told, [(2, 3, 3, "3", 10, 100, True)]) == (found.reason, list(found.ahead))
    no_room = WaitingReason(4, ReasonCode.NO_ROOM, 9, 2, 1)
    assert [3] == [one.number for one in blockers_of(moment, 4, reason=no_room).ahead]
    found = blockers_of(moment, 4)
    assert (None, [3, 4]) == (found.reason, [one.number for one in found.ahead])
    short = blockers_of(moment, 4, most=1)
    assert ([3], 2) == ([one.number for one in short.ahead], short.ahead_jobs)
    with pytest.raises(QuantityError, match="row 0: job 1 does not wait at second 10"):
        blockers_of(moment, 0)
    with pytest.raises(QuantityError, match="row 9: must be 0 to 4"):
        blockers_of(moment, 9)


def test_overdue_jobs_and_outages(make_jobs):
    """A job that runs longer than expected may end at any moment: now, before the others."""
    jobs = make_jobs((0, 100, 6, 5, 1), (0, 100, 4, 50, 2), (1, 10, 4, 10, 3))
    found = blockers_of(paused(jobs, 10, "rigid", until=20), 2)
    assert [(1, 20, 4)] == held_by(found)
    # Processors that are down are missing, whatever ends.
    jobs = make_jobs((6, 100, 4, 100, 1), (10, 10, 6, 10, 2))
    model = simulation_of(jobs, 6, platform=[NodesDown(5, 500, 2)])
    model.cluster.submit([0, 1], [6, 10])
    model.run(until=20)
    found = blockers_of(Moment.of_model(model), 1)
    assert (2, 0, 2) == (found.down, found.free, found.missing)
    assert [(1, 106, 4)] == held_by(found)


def test_own_cluster():
    """With several clusters, only jobs of the same one are in the way; with a broker none is."""
    never = UNKNOWN, UNKNOWN
    moment = moment_of(table_of(
        (1, 8, 0, 0, 0, 0, 50), (2, 6, 1, 0, 0, 0, 60), (3, 4, 1, 5, 5, *never),
        (4, 4, 1, 6, UNKNOWN, *never), (5, 4, 0, 4, 4, *never),
    ), 10)  # fmt: skip
    found, held = blockers_of(moment, 2), blockers_of(moment, 3)
    assert ("away", 2, False) == (found.cluster, found.free, found.held)
    assert ([(2, 60, 2)], ()) == (held_by(found), found.ahead)
    assert ("", True, (), ()) == (held.cluster, held.held, held.running, held.ahead)


def test_partitions(make_jobs):
    """On a machine of nodes, jobs of other partitions are not in the way."""
    parts = Partition(name="a", nodes=("a1",), default=True), Partition(name="b", nodes=("b1",))
    nodes = NodeType(name="a1", cores=4), NodeType(name="b1", cores=4)
    site = Machine(nodes=nodes, partitions=parts)
    jobs = make_jobs((0, 50, 4, 50, 1), (0, 100, 4, 100, 2), (1, 10, 2, 10, 3))
    jobs.names, jobs.queue[:] = {"queue": {1: "a", 2: "b"}}, [1, 2, 2]
    model = simulation_of(jobs, site.cores, "easy", machine=site)
    model.cluster.submit([0, 1, 2], [0, 0, 1])
    model.run(until=10)
    found = blockers_of(Moment.of_model(model), 2)
    assert (0, [(2, 100, 2)]) == (found.free, held_by(found))
