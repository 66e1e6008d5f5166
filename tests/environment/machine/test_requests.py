"""What jobs ask of a machine of nodes: one row of numbers and texts for each job of a table."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from hpcrowd.environment.jobs import UNKNOWN, JobTable, join
from hpcrowd.environment.requests import WORDS, Ask, Requests


def asking(*nodes, features=""):
    """Return jobs that ask for nodes, and all for the same features; a second between them."""
    jobs = JobTable()
    jobs.append(len(nodes), recorded_submit=np.arange(len(nodes)))
    jobs.requests = Requests(len(nodes))
    for row, count in enumerate(nodes):
        jobs.requests.set(row, Ask.NODES, count)
        jobs.requests.set(row, Ask.FEATURES, features)
    return jobs


def asked(jobs):
    """Return the nodes and features that jobs ask for."""
    requests = jobs.requests
    assert requests is not None
    assert len(jobs) == len(requests)
    return list(zip(requests[Ask.NODES].tolist(), requests.texts(Ask.FEATURES), strict=True))


def test_jobs_that_are_added_ask_for_nothing():
    """Appending keeps what the other jobs ask for; a table without requests gets none by itself."""
    jobs = asking(2, 4, features="gpu")
    for count in (*[1] * 600, 1000):
        jobs.append(count)
    assert [(2, "gpu"), (4, "gpu"), *[(UNKNOWN, "")] * 1600] == asked(jobs)
    plain = JobTable(3)
    plain.append(2)
    for one in (plain, plain.copy(), plain.take(np.array([1])), join([plain, plain]).jobs):
        assert one.requests is None


def pickled(jobs):
    """Return a table that has been pickled."""
    return pickle.loads(pickle.dumps(jobs))


@pytest.mark.parametrize("again", [JobTable.copy, deepcopy, pickled])
def test_copies_are_independent(again):
    """A copy has the same requests; changing it does not change those of the table."""
    jobs = asking(2, 4, features="gpu")
    other = again(jobs)
    assert other.requests is not None
    assert asked(jobs) == asked(other)
    other.requests.set(0, Ask.NODES, 9)
    other.requests.set(0, Ask.FEATURES, "ib")
    other.append(1)
    assert [(2, "gpu"), (4, "gpu")] == asked(jobs)
    assert [(9, "ib"), (4, "gpu"), (UNKNOWN, "")] == asked(other)


def test_joined_tables_keep_their_requests():
    """Joined tables ask for the same as before; words and arrays are numbered again."""
    one, other, plain = asking(1, 2, features="gpu"), asking(3, features="ib"), JobTable()
    plain.append(1, recorded_submit=9)
    for jobs in (one, other):
        assert jobs.requests is not None
        jobs.requests[Ask.ARRAY][:] = 5
    whole = join([one, plain, other]).jobs
    assert [(1, "gpu"), (3, "ib"), (2, "gpu"), (UNKNOWN, "")] == asked(whole)
    assert whole.requests is not None
    first, site, second, nothing = whole.requests[Ask.ARRAY].tolist()
    assert first == second
    assert first != site
    assert UNKNOWN == nothing


def test_parts_frames_and_texts():
    """A part has the requests of its jobs; a frame has columns only for what some job asks for."""
    part = asking(1, 2, 3, 4).take(np.array([3, 0]))
    assert [(4, ""), (1, "")] == asked(part)
    assert part.requests is not None
    part.requests.set(0, Ask.QOS, "high")
    part.requests.set_texts(Ask.QOS, ["low", "high"])
    assert ["low", "high"] == part.requests.texts(Ask.QOS)
    assert ["high", "low"] == part.requests.words[Ask.QOS]
    assert set(WORDS) == set(part.requests.words)
    frame = part.to_frame()
    assert [[4, "low"], [1, "high"]] == frame[["nodes", "qos"]].to_numpy().tolist()
    assert {"nodes", "qos"} == {ask.name.lower() for ask in Ask} & set(frame)
