"""Placement of jobs on rows of processors: nobody shares a row, everybody gets all of theirs."""

from itertools import pairwise

import numpy as np
from hpcrowd.environment.platform.placement import (
    Filling,
    FreeRows,
    place,
    rows_beyond,
)
from hypothesis import given, settings
from hypothesis import strategies as st

#: Begin, length and processors of jobs.
Jobs = list[tuple[int, int, int]]

jobs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 9)), min_size=1, max_size=40
)


few = settings(max_examples=40)


def placed(tuples, machine):
    """Place jobs of (begin, length, processors)."""
    begin, length, processors = np.array(tuples, np.int64).reshape(-1, 3).T
    return place(begin, begin + length, processors, machine)


def feasible(tuples, machine):
    """Put jobs off, one after the other, until each fits into the machine."""
    found: Jobs = []
    for begin, length, processors in tuples:
        while any(
            sum(p for b, n, p in found if b <= t < b + max(n, 1)) + processors > machine
            for t in range(begin, begin + max(length, 1))
        ):
            begin += 1
        found.append((begin, length, processors))
    return found


@few
@given(tuples=jobs, machine=st.integers(1, 12))
def test_every_job_has_its_rows_alone(tuples, machine):
    """Each job has as many rows as processors, and no two are on a row at the same time."""
    found = placed(tuples, machine)
    height = np.zeros(len(tuples), np.int64)
    np.add.at(height, found.job, found.height)
    assert [processors for *_, processors in tuples] == height.tolist()
    held: set[tuple[int, int]] = set()
    for job, row, count in zip(found.job, found.row, found.height, strict=True):
        begin, length, _ = tuples[job]
        for cell in ((r, t) for r in range(row, row + count) for t in range(begin, begin + length)):
            assert cell not in held
            held.add(cell)
        assert 0 <= row < row + count <= found.rows


@few
@given(tuples=jobs)
def test_rows_beyond_the_machine_are_not_needed(tuples):
    """Jobs that never need more than the machine stay on it, also those that take no time."""
    assert 9 == placed(feasible(tuples, machine=9), machine=9).rows


@few
@given(tuples=jobs, machine=st.integers(1, 12), now=st.integers(0, 40), late=st.integers(1, 9))
def test_jobs_placed_bit_by_bit_are_where_they_are_placed_at_once(tuples, machine, now, late):
    """Jobs that begin later follow, and the ends of those that still ran may have been others."""
    begin, length, processors = np.array(sorted(tuples), np.int64).reshape(-1, 3).T
    end = begin + length
    filling = Filling(machine, rows_beyond(begin, end, processors, machine))
    before = begin < now
    expected = np.where(end > now, end + late, end)
    filling.add(begin[before], expected[before], processors[before])
    filling.add(begin, end, processors)
    found, whole = filling.placement(), place(begin, end, processors, machine)
    for one, other in zip(
        (found.job, found.row, found.height), (whole.job, whole.row, whole.height), strict=True
    ):
        assert one.tolist() == other.tolist()


@few
@given(tuples=jobs)
def test_pieces_of_a_job_do_not_touch(tuples):
    """A job on consecutive rows is one piece; a large machine needs no second one."""
    found = placed(tuples, 10)
    for job in range(len(tuples)):
        rows = sorted(zip(found.row[found.job == job], found.height[found.job == job], strict=True))
        assert all(a + n < b or a + n == b == 10 for (a, n), (b, _) in pairwise(rows))
    roomy = placed(tuples, 1000)
    assert len(tuples) == len(roomy.job)


def test_lowest_rows_come_first():
    """A job takes the lowest stretch that is long enough, and what ended is taken again."""
    found = placed([(0, 10, 2), (0, 5, 3), (0, 10, 1), (5, 5, 2), (5, 5, 2)], 8)
    assert [0, 2, 5, 2, 6] == found.row.tolist()
    assert [2, 3, 1, 2, 2] == found.height.tolist()
    beyond = placed([(0, 10, 3), (0, 10, 3)], 4)
    assert (6, [0, 3, 4]) == (beyond.rows, beyond.row.tolist())


def test_a_job_is_split_into_few_pieces():
    """Where no stretch is long enough, the largest ones are taken."""
    rows = FreeRows(0, 10)
    for row, count in ((rows.take(10)[0][0] + 1, 1), (3, 3), (8, 2)):
        rows.give_back(row, count)
    assert [(3, 3), (8, 2)] == rows.take(5)
    assert (1, [(1, 1)]) == (rows.free, rows.take(1))
