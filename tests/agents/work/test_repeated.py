"""Repeated jobs: each is submitted when the one before ends, known from a model or a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents import Chains, SessionDefinition, Work, add_users
from hpcrowd.analysis.models import Generated, generate
from hpcrowd.analysis.models.model import published
from hpcrowd.environment import (
    JobTable,
    Simulation,
    State,
    Trace,
    generate_swf,
    jobs_from_trace,
    parse_swf,
)
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.scenarios import replay
from hypothesis import given, settings
from hypothesis import strategies as st

MakeJobs = Callable[..., JobTable]
MakeTrace = Callable[..., Trace]

PRECEDING = SessionDefinition("preceding", None)


def run(jobs: JobTable, follows: Any, processors: int, *, plain: bool = False) -> JobTable:
    """Run jobs that follow each other at once, under EASY; return a copy after the run."""
    jobs = jobs.copy()
    work = Work.of(jobs, PRECEDING, Chains.at_once(follows))
    model = Simulation(jobs, processors, "easy", plain=plain)
    add_users(model, work, "think-time")
    model.run()
    return jobs


@pytest.fixture(scope="module")
def made() -> Generated:
    """Return 1,500 jobs of Feitelson 1997 on 64 processors, a third of them repetitions."""
    return generate(published("feitelson97", 64), jobs=1500, load=0.9)


@pytest.mark.parametrize("how", [{}, {"plain": True}], ids=str)
def test_on_a_loaded_machine_repetitions_wait_for_each_other(
    made: Generated, how: dict[str, bool]
) -> None:
    """Each is submitted in the second in which the one before ended; jobs in are jobs out."""
    follows = made.drawn.follows
    jobs = run(jobs_from_trace(made.trace()).jobs, follows, 64, **how)
    after = np.flatnonzero(follows >= 0)
    assert len(after) > 500
    assert jobs.end[follows[after]].tolist() == jobs.submit[after].tolist()
    first = np.flatnonzero(follows < 0)
    assert jobs.recorded_submit[first].tolist() == jobs.submit[first].tolist()
    assert (jobs.state == State.COMPLETED).all()
    # The scheduler decides when they come: many come later than the flat list has it.
    assert np.count_nonzero(jobs.submit > jobs.recorded_submit) > 50


@given(
    series=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 5), st.integers(0, 4), st.integers(1, 4)),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=30)
def test_engines_agree(make_jobs: MakeJobs, series: list[tuple[int, int, int, int]]) -> None:
    """Compiled and plain engine give one schedule, also with jobs of no length and jobs that are
    rejected, which end at once."""
    rows, follows = [], []
    for user, (at, repetitions, length, width) in enumerate(series, 1):
        for place in range(repetitions):
            follows.append(len(rows) - 1 if place else -1)
            rows.append((at + place * length, length, width, length, user))
    jobs = make_jobs(*rows)
    plain = run(jobs, follows, 3, plain=True)
    found = run(jobs, follows, 3)
    assert plain.submit.tolist() == found.submit.tolist()
    assert plain.end.tolist() == found.end.tolist()
    over = np.where(plain.end >= 0, plain.end, plain.submit)
    for row, before in enumerate(follows):
        if before >= 0:
            assert over[before] == plain.submit[row]


def test_a_generated_trace_is_replayed_with_feedback(made: Generated) -> None:
    """Written as a trace and replayed by its preceding jobs, it is what the agents did."""
    trace = parse_swf(generate_swf(made.trace()))
    found = replay(trace, sessions="preceding")
    assert (
        run(jobs_from_trace(made.trace()).jobs, made.drawn.follows, 64).submit.tolist()
        == found.jobs.submit.tolist()
    )
    again = found.to_trace()
    assert np.count_nonzero(trace["preceding"] > 0) == np.count_nonzero(again["preceding"] > 0)
    assert set(again["think_time"].tolist()) == {-1, 0}


def job(submit: int, user: int = 1, run: int = 9, **more: int) -> dict[str, int]:
    """A job of a trace, on one processor."""
    return {"submit": submit, "wait": 0, "run": run, "user": user, "requested_processors": 1} | more


def test_think_times_of_a_trace_are_kept(make_trace: MakeTrace) -> None:
    """A job comes its think time after the preceding one; one that names none, as recorded."""
    trace = make_trace(
        job(0, run=100), job(10, run=50), job(130, preceding=2, think_time=30),
        job(300, preceding=1), header="; MaxProcs: 1",
    )  # fmt: skip
    run = replay(trace, sessions="preceding", scheduler="fcfs")
    assert [0, 10, 180, 300] == run.jobs.submit.tolist()
    assert "no think time: the recorded time since the preceding job used" in run.repaired


def test_preceding_jobs_that_cannot_be_waited_for_are_counted(make_trace: MakeTrace) -> None:
    """Unknown jobs, those of others and later ones are not waited for; --strict refuses."""
    trace = make_trace(
        job(0, preceding=99), job(1, 2, preceding=1), job(2, 2, preceding=4), job(3, 2),
        header="; MaxProcs: 9",
    )  # fmt: skip
    run = replay(trace, sessions="preceding")
    assert [0, 1, 2, 3] == run.jobs.submit.tolist()
    for reason in ("not among the jobs", "of another user", "submitted later"):
        assert 1 == sum(count for name, count in run.repaired.items() if reason in name)
    alone = make_trace(job(0, requested_time=9, preceding=7), header="; MaxProcs: 9")
    with pytest.raises(TraceError, match="1 job repaired: preceding job not among"):
        replay(alone, sessions="preceding", strict=True)


def test_what_is_asked_for_has_to_be_there(make_trace: MakeTrace) -> None:
    """Without preceding jobs one line says what to do instead."""
    with pytest.raises(TraceError, match=r"no job names a preceding one \(field 17\); separate"):
        replay(make_trace(job(0), header="; MaxProcs: 9"), sessions="preceding")
    assert SessionDefinition.parse("preceding") == SessionDefinition.parse(str(PRECEDING))


EARLIER = "it must be an earlier job of the same user"


@pytest.mark.parametrize(
    ("follows", "sessions", "message"),
    [
        (None, PRECEDING, "the preceding jobs are not known here"),
        ([-1, 0, -1], None, "sessions None: chains need the definition preceding"),
        ([0, -1, -1], PRECEDING, EARLIER),
        ([1, -1, -1], PRECEDING, EARLIER),
        ([-1, 7, -1], PRECEDING, EARLIER),
        ([-1, -1, 0], PRECEDING, EARLIER),
        ([-1, -7, -1], PRECEDING, EARLIER),
        ([-1, 0], PRECEDING, "2 entries and 2 think times for 3 jobs"),
    ],
)
def test_what_are_no_chains(
    make_jobs: MakeJobs, follows: list[int] | None, sessions: Any, message: str
) -> None:
    """Jobs follow earlier ones of their user; batches are not known."""
    jobs = make_jobs((0, 5, 1), (5, 5, 1), (7, 5, 1, 5, 2))
    with pytest.raises(QuantityError, match=message):
        Work.of(jobs, sessions, follows and Chains.at_once(np.array(follows)))
    work = Work.of(jobs, PRECEDING, Chains.at_once(np.array([-1, 0, -1])))
    with pytest.raises(QuantityError, match="there are no batches; choose users think-time"):
        add_users(Simulation(jobs, 4), work, "adjusted")


def test_some_of_the_jobs_keep_their_chains() -> None:
    """Rows are counted again; who followed a job that is left out follows none."""
    chains = Chains(np.array([-1, 0, 1, 2]), np.array([0, 5, 6, 7]))
    part = chains.take(np.array([0, 2, 3]))
    assert ([-1, -1, 1], [0, 6, 7]) == (part.follows.tolist(), part.think.tolist())
