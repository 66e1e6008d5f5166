"""Flurries: which jobs belong to one, against the definition word by word, and on real logs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hpcrowd.environment import Flurry, FlurryRule, QuantityError, Trace
from hypothesis import given
from hypothesis import strategies as st

Make = Callable[..., Trace]


def jobs(*pairs: tuple[int, int]) -> list[dict[str, float]]:
    """Return jobs of (user, submit)."""
    return [{"user": user, "submit": submit} for user, submit in pairs]


def by_definition(trace: Trace, rule: FlurryRule) -> list[bool]:
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


def test_burst_of_one_user(make_trace: Make) -> None:
    """More than two jobs within 10 s go, all of them; a third after 10 s is not a burst."""
    trace = make_trace(
        *jobs((1, 0), (1, 5), (2, 6), (1, 9), (1, 100), (2, 7), (1, 105), (1, 110), (2, 16))
    )
    found, flurries = FlurryRule(2, 10).find(trace)
    assert [True, True, False, True, False, False, False, False, False] == found.tolist()
    assert [Flurry(user=1, first=0, last=9, jobs=3)] == flurries


def test_order_of_lines_does_not_matter(make_trace: Make) -> None:
    """Jobs need not be in the order of their submission."""
    found, flurries = FlurryRule(2, 10).find(make_trace(*jobs((1, 9), (1, 50), (1, 0), (1, 5))))
    assert [True, False, True, True] == found.tolist()
    assert [Flurry(1, 0, 9, 3)] == flurries


def test_stretches_that_share_a_job_are_one_flurry(make_trace: Make) -> None:
    """A burst continues as long as stretches overlap; two that only follow each other are two."""
    long = make_trace(*jobs(*((1, 4 * step) for step in range(10))))
    assert [Flurry(1, 0, 36, 10)] == FlurryRule(2, 10).find(long)[1]
    apart = make_trace(*jobs((1, 0), (1, 1), (1, 2), (1, 900), (1, 901), (1, 902)))
    assert [Flurry(1, 0, 2, 3), Flurry(1, 900, 902, 3)] == FlurryRule(2, 10).find(apart)[1]


def test_jobs_without_user_or_submit_time_are_not_a_flurry(make_trace: Make) -> None:
    """What is nobody's, or nobody knows when, is left alone."""
    trace = make_trace(*jobs(*[(-1, 0)] * 5, *[(1, -1)] * 5))
    found, flurries = FlurryRule(2, 10).find(trace)
    assert (0, []) == (np.count_nonzero(found), flurries)


@given(
    pairs=st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 30)), max_size=25),
    most=st.integers(1, 30),
    within=st.integers(1, 12),
)
def test_rule_is_the_definition(
    make_trace: Make, pairs: list[tuple[int, int]], most: int, within: int
) -> None:
    """On any jobs, exactly those go that the definition names; flurries hold all of them."""
    trace, rule = make_trace(*jobs(*pairs)), FlurryRule(most, within)
    found, flurries = rule.find(trace)
    assert by_definition(trace, rule) == found.tolist()
    assert np.count_nonzero(found) == sum(flurry.jobs for flurry in flurries)
    assert all(flurry.jobs > most for flurry in flurries)


@pytest.mark.parametrize(
    ("text", "most", "within", "shown"),
    [
        ("500/1h", 500, 3600, "500/1h"),
        ("500/h", 500, 3600, "500/1h"),
        (" 20 / 90s", 20, 90, "20/90s"),
        ("1/1.5d", 1, 129600, "1/36h"),
        ("7/60", 7, 60, "7/1m"),
    ],
)
def test_rates(text: str, most: int, within: int, shown: str) -> None:
    """A rate is jobs per time; it is shown with the largest unit that fits."""
    rule = FlurryRule.parse(text)
    assert (most, within, shown) == (rule.most, rule.within_s, str(rule))


@pytest.mark.parametrize("text", ["", "500", "500/", "/1h", "0/1h", "5/0s", "-5/1h", "5/1y"])
def test_what_is_not_a_rate(text: str) -> None:
    """Anything else is an error that shows how to write one, or what is wrong with it."""
    with pytest.raises(QuantityError):
        FlurryRule.parse(text)


@pytest.mark.traces
def test_default_finds_little_in_cleaned_logs(read_trace: Callable[[str], Trace]) -> None:
    """The default is as its description says: nothing in five logs, 1.5 to 4.4 % in the others."""
    shares = {
        name: FlurryRule().find(read_trace(name))[0].mean()
        for name in ("KTH", "LANL", "LLNL", "NASA", "SDSC", "DAS2", "LCG", "HPC2N-2002-2.2", "CEA")
    }
    assert [0] * 5 == list(shares.values())[:5]
    assert [1.5, 2.3, 2.9, 4.4] == [round(100 * share, 1) for share in list(shares.values())[5:]]
