"""Song et al. 2005 is reproduced: published data, measures, rules, results, on small logs."""

from dataclasses import replace

import numpy as np
import pytest
from hpcrowd.analysis.features.workload import Workload
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.song2005 import measures
from hpcrowd.scenarios.studies.song2005.study import RULES, STUDIED

from tests.scenarios.studies.study_cases import shown


def two_groups():
    """Return three users of short serial jobs, two of long parallel ones."""
    user = np.repeat([1, 2, 3, 8, 9], [10, 20, 30, 5, 15])
    large = user > 5
    run_time = np.where(large, 5000, 10)
    return measures.Jobs(
        Workload.of(np.arange(80), run_time, np.where(large, 8, 1), user=user, machine=16)
    )


def test_shares_of_groups_add_up():
    """Areas go down; names of groups do not matter for who stays; Table II counts users by jobs."""
    jobs = two_groups()
    grouping = jobs.grouping(2, [0, 1])
    assert [1, 1, 1, 0, 0] == grouping.label.tolist()
    first, second = grouping.shares
    assert (25, 75) == (first.jobs, second.jobs)
    assert (40, 60) == (first.users, second.users)
    assert 100 == pytest.approx(first.area + second.area)
    assert first.area > 99
    assert 100 == grouping.staying
    assert grouping.ranges(0, "jobs") == (25, 25)
    jobs = two_groups()
    label = np.array([1, 1, 1, 0, 0])
    assert 100 == jobs._staying(label, 1 - label)
    assert 100 * (80 - 10) / 80 == jobs._staying(label, np.array([0, 1, 1, 0, 0]))
    counts = [1, 99, 100, 350, 500, 2500]
    user = np.repeat(np.arange(6), counts)
    jobs = measures.Jobs(Workload.of(np.arange(len(user)), 10.0, user=user))
    one = measures.TraceOutcomes("KTH", jobs, {}, {})
    sixth = 100 / 6
    assert [2 * sixth, 2 * sixth, sixth, 0, sixth] == pytest.approx(one.users_percent())
    moved = one.users_percent(measures.BORDER_MET)
    assert [2 * sixth, sixth, 2 * sixth, 0, sixth] == pytest.approx(moved)


def quality_of(one, ours, shuffled):
    """Return what is required of qualities, and whether it is reached."""
    other = replace(one, qualities={"groups": [ours], measures.SHUFFLED: [shuffled]})
    return {need.what: need.holds for need in other.requirements if "Table III" not in need.what}


@pytest.mark.parametrize(
    ("ours", "shuffled", "off", "holds"),
    [
        ((0.05, 0.05), (0.06, 0.05), 0.06, [True, True, True, True]),
        ((0.051, 0.02), (0.06, 0.05), -0.06, [False, True, True, True]),
        ((0.02, 0.051), (0.03, 0.05), 0.061, [True, False, True, False]),
        ((0.02, 0.02), (0.02, 0.02), -0.061, [True, True, False, False]),
    ],
)
def test_bounds_have_two_sides(small, ours, shuffled, off, holds):
    """Distances at most 0.05, nearer than with shuffled users, correlation within 0.06."""
    one = small.traces["LANL-CM5"]
    correlation = one.jobs.correlation + np.sign(off) * (abs(off) - 1e-9)
    found = quality_of(one, measures.Quality(*ours, correlation), measures.Quality(*shuffled, 0.0))
    assert holds == list(found.values())


def test_what_is_measured(small):
    """What is absent is named; six shares of two groups are required of KTH alone."""
    assert [row["trace"] for row in published_rows("song2005_table1")] == list(STUDIED)
    text = " ".join(shown(small).split())
    assert "Not available: SDSC96, CTC, SDSC-SP2, SDSC95" in text
    assert "150 jobs, 28,490 in Table I: another version of the log" in text
    assert "LANL-CM5-1994-4.1-cln.swf is used, not LANL-CM5-1994-3.1-cln.swf" in text
    needs = {name: one.requirements for name, one in small.traces.items()}
    groups = {
        name: [need.what for need in found if "Table III" in need.what]
        for name, found in needs.items()
    }
    assert {"KTH": 6, "LANL-CM5": 0} == {name: len(found) for name, found in groups.items()}
    assert all("2 groups" in what for what in groups["KTH"])
    one = small.traces["KTH"]
    assert [] == list(replace(one, trace="CTC").requirements)
    data = small.to_json()["traces"]["KTH"]["generated"]
    assert set(measures.KINDS) == set(data)
    assert 1 == len(data[measures.SHUFFLED])
    assert {"III", "IV", "V"} == {row[small.rows()[0].index("table")] for row in small.rows()[1]}
    found = {(claim.name, claim.setting): claim for claim in small.claims}
    assert len(found) == sum(2 if rule.settings is None else 1 for rule in RULES)
    named = found["parallel and serial users", "KTH"]
    assert (None, "users not there") == (named.holds, named.text)


@pytest.mark.slow
@pytest.mark.traces
def test_kth_is_grouped_as_published(kth):
    """Table II to the digit with a border of 300, and the two groups of Table III."""
    jobs = measures.Jobs(Workload.from_trace(kth, "all"))
    one = measures.TraceOutcomes("KTH", jobs, {2: jobs.grouping(2, [])}, {})
    printed = [row["users_percent"] for row in published_rows("song2005_table2")]
    assert printed == [f"{share:.2f}" for share in one.users_percent(measures.BORDER_MET)]
    for ours, theirs in zip(
        one.groupings[2].shares, measures.published_groups("KTH", 2), strict=True
    ):
        for share in measures.SHARES:
            assert getattr(ours, share) == pytest.approx(theirs[share].value, abs=4)
