"""Submissions that are Unix times are noticed, counted from the first one, and keep their dates."""

import numpy as np
import pytest
from hpcrowd import Clock, parse_swf
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.traces.formats.common.base import Losses
from hpcrowd.environment.traces.formats.gwf import GWF
from hpcrowd.environment.traces.formats.swf import SWF
from hpcrowd.environment.traces.headers import COUNTED, LONGEST_START, PLAUSIBLE
from hpcrowd.formats import parse_gwf
from hypothesis import given
from hypothesis import strategies as st

REST = " 5 60 4 -1 -1 4 90 -1 1 7 3 -1 -1 -1"
#: How each format begins a comment, and how its jobs end.
FORMATS = {"swf": (parse_swf, ";", f"{REST} -1 -1"), "gwf": (parse_gwf, "#", REST + 13 * " -1")}


def read(name, submits, **header):
    """The trace of jobs submitted at these times, in a format."""
    parse, mark, rest = FORMATS[name]
    lines = [f"{mark} {key}: {value}" for key, value in header.items()]
    lines += [f"{number} {time}{rest}" for number, time in enumerate(submits, start=1)]
    return parse("\n".join(lines) + "\n")


def micros(seconds):
    """A time in s as text with six decimal places."""
    return f"{seconds // 10**6}.{seconds % 10**6:06}"


since = st.lists(st.integers(0, 10**8), min_size=1, max_size=5)


@pytest.mark.parametrize("name", FORMATS)
@given(
    first=st.integers(PLAUSIBLE[0] + 1, PLAUSIBLE[1] - 10**8),
    since=since,
    header=st.sampled_from(["", "0", "-1", "unknown", "1e9"]) | st.integers(-DAY, LONGEST_START),
)
def test_dates_are_those_of_the_log(name, first, since, header):
    """With or without a start in the header, moments are the Unix times, which are counted."""
    since[0] = 0
    told = max(first - header, 1) if isinstance(header, int) else header
    trace = read(name, [first + one for one in since], **({"UnixStartTime": told} if told else {}))
    assert since == trace["submit"].tolist()
    assert first == Clock.of(trace.header).unix_start
    assert {COUNTED: len(since)} == trace.repaired
    kind = {"swf": SWF, "gwf": GWF}[name]
    again = kind.parse(kind.generate(trace))
    assert ({}, since) == (again.repaired, again["submit"].tolist())
    assert trace.header.lines == again.header.lines


@pytest.mark.parametrize("name", FORMATS)
@given(first=st.integers(PLAUSIBLE[0] + 1, PLAUSIBLE[1] - 100), since=since)
def test_no_digit_of_a_fraction_is_lost_or_made_up(name, first, since):
    """A Unix time in microseconds less the first one has its microseconds, as in a plain log."""
    since[0] = 0
    plain = read(name, [micros(one) for one in since])
    unix = read(name, [micros(first * 10**6 + one) for one in since])
    assert plain["submit"].tolist() == unix["submit"].tolist()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("first", "header"),
    [
        (31_656_837, 1_296_571_124),  # a cleaned log whose first year was left out
        (LONGEST_START, None),
        (LONGEST_START + 1, 1_000_000_000),  # a log that goes on for more than ten years
        (1_000_000_000 - DAY - 1, 1_000_000_000),
        (1_000_000_000, 1_000_000_000 - LONGEST_START - 1),
        (10**10, None),
        (-7, None),
    ],
)
def test_late_first_submissions_are_no_dates(name, first, header):
    """A log that begins late, or in no plausible year, stays as it is."""
    trace = read(name, [first, first + 9], **({} if header is None else {"UnixStartTime": header}))
    assert [first, first + 9] == trace["submit"].tolist()
    assert {} == trace.repaired


@pytest.mark.parametrize("kind", [SWF, GWF], ids=lambda kind: kind.name)
def test_writing_counts_what_would_be_read_as_dates(kind):
    """A trace whose submissions look like Unix times is written, and the jobs are counted."""
    trace = read("swf", [0, 9, -1], MaxProcs=8)
    trace.columns["submit"] = np.array([1_641_031_200, 1_641_031_209, -1])
    lost = Losses()
    again = kind.parse(kind.generate(trace, lost))
    assert {("submit", "later than 1980: will be read as a Unix time"): 2} == lost.counts
    assert [0, 9, -1] == again["submit"].tolist()
