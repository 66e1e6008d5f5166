"""The tab "Forecast" of the page: what futures say of a run from the second that is shown."""

import json

import numpy as np
import pytest
from hpcrowd.analysis.results import write_results
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios.inspector.panels.forecast import forecast
from hpcrowd.scenarios.inspector.panels.packing import to_json
from hpcrowd.scenarios.inspector.subjects.changes import apply_changes
from hpcrowd.scenarios.inspector.subjects.outset import outset_of, users_of
from hpcrowd.scenarios.inspector.subjects.subject import subject_of

from tests.scenarios.inspector.subjects.kind_cases import live, unpacked
from tests.support.page import BUSY

pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")


@pytest.fixture(scope="module")
def course(log):
    """A replay of it at a busy second."""
    found = live(log)
    found.advance(BUSY)
    return found


def found_of(course, **message):
    """Return what the futures of a run say, as the browser gets it."""
    *steps, last = forecast(course, {"futures": 5, "days": 1, "jobs": [], **message})
    counts = [one for one in steps if isinstance(one, int)]
    assert list(range(1, len(counts) + 1)) == counts
    return json.loads(to_json(last))


def seconds_of(course):
    """Return how many seconds a future of a run knows the load of."""
    outset = outset_of(course, DAY)
    return outset.step * len(outset.simulate(0).busy)


def test_what_futures_say(course):
    """Bounds rise, lie between now and the horizon, and go on from what has happened."""
    jobs = course.moment().jobs.copy()
    found = found_of(course)
    assert (BUSY, BUSY + DAY, 5, 8) == tuple(
        found[key] for key in ("at", "until", "futures", "size")
    )
    waiting = np.flatnonzero(course.moment().waiting)
    assert sorted(jobs.number[waiting].tolist()) == sorted(one["job"] for one in found["jobs"])
    for one in found["jobs"]:
        bounds = [bound for bound in one["start"] if bound is not None]
        assert bounds == sorted(bounds)
        assert all(BUSY <= bound <= BUSY + DAY for bound in bounds)
        assert one["reason"]
    edges = unpacked(found["edges"])
    assert (BUSY, BUSY + DAY) == (edges[0], edges[-1])
    load = np.array([unpacked(bound) for bound in found["fans"]["load"]])
    assert (5, len(edges) - 1) == load.shape
    assert (np.diff(load, axis=0) >= 0).all()
    assert 0 <= load.min() <= load.max() <= 8
    # The last step before now in the record is the last one of the line.
    begin, moment = int(unpacked(found["before"]["edges"])[-2]), course.moment()
    start = np.maximum(jobs.start[moment.started], begin)
    end = np.where(moment.ended, jobs.end, BUSY)[moment.started]
    used = (np.maximum(end - start, 0) * jobs.processors[moment.started]).sum() / (BUSY - begin)
    assert used == pytest.approx(unpacked(found["before"]["load"])[-1])
    np.testing.assert_array_equal(jobs.matrix, course.moment().jobs.matrix)


def test_two_ways_are_compared_future_by_future(course):
    """Of two alternatives, each has its row; the small jobs that fit at once end first."""
    jobs = [
        {"count": 1, "processors": 8, "requested": 8 * HOUR},
        {"count": 8, "processors": 1, "requested": HOUR},
    ]
    found = found_of(course, jobs=jobs, user=3)
    assert [8, 1] == [one["processors"] for one in found["asked"]]
    assert {3} == {one["user"] for one in found["asked"]}
    versus = found["versus"]
    assert 1 == pytest.approx(versus["first"] + versus["second"] + versus["open"])
    assert versus["second"] > versus["first"]
    assert versus["difference"] is None or versus["difference"][2] < 0
    same = found_of(course, jobs=jobs[1:] * 2)
    assert (1.0, [0.0] * 5) == (same["versus"]["open"], same["versus"]["difference"])


def test_played_back_and_simulated_have_the_same_forecast(log, tmp_path):
    """A folder of results knows at a second what the simulation knew."""
    course = live(log)
    course.advance(BUSY)
    one = found_of(course)
    write_results(course.staged.run(), tmp_path / "run", plots=False)
    back = subject_of(tmp_path / "run").begin({})
    back.advance(BUSY)
    assert one == found_of(back)


def test_users_of_the_futures(own_log):
    """Users who follow a learned model do so in futures; changes by hand count."""
    path = own_log.with_name("what.toml")
    path.write_text('[scenario]\nkind = "replay"\ntrace = "log.swf"\nusers = "learned"\n')
    course = live(path)
    course.advance(20 * DAY)
    users, model = users_of(course)
    assert ("learned", True) == (users, model is not None)
    assert DAY == seconds_of(course)
    rigid = [
        {"user": user, "kind": "behaviour", "value": "rigid"} for user in course.moment().users
    ]
    apply_changes(course, rigid)
    assert ("rigid", None) == users_of(course)
