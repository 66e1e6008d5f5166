"""Cleaning: what each rule takes, what is counted, and that the rest stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.environment import (
    CleaningRules,
    FlurryRule,
    QuantityError,
    Trace,
    TraceError,
    clean,
    generate_swf,
    parse_swf,
)
from hpcrowd.environment.traces.cleaning import judge
from hypothesis import given
from hypothesis import strategies as st

Make = Callable[..., Trace]

DAY = 86400

HEADER = "; MaxJobs: 7\n; MaxRecords: 7\n; MaxProcs: 4"


def story(make_trace: Make) -> Trace:
    """Return seven jobs with something wrong about most of them."""
    return make_trace(
        {"submit": 0, "run": 10, "allocated_processors": 1, "user": 1},
        {"submit": 100, "run": 10, "requested_processors": 2, "user": 1},
        {"submit": 101, "run": 10, "requested_processors": 5, "user": 2},
        {"submit": 102, "run": 0, "allocated_processors": 9, "user": 2, "preceding": 3},
        {"submit": 2 * DAY, "run": -1, "user": -1, "preceding": 4, "think_time": 6},
        {"submit": -1, "run": 10, "allocated_processors": 2, "user": -1},
        {"submit": 3 * DAY, "run": 20, "allocated_processors": 4, "user": 3},
        header=HEADER,
    )


def test_each_rule(make_trace: Make) -> None:
    """Every rule takes the jobs it names, whatever the others take, and tells of how many users."""
    rules = CleaningRules(FlurryRule(1, 10), True, True, True, 1, 1)
    gone, cleaned = judge(story(make_trace), rules)
    assert (7, 3) == (cleaned.jobs, cleaned.users)
    assert [
        ("flurries", "in 1 burst above 1/10s", 2, 1),
        ("larger", "larger than 4 processors", 2, 1),
        ("no-run-time", "without a run time", 2, 1),
        ("no-user", "without a user", 2, 0),
        ("first", "in the first day", 4, 2),
        ("last", "in the last day", 1, 1),
        ("together", "together", 7, 3),
    ] == [
        (each.rule, each.what, each.jobs, each.users) for each in (*cleaned.rules, cleaned.together)
    ]
    assert gone.all()


def test_shares(make_trace: Make) -> None:
    """Work is allocated processors, else requested ones, times run time; what is unknown is 0."""
    _, cleaned = judge(story(make_trace), CleaningRules(larger=True))
    (larger,) = cleaned.rules
    total = 1 * 10 + 2 * 10 + 5 * 10 + 0 + 0 + 2 * 10 + 4 * 20
    assert (2 / 7, 50 / total) == (larger.job_share, pytest.approx(larger.work_share))


def test_what_is_left(make_trace: Make) -> None:
    """The others stay as they were, a reference to a job that is gone is cut, a note lists all."""
    trace = story(make_trace)
    left, cleaned = clean(trace, CleaningRules(larger=True, no_user=True))
    assert ([1, 2, 7], [0, 100, 3 * DAY]) == (left["number"].tolist(), left["submit"].tolist())
    assert [
        b"; MaxJobs: 3",
        b"; MaxRecords: 3",
        b"; MaxProcs: 4",
        b"; Note: hpcrowd clean: 4 of 7 jobs removed; larger than 4 processors (2 jobs); without a "
        b"user (2 jobs)",
    ] == left.header.lines
    left, cleaned = clean(trace, CleaningRules(larger=True))
    assert ([-1] * 5, 1) == (left["preceding"].tolist(), cleaned.cut)
    assert 7 == len(trace)


def test_edges_of_first_and_last_days(make_trace: Make) -> None:
    """A job exactly a day after the first stays, and so does one exactly a day before the last."""
    trace = make_trace(*({"submit": 50 + each} for each in (0, DAY - 1, DAY, 2 * DAY, 3 * DAY)))
    left, _ = clean(trace, CleaningRules(first_days=1, last_days=1))
    assert [50 + DAY, 50 + 2 * DAY] == left["submit"].tolist()


def test_size_of_the_machine_has_to_be_known(make_trace: Make) -> None:
    """Without MaxProcs nothing is larger; every rule that can be judged leaves that one out."""
    trace = replace(story(make_trace), header=make_trace().header)
    with pytest.raises(TraceError, match="no MaxProcs in the header"):
        judge(trace, CleaningRules(larger=True))
    assert not CleaningRules.every(trace).larger
    assert CleaningRules.every(story(make_trace)).larger


def test_nothing_left_is_an_error(make_trace: Make) -> None:
    """A trace that loses all its jobs shows to which rules."""
    with pytest.raises(TraceError, match="no job is left of 1: 1 without a user"):
        clean(make_trace({"submit": 0}), CleaningRules(no_user=True))


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf")])
def test_days_that_cannot_be(days: float) -> None:
    """Days are more than 0."""
    with pytest.raises(QuantityError, match=r"first .* days: must be more than 0"):
        CleaningRules(first_days=days)


def test_no_rule_is_false() -> None:
    """Rules count as true when one is asked for."""
    assert not CleaningRules()
    assert CleaningRules(no_user=True)


@given(
    rows=st.lists(
        st.tuples(
            st.integers(-1, 3 * DAY),
            st.integers(-1, 3),
            st.integers(-1, 6),
            st.integers(-1, 3),
            st.integers(-1, 12),
        ),
        min_size=1,
        max_size=20,
    ),
    rules=st.builds(
        CleaningRules,
        st.none() | st.builds(FlurryRule, st.integers(1, 5), st.integers(1, DAY)),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.none() | st.floats(0.01, 2),
        st.none() | st.floats(0.01, 2),
    ),
)
def test_cleaning_is_true(
    make_trace: Make, rows: list[tuple[int, ...]], rules: CleaningRules
) -> None:
    """What is left is unchanged and in order, counts add up, a second time takes nothing new."""
    names = ("submit", "run", "requested_processors", "user", "preceding")
    trace = make_trace(
        *(dict(zip(names, row, strict=True)) for row in rows),
        header=HEADER,
    )
    gone, cleaned = judge(trace, rules)
    assert max([0, *(each.jobs for each in cleaned.rules)]) <= cleaned.together.jobs
    assert cleaned.together.jobs <= sum(each.jobs for each in cleaned.rules)
    if gone.all():
        with pytest.raises(TraceError, match="no job is left"):
            clean(trace, rules)
        return
    left, told = clean(trace, rules)
    assert told == replace(cleaned, cut=told.cut)
    read = parse_swf(generate_swf(left))
    assert len(trace) == len(read) + cleaned.together.jobs
    assert len(read) == read.header.integer("MaxJobs") == read.header.integer("MaxRecords")
    for name in set(trace.columns) - {"preceding", "think_time"}:
        assert trace[name][~gone].tolist() == read[name].tolist()
    changed = trace["preceding"][~gone] != read["preceding"]
    assert told.cut == np.count_nonzero(changed)
    assert not read["preceding"][changed].size or set(read["preceding"][changed]) == {-1}
    lasting = replace(rules, first_days=None, last_days=None)  # these go by what is there
    assert not judge(read, lasting)[0].any()


@pytest.mark.traces
@pytest.mark.parametrize("name", ["KTH", "SDSC", "LLNL", "CEA", "DAS2", "LCG"])
def test_real_traces(read_trace: Callable[[str], Trace], name: str) -> None:
    """On real traces the counts add up, and what is written reads as it was."""
    trace = read_trace(name)
    left, cleaned = clean(trace, CleaningRules.every(trace))
    assert len(trace) == cleaned.jobs == len(left) + cleaned.together.jobs
    assert len(left) == left.header.integer("MaxRecords")
    assert (left["run"] > 0).all()
    assert (left["user"] >= 0).all()
    assert trace.processors == left.processors
    head = len(trace.header.lines)
    assert trace.header.lines[0] == left.header.lines[0]
    assert head + 1 == len(left.header.lines)


@pytest.mark.traces
def test_known_jobs_of_a_real_trace(read_trace: Callable[[str], Trace]) -> None:
    """DAS2-fs1 has 959 jobs without a user and one burst of 624 jobs."""
    _, cleaned = judge(read_trace("DAS2"), CleaningRules(FlurryRule(), no_user=True))
    assert [624, 959] == [rule.jobs for rule in cleaned.rules]
    assert [624] == [flurry.jobs for flurry in cleaned.flurries]
