"""Cleaning: what each rule takes, what is counted, and that the rest stays; flurries of jobs."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd import clean, generate_swf, parse_swf
from hpcrowd.environment.traces.cleaning import judge
from hpcrowd.errors import QuantityError, TraceError
from hpcrowd.traces import CleaningRules, Flurry, FlurryRule
from hypothesis import given
from hypothesis import strategies as st

DAY = 86400

HEADER = "; MaxJobs: 7\n; MaxRecords: 7\n; MaxProcs: 4"


def story(make_trace):
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


def test_each_rule(make_trace):
    """Every rule takes the jobs it names, whatever the others take, and tells of how many users."""
    rules = CleaningRules(FlurryRule(1, 10), True, True, True, 1, 1)
    gone, cleaned = judge(story(make_trace), rules)
    assert (7, 3) == (cleaned.jobs, cleaned.users)
    assert [
        ("flurries", "in 1 burst above 1/10s", 2, 1), ("larger", "larger than 4 processors", 2, 1),
        ("no-run-time", "without a run time", 2, 1), ("no-user", "without a user", 2, 0),
        ("first", "in the first day", 4, 2), ("last", "in the last day", 1, 1),
        ("together", "together", 7, 3),
    ] == [
        (each.rule, each.what, each.jobs, each.users) for each in (*cleaned.rules, cleaned.together)
    ]  # fmt: skip
    assert gone.all()
    larger = cleaned.rules[1]  # work is allocated, else requested processors, times run time
    total = 1 * 10 + 2 * 10 + 5 * 10 + 0 + 0 + 2 * 10 + 4 * 20
    assert (2 / 7, 50 / total) == (larger.job_share, pytest.approx(larger.work_share))
    left, _ = clean(story(make_trace), CleaningRules(larger=True, no_user=True))
    assert (
        "hpcrowd clean: 4 of 7 jobs removed; larger than 4 processors (2 jobs); without a user "
        "(2 jobs)" == left.header.get("Note")
    )
    # a job exactly a day after the first stays, and one exactly a day before the last
    trace = make_trace(*({"submit": 50 + each} for each in (0, DAY - 1, DAY, 2 * DAY, 3 * DAY)))
    left, _ = clean(trace, CleaningRules(first_days=1, last_days=1))
    assert [50 + DAY, 50 + 2 * DAY] == left["submit"].tolist()


def test_what_cannot_be_judged(make_trace):
    """Without MaxProcs nothing is larger; days are more than 0; some job has to be left."""
    trace = replace(story(make_trace), header=make_trace().header)
    with pytest.raises(TraceError, match="no MaxProcs in the header"):
        judge(trace, CleaningRules(larger=True))
    assert not CleaningRules.every(trace).larger
    assert CleaningRules.every(story(make_trace)).larger
    assert not CleaningRules()
    for days in (0, -1, float("nan"), float("inf")):
        with pytest.raises(QuantityError, match=r"first .* days: must be more than 0"):
            CleaningRules(first_days=days)
    with pytest.raises(TraceError, match="no job is left of 1: 1 without a user"):
        clean(make_trace({"submit": 0}), CleaningRules(no_user=True))


@given(
    rows=st.lists(
        st.tuples(*(st.integers(-1, most) for most in (3 * DAY, 3, 6, 3, 12))),
        min_size=1,
        max_size=20,
    ),
    rules=st.builds(
        CleaningRules,
        st.none() | st.builds(FlurryRule, st.integers(1, 5), st.integers(1, DAY)),
        *[st.booleans()] * 3,
        *[st.none() | st.floats(0.01, 2)] * 2,
    ),
)
def test_cleaning_is_true(make_trace, rows, rules):
    """What is left is unchanged and in order, counts add up, a second time takes nothing new."""
    names = ("submit", "run", "requested_processors", "user", "preceding")
    trace = make_trace(*(dict(zip(names, row, strict=True)) for row in rows), header=HEADER)
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


def jobs(*pairs):
    """Return jobs of (user, submit)."""
    return [{"user": user, "submit": submit} for user, submit in pairs]


def by_definition(trace, rule):
    """Look at every stretch that begins at a job."""
    pairs = list(zip(trace["user"].tolist(), trace["submit"].tolist(), strict=True))
    found = [False] * len(pairs)
    for user, begin in pairs:
        if user < 0 or begin < 0:
            continue
        inside = [
            row
            for row, (other, submit) in enumerate(pairs)
            if other == user and begin <= submit < begin + rule.within_s
        ]
        if len(inside) > rule.most:
            for row in inside:
                found[row] = True
    return found


def test_flurries(make_trace):
    """More than two jobs of one user in 10 s; a burst continues as long as stretches overlap."""
    found = FlurryRule(2, 10).find(make_trace(*jobs(
        (1, 0), (1, 5), (2, 6), (1, 9), (1, 100), (2, 7), (1, 105), (1, 110), (2, 16),
        *((3, 200 + 4 * step) for step in range(10)), *((3, begin) for begin in (902, 901, 900)),
        *[(-1, 0)] * 5, *[(4, -1)] * 5,
    )))[1]  # fmt: skip
    assert [Flurry(user=1, first=0, last=9, jobs=3), Flurry(3, 200, 236, 10),
            Flurry(3, 900, 902, 3)] == found  # fmt: skip


@given(
    pairs=st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 30)), max_size=25),
    most=st.integers(1, 30),
    within=st.integers(1, 12),
)
def test_rule_is_the_definition(make_trace, pairs, most, within):
    """On any jobs, exactly those go that the definition names; flurries hold all of them."""
    trace, rule = make_trace(*jobs(*pairs)), FlurryRule(most, within)
    found, flurries = rule.find(trace)
    assert by_definition(trace, rule) == found.tolist()
    assert np.count_nonzero(found) == sum(flurry.jobs for flurry in flurries)
    assert all(flurry.jobs > most for flurry in flurries)


@pytest.mark.parametrize(
    ("text", "most", "within", "shown"),
    [
        ("500/1h", 500, 3600, "500/1h"), ("500/h", 500, 3600, "500/1h"),
        (" 20 / 90s", 20, 90, "20/90s"), ("1/1.5d", 1, 129600, "1/36h"), ("7/60s", 7, 60, "7/1m"),
    ],
)  # fmt: skip
def test_rates(text, most, within, shown):
    """A rate is jobs per time, shown with the largest unit that fits; else it is an error."""
    rule = FlurryRule.parse(text)
    assert (most, within, shown) == (rule.most, rule.within_s, str(rule))
    for wrong in ("", "500", "500/", "/1h", "0/1h", "5/0s", "-5/1h", "5/1y"):
        with pytest.raises(QuantityError):
            FlurryRule.parse(wrong)


@pytest.mark.traces
def test_default_finds_little_in_cleaned_logs(read_trace):
    """The default is as its description says: nothing in some logs, from 1.5 % on in others."""
    known = judge(read_trace("DAS2"), CleaningRules(FlurryRule(), no_user=True))[1]
    assert [624, 959] == [rule.jobs for rule in known.rules]
    assert 1.5 == round(100 * FlurryRule().find(read_trace("DAS2"))[0].mean(), 1)
    assert not FlurryRule().find(read_trace("KTH"))[0].any()
