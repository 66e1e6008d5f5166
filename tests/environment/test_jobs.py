"""The table of jobs: columns are views of one matrix, and nothing is known until it is set."""

import numpy as np
import pytest
from hpcrowd import Column, JobTable, State
from hpcrowd.environment.jobs import UNKNOWN


@pytest.mark.parametrize("column", list(Column))
def test_columns(column):
    """Each is an attribute in lower case, a writable view, with a meaning, and unknown at first."""
    jobs = JobTable(2)
    view = getattr(jobs, column.name.lower())
    expected = State.UNFINISHED if column is Column.STATE else UNKNOWN
    assert [expected] * 2 == view.tolist() == jobs.column(column).tolist()
    assert np.shares_memory(view, jobs.matrix)
    view[1] = 42
    assert 42 == jobs.matrix[column, 1]
    assert column.meaning
    assert (np.int64, (2,), True) == (view.dtype, view.shape, view.flags.c_contiguous)


def test_append_counts_on_from_one():
    """Appended jobs get the next rows and numbers; scalars and arrays fill columns."""
    jobs = JobTable()
    assert [0, 1] == jobs.append(2, user=7, run_time=[5, 6]).tolist()
    assert [2] == jobs.append(1, number=99).tolist()
    assert [1, 2, 99] == jobs.number.tolist()
    assert [7, 7, -1] == jobs.user.tolist()
    assert [5, 6, -1] == jobs.run_time.tolist()
    with pytest.raises(KeyError, match="COLOUR"):
        jobs.append(1, colour=3)


def test_append_keeps_what_is_there():
    """Growing to a larger matrix keeps all values and shows only the jobs there are."""
    jobs = JobTable()
    for i in range(300):
        jobs.append(1, user=i)
    assert list(range(300)) == jobs.user.tolist()
    assert list(range(1, 301)) == jobs.number.tolist()
    assert {UNKNOWN} == set(jobs.start.tolist())
    assert {State.UNFINISHED} == set(jobs.state.tolist())
    assert 300 == len(jobs) == len(jobs.to_frame())
    assert "<JobTable of 300 jobs>" == repr(jobs)


def test_copy_is_independent():
    """Changes in a copy do not reach the original."""
    jobs = JobTable(2)
    other = jobs.copy()
    other.user[0] = 5
    other.append(1)
    assert ([-1, -1], 2) == (jobs.user.tolist(), len(jobs))
    assert ([5, -1, -1], 3) == (other.user.tolist(), len(other))


def test_states():
    """Jobs are counted by state; a frame is a copy, with states in words."""
    jobs = JobTable(8)
    jobs.state[:] = [0, 1, 2, 3, 4, 5, 1, 6]
    assert [1, 2, 1, 1, 1, 1, 1] == [jobs.count(state) for state in State]
    assert [False, True, True, *[False] * 3, True, False] == jobs.over.tolist()
    frame = jobs.to_frame()
    assert [column.name.lower() for column in Column] == list(frame)
    words = ["unfinished", "completed", "killed", "rejected", "cancelled", "renounced"]
    assert words == frame["state"].tolist()[:6]
    frame.loc[0, "user"] = 3
    assert -1 == jobs.user[0]
