"""Who slows whom: what holds what a job needs, and the hours by which users delay users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hpcrowd.analysis.views import (
    Blockers,
    Moment,
    blockers_of,
    delays,
    delays_of_user,
    delays_table,
)
from hpcrowd.environment import JobTable, Simulation, State, Trace
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Column
from hpcrowd.environment.machine.model import Machine, NodeType, Partition
from hpcrowd.environment.platform.changes import NodesDown
from hpcrowd.environment.schedulers.base import ReasonCode, WaitingReason
from hpcrowd.environment.traces.trace import Conversion, jobs_from_trace
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.analysis.views.view_cases import finished, paused


def table_of(*jobs: tuple[int, ...]) -> JobTable:
    """Return a table of (user, processors, cluster, submit, enqueued, start, end)."""
    made = JobTable(len(jobs))
    made.number[:] = np.arange(1, len(jobs) + 1)
    for row, job in enumerate(jobs):
        columns = ("user", "processors", "cluster", "submit", "enqueued", "start", "end")
        for name, value in zip(columns, job, strict=True):
            made.column(Column[name.upper()])[row] = value
        made.estimate[row] = max(1, job[-1] - job[-2])
        over = job[-1] != UNKNOWN
        made.column(Column.STATE)[row] = State.COMPLETED if over else State.UNFINISHED
    return made


def moment_of(jobs: JobTable, now: int, **more: Any) -> Moment:
    """Return a moment of a finished run of two clusters of 8 processors."""
    clusters = {"home": 8, "away": 8}
    return Moment(jobs=jobs, now=now, clock=Clock(), processors=16, clusters=clusters, **more)


def rows_of(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return by (None for nobody), delayed, hours and jobs of a table, in its order."""
    by = [None if pd.isna(one) else one for one in frame["by"].tolist()]
    columns = (frame[name].tolist() for name in ("delayed", "processor_hours", "jobs"))
    return list(zip(by, *columns, strict=True))


@pytest.fixture
def story() -> JobTable:
    """Users 1 and 2 hold 3 and 1 processors; user 3 waits for 4, an hour of it for user 2 alone."""
    return table_of(
        (1, 3, 0, 0, 0, 0, 2 * HOUR),
        (2, 1, 0, 0, 0, 0, 3 * HOUR),
        (3, 4, 0, HOUR, HOUR, 3 * HOUR, 4 * HOUR),
    )


def test_story(story: JobTable) -> None:
    """An hour for both, 3 to 1, then an hour for user 2: 3 of the 8 processor-hours and 5."""
    frame = delays_table(moment_of(story, 5 * HOUR))
    assert [(2, 3, 5.0, 1), (1, 3, 3.0, 1)] == rows_of(frame)
    assert {"processor_hours": 8.0, "nobody": 0.0} == frame.attrs
    assert ["by", "delayed", "own", "processor_hours", "jobs"] == frame.columns.tolist()


def test_until_now(story: JobTable) -> None:
    """Only what has been waited by now counts."""
    frame = delays_table(moment_of(story, HOUR + HOUR // 2))
    assert [(1, 3, 1.5, 1), (2, 3, 0.5, 1)] == rows_of(frame)


def test_window(story: JobTable) -> None:
    """A window leaves out what was waited, and who ran, before it."""
    frame = delays_table(moment_of(story, 3 * HOUR), HOUR)
    assert [(2, 3, 4.0, 1)] == rows_of(frame)
    assert delays_table(moment_of(story, 5 * HOUR), HOUR).empty


def test_own(story: JobTable) -> None:
    """What the jobs of a user wait for its own is marked."""
    story.user[1] = 3
    frame = delays_table(moment_of(story, 5 * HOUR))
    assert [(3, 3, 5.0, 1), (1, 3, 3.0, 1)] == rows_of(frame)
    assert [True, False] == frame["own"].tolist()


def test_most(story: JobTable) -> None:
    """The first rows only; the sums are those of all."""
    frame = delays_table(moment_of(story, 5 * HOUR), most=1)
    assert [(2, 3, 5.0, 1)] == rows_of(frame)
    assert 8.0 == frame.attrs["processor_hours"]


def test_names(story: JobTable) -> None:
    """With names in the trace both users have theirs, and nobody is called so."""
    story.names = {"user": {2: "bob", 3: "cy"}}
    story.start[0] = story.end[0] = story.submit[0] = UNKNOWN
    story.start[1] = HOUR + HOUR // 2
    story.submit[1] = story.enqueued[1] = HOUR + HOUR // 2
    frame = delays_table(moment_of(story, 5 * HOUR))
    assert [(2, 3, 6.0, 1), (None, 3, 2.0, 1)] == rows_of(frame)
    assert ["bob", "nobody"] == frame["by_name"].tolist()
    assert ["cy", "cy"] == frame["delayed_name"].tolist()


def test_nobody() -> None:
    """While nothing runs, or the job is with a broker, nobody delays it."""
    jobs = table_of(
        (1, 2, 0, HOUR, HOUR, HOUR, 2 * HOUR),
        (2, 4, 0, 0, 0, 3 * HOUR, 4 * HOUR),
        (3, 1, 0, 0, UNKNOWN, UNKNOWN, UNKNOWN),
        (4, 1, 0, HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR),
    )
    frame = delays_table(moment_of(jobs, 4 * HOUR))
    found = [(None, 2, 8.0, 1), (1, 2, 4.0, 1), (None, 3, 4.0, 1), (None, 4, 2.0, 1)]
    assert found == rows_of(frame)
    assert 14.0 == frame.attrs["nobody"]
    assert not frame["own"].any()


def test_unknown_user_is_somebody(story: JobTable) -> None:
    """Jobs of unknown users, -1, are not those of nobody."""
    story.user[1] = UNKNOWN
    frame = delays_table(moment_of(story, 5 * HOUR))
    assert [(-1, 3, 5.0, 1), (1, 3, 3.0, 1)] == rows_of(frame)


def test_clusters(story: JobTable) -> None:
    """Only jobs on the same cluster delay a job."""
    story.cluster[1] = 1
    frame = delays_table(moment_of(story, 5 * HOUR))
    assert [(None, 3, 4.0, 1), (1, 3, 4.0, 1)] == sorted(rows_of(frame), key=str)[::-1]


def test_taken_back(story: JobTable) -> None:
    """A job that was taken back has waited until then; a rejected one has not waited."""
    story.start[2], story.end[2] = UNKNOWN, 2 * HOUR
    story.column(Column.STATE)[2] = State.CANCELLED
    frame = delays_table(moment_of(story, 5 * HOUR))
    assert [(1, 3, 3.0, 1), (2, 3, 1.0, 1)] == rows_of(frame)
    story.end[2] = UNKNOWN
    story.column(Column.STATE)[2] = State.REJECTED
    assert delays_table(moment_of(story, 5 * HOUR)).empty


def test_empty() -> None:
    """Without jobs the table has its columns and no rows."""
    frame = delays_table(moment_of(JobTable(), 10))
    assert ["by", "delayed", "own", "processor_hours", "jobs"] == frame.columns.tolist()
    assert {"processor_hours": 0.0, "nobody": 0.0} == frame.attrs


def test_of_user(story: JobTable) -> None:
    """One user: who delayed it, and which others it delayed."""
    moment = moment_of(story, 5 * HOUR)
    mine = delays_of_user(moment, 2)
    assert mine.delayed_by.empty
    assert [(2, 3, 5.0, 1)] == rows_of(mine.delays)
    mine = delays_of_user(moment, 3, most=1)
    assert [(2, 3, 5.0, 1)] == rows_of(mine.delayed_by)
    assert 8.0 == mine.delayed_by.attrs["processor_hours"]
    assert mine.delays.empty


#: User, processors, cluster, submission, then s with a broker, waiting and running; outcome.
JOBS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(1, 5),
        st.integers(0, 1),
        st.integers(0, 30),
        st.sampled_from([0, 0, 0, 4]),
        st.integers(0, 12),
        st.integers(0, 12),
        st.sampled_from(["ran", "ran", "ran", "runs", "waits", "held", "cancelled"]),
    ),
    max_size=12,
)


def random_table(jobs: list[tuple[Any, ...]]) -> JobTable:
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


def naive(jobs: JobTable, begin: int, now: int) -> dict[tuple[int | None, int], tuple[Any, int]]:
    """Return processor-seconds and jobs by pair, added up second by second."""
    seconds: dict[tuple[int | None, int], Fraction] = {}
    waited: dict[tuple[int | None, int], set[int]] = {}
    names = ("user", "processors", "cluster", "submit", "enqueued", "start", "end")
    rows = list(zip(*(getattr(jobs, name).tolist() for name in names), strict=True))
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


@given(jobs=JOBS, now=st.integers(0, 60), window=st.sampled_from([None, 1, 15]))
@example(
    jobs=[(0, 1, 0, 0, 0, 0, 5, "ran"), (0, 1, 0, 0, 0, 5, 5, "ran"), (1, 2, 0, 0, 0, 8, 1, "ran")],
    now=60,
    window=None,
)
@settings(max_examples=120, deadline=None)
def test_second_by_second(jobs: list[tuple[Any, ...]], now: int, window: int | None) -> None:
    """The table is what one gets from adding up second by second, and sums to what was waited."""
    table = random_table(jobs)
    frame = delays_table(moment_of(table, now), window)
    expected = naive(table, 0 if window is None else max(0, now - window), now)
    found = {(by, delayed): (hours, count) for by, delayed, hours, count in rows_of(frame)}
    assert expected.keys() == found.keys()
    for pair, (seconds, count) in expected.items():
        assert float(seconds) / HOUR == pytest.approx(found[pair][0], rel=1e-9)
        assert count == found[pair][1]
    total = float(sum(seconds for seconds, _ in expected.values())) / HOUR
    assert total == pytest.approx(frame["processor_hours"].sum(), rel=1e-9)
    assert sorted(frame["processor_hours"], reverse=True) == frame["processor_hours"].tolist()


@given(jobs=JOBS)
@settings(max_examples=30, deadline=None)
def test_in_blocks(jobs: list[tuple[Any, ...]]) -> None:
    """Of many users, a few at a time are worked out; the table is the same."""
    moment = moment_of(random_table(jobs), 60)
    whole = delays_table(moment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delays, "MOST_CELLS", 1)
        pd.testing.assert_frame_equal(whole, delays_table(moment))


@given(
    jobs=st.lists(
        st.tuples(
            st.integers(0, 6 * HOUR), st.integers(0, 3 * HOUR), st.integers(1, 5), st.integers(1, 3)
        ),
        min_size=1,
        max_size=14,
    ),
    until=st.integers(0, 16 * HOUR),
)
@settings(max_examples=40, deadline=None)
def test_played_back_as_live(
    make_jobs: Callable[..., JobTable], jobs: list[tuple[int, ...]], until: int
) -> None:
    """A run that is paused gives the same tables as the finished one played back to it."""
    rows = sorted((submit, run, size, run + 1, user) for submit, run, size, user in jobs)
    table = make_jobs(*rows)
    live = paused(table, 4, until=until)
    back = Moment.of_run(finished(table, 4), live.now)
    pd.testing.assert_frame_equal(delays_table(live), delays_table(back))
    for row in live.queue.tolist():
        known = replace(blockers_of(live, row), reason=None)
        assert known == replace(blockers_of(back, row, scheduler="easy"), reason=None)


@pytest.mark.traces
def test_kth_played_back_as_live(kth: Trace) -> None:
    """So it is in the middle of a real log, where the sum is what was waited."""
    jobs, clock = jobs_from_trace(kth, Conversion()).jobs, Clock.of(kth.header)
    until = int(np.quantile(jobs.recorded_submit, 0.5))
    live = paused(jobs, 80, "rigid", until=until, clock=clock)
    back = Moment.of_run(finished(jobs, 80, "rigid", clock=clock), until)
    frame = delays_table(live)
    pd.testing.assert_frame_equal(frame, delays_table(back))
    seen = live.seen(np.flatnonzero(live.started | live.waiting))
    ends = np.where(seen.start == UNKNOWN, until, seen.start)
    total = int(((ends - seen.submit) * seen.processors).sum()) / HOUR
    assert total == pytest.approx(frame["processor_hours"].sum(), rel=1e-9)
    week = delays_table(live, 7 * DAY)
    assert week["processor_hours"].sum() < frame["processor_hours"].sum()


@pytest.mark.parametrize("fate", ["requeue", "resubmit", "fail"])
def test_stopped(make_jobs: Callable[..., JobTable], fate: Any) -> None:
    """A run that an outage stopped counts while it lasted; then its job waits again, or not."""
    jobs = make_jobs((0, 100, 2, 100, 1), (10, 20, 1, 20, 2))

    def run(until: int | None) -> Moment:
        change = NodesDown(50, 80, 1, fate)
        model = Simulation(jobs.copy(), 2, platform=[change], resubmit_after=20)
        model.cluster.submit([0, 1], [0, 10])
        model.run(until=until)
        return Moment.of_model(model)

    over = run(None)
    total = {(by, who): HOUR * hours for by, who, hours, _ in rows_of(delays_table(over))}
    assert 40.0 == pytest.approx(total[1, 2])
    # Job 2 runs from 50 s to 70 s, and the outage lasts until 80 s.
    again = {"requeue": {(2, 1): 40.0, (None, 1): 20.0}, "fail": {}}
    again["resubmit"] = {(None, 1): 20.0}
    assert {(1, 2): 40.0, **again[fate]} == pytest.approx(total)
    for now in (30, 60, 75, 90):
        back = replace(over, model=None, order=None, now=now)
        pd.testing.assert_frame_equal(delays_table(run(now)), delays_table(back))


@pytest.fixture
def waiting(make_jobs: Callable[..., JobTable]) -> JobTable:
    """Job 3 asks for all 10 processors, 1 is free; 4 fits but is long, 5 does not fit."""
    return make_jobs(
        (0, 100, 6, 100, 1),
        (0, 50, 3, 50, 2),
        (1, 10, 10, 10, 3),
        (2, 500, 1, 500, 4),
        (3, 500, 2, 500, 1),
    )


def held_by(found: Blockers) -> list[tuple[int, ...]]:
    """Return number, expected end and counted processors of running jobs in the way."""
    return [(one.number, one.expected_end, one.counted) for one in found.running]


@pytest.mark.parametrize("live", [True, False])
def test_head_under_easy(waiting: JobTable, live: bool) -> None:
    """The head needs both running jobs, the one that ends first first, and nobody is ahead."""
    moment = paused(waiting, 10, "rigid", until=10)
    if not live:
        moment = Moment.of_run(finished(waiting, 10, "rigid"), 10)
    found = blockers_of(moment, 2, scheduler="easy")
    assert (3, 10, 1, 0, 0) == (found.user, found.asks, found.free, found.down, found.missing)
    assert [(2, 50, 3), (1, 100, 6)] == held_by(found)
    assert [0.3, 0.6] == [one.share for one in found.running]
    assert () == found.ahead
    assert [(1, "1", 6, 0.6, 1), (2, "2", 3, 0.3, 1)] == list(found.by_user)
    assert found.reason is not None
    assert ReasonCode.HEAD == found.reason.code


@pytest.mark.parametrize("live", [True, False])
def test_behind_the_head_under_easy(waiting: JobTable, live: bool) -> None:
    """One that fits waits for the reservation of the head; one that does not, for room as well."""
    moment = paused(waiting, 10, "rigid", until=10)
    if not live:
        moment = Moment.of_run(finished(waiting, 10, "rigid"), 10)
    fits, large = (blockers_of(moment, row, scheduler="easy") for row in (3, 4))
    assert () == fits.running
    assert [(2, 3, 3, "3", 10, 100, True)] == list(fits.ahead)
    assert [(2, 50, 1)] == held_by(large)
    assert [(2, 3, 3, "3", 10, 100, False)] == list(large.ahead)


@pytest.mark.parametrize("live", [True, False])
def test_under_fcfs(waiting: JobTable, live: bool) -> None:
    """Nobody overtakes, so that all ahead in the queue come first."""
    moment = paused(waiting, 10, "rigid", until=10, scheduler="fcfs")
    if not live:
        moment = Moment.of_run(finished(waiting, 10, "rigid", scheduler="fcfs"), 10)
    found = blockers_of(moment, 4, scheduler="fcfs")
    assert [3, 4] == [one.number for one in found.ahead]
    assert [True, False] == [one.in_the_way for one in found.ahead]
    assert (2, 11) == (found.ahead_jobs, found.ahead_processors)
    assert [(2, 50, 1)] == held_by(found)


def test_reason_given(waiting: JobTable) -> None:
    """With the reason at hand the scheduler is not asked; the reason says who is in the way."""
    moment = Moment.of_run(finished(waiting, 10, "rigid"), 10)
    told = WaitingReason(3, ReasonCode.WOULD_DELAY, 9, 1, 1, blocker=2, reserved=100)
    found = blockers_of(moment, 3, reason=told)
    assert told == found.reason
    assert [(2, 3, 3, "3", 10, 100, True)] == list(found.ahead)
    no_room = WaitingReason(4, ReasonCode.NO_ROOM, 9, 2, 1)
    assert [3] == [one.number for one in blockers_of(moment, 4, reason=no_room).ahead]


def test_reason_not_known(waiting: JobTable) -> None:
    """Without the reason, all jobs ahead in the queue are listed."""
    moment = Moment.of_run(finished(waiting, 10, "rigid"), 10)
    found = blockers_of(moment, 4)
    assert found.reason is None
    assert [3, 4] == [one.number for one in found.ahead]
    short = blockers_of(moment, 4, most=1)
    assert ([3], 2) == ([one.number for one in short.ahead], short.ahead_jobs)


def test_overdue(make_jobs: Callable[..., JobTable]) -> None:
    """A job that runs longer than expected may end at any moment: now, before the others."""
    jobs = make_jobs((0, 100, 6, 5, 1), (0, 100, 4, 50, 2), (1, 10, 4, 10, 3))
    found = blockers_of(paused(jobs, 10, "rigid", until=20), 2)
    assert [(1, 20, 4)] == held_by(found)


def test_outage(make_jobs: Callable[..., JobTable]) -> None:
    """Processors that are down are missing, whatever ends."""
    jobs = make_jobs((6, 100, 4, 100, 1), (10, 10, 6, 10, 2))
    model = Simulation(jobs, 6, platform=[NodesDown(5, 500, 2)])
    model.cluster.submit([0, 1], [6, 10])
    model.run(until=20)
    found = blockers_of(Moment.of_model(model), 1)
    assert (2, 0, 2) == (found.down, found.free, found.missing)
    assert [(1, 106, 4)] == held_by(found)


def test_own_cluster() -> None:
    """With several clusters, only jobs of the same one are in the way; with a broker none is."""
    jobs = table_of(
        (1, 8, 0, 0, 0, 0, 50),
        (2, 6, 1, 0, 0, 0, 60),
        (3, 4, 1, 5, 5, UNKNOWN, UNKNOWN),
        (4, 4, 1, 6, UNKNOWN, UNKNOWN, UNKNOWN),
        (5, 4, 0, 4, 4, UNKNOWN, UNKNOWN),
    )
    moment = moment_of(jobs, 10)
    found = blockers_of(moment, 2)
    assert ("away", 2, False) == (found.cluster, found.free, found.held)
    assert [(2, 60, 2)] == held_by(found)
    assert () == found.ahead
    held = blockers_of(moment, 3)
    assert ("", True, (), ()) == (held.cluster, held.held, held.running, held.ahead)


def test_partitions(make_jobs: Callable[..., JobTable]) -> None:
    """On a machine of nodes, jobs of other partitions are not in the way."""
    site = Machine(
        nodes=(NodeType(name="a1", cores=4), NodeType(name="b1", cores=4)),
        partitions=(
            Partition(name="a", nodes=("a1",), default=True),
            Partition(name="b", nodes=("b1",)),
        ),
    )
    jobs = make_jobs((0, 50, 4, 50, 1), (0, 100, 4, 100, 2), (1, 10, 2, 10, 3))
    jobs.names = {"queue": {1: "a", 2: "b"}}
    jobs.queue[:] = [1, 2, 2]
    model = Simulation(jobs, site.cores, "easy", machine=site)
    model.cluster.submit([0, 1, 2], [0, 0, 1])
    model.run(until=10)
    found = blockers_of(Moment.of_model(model), 2)
    assert 0 == found.free
    assert [(2, 100, 2)] == held_by(found)


def test_must_wait(waiting: JobTable) -> None:
    """A job that does not wait has no blockers, and the message says so."""
    moment = paused(waiting, 10, "rigid", until=10)
    with pytest.raises(QuantityError, match="row 0: job 1 does not wait at second 10"):
        blockers_of(moment, 0)
    with pytest.raises(QuantityError, match="row 9: must be 0 to 4"):
        blockers_of(moment, 9)
