"""The tab "Forecast" of the page: what futures say of a run from the second that is shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.analysis.forecast.futures import Asked
from hpcrowd.analysis.results import write_results
from hpcrowd.environment import write_swf
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.inspector.panels.asked import Asked as View
from hpcrowd.scenarios.inspector.panels.forecast import forecast, forecast_panel
from hpcrowd.scenarios.inspector.panels.packing import to_json
from hpcrowd.scenarios.inspector.subjects.changes import apply_changes
from hpcrowd.scenarios.inspector.subjects.course import Course, LiveCourse
from hpcrowd.scenarios.inspector.subjects.outset import outset_of, users_of, why_not
from hpcrowd.scenarios.inspector.subjects.subject import subject_of

from tests.scenarios.inspector.subjects.test_kinds import KINDS
from tests.support.page import BUSY
from tests.support.populations import small_log

pytest.importorskip("bokeh", reason="no bokeh: pip install 'hpcrowd[page]'")
Make = Callable[..., Trace]

#: Kinds of runs that have no forecast, and the words that say why.
NONE = {
    "recorded": "The schedule is the recorded one",
    "mixed": "The run has 2 clusters",
    "grid-held": "The run has 2 clusters",
    "grid-at-once": "The run has 2 clusters",
    "grid-components": "The run has 2 clusters",
}

#: What users of kinds do in futures, where it is not the default.
USERS = {"rigid": "rigid", "platform-fail": "rigid", "resample-rigid": "rigid"}

#: Kinds of the quick tests.
QUICK = ("rigid", "recorded", "mixed", "fair-share", "platform-requeue", "populate")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, make_trace: Make) -> Path:
    """A log of twelve users over eight weeks."""
    path = tmp_path_factory.mktemp("forecast") / "log.swf"
    write_swf(small_log(make_trace), path)
    return path


@pytest.fixture(scope="module")
def course(log: Path) -> Course:
    """A replay of it at a busy second."""
    found = subject_of(log).begin({})
    found.advance(BUSY)
    return found


def found_of(course: Course, **message: Any) -> dict[str, Any]:
    """Return what the futures of a run say, as the browser gets it."""
    *steps, last = forecast(course, {"futures": 5, "days": 1, "jobs": [], **message})
    counts = [one for one in steps if isinstance(one, int)]
    assert list(range(1, len(counts) + 1)) == counts
    found: dict[str, Any] = json.loads(to_json(last))
    return found


def numbers(packed: Any) -> np.ndarray[Any, Any]:
    """Return numbers that were packed for the browser."""
    if isinstance(packed, list):
        return np.array(packed)
    ((kind, text),) = packed.items()
    return np.frombuffer(base64.b64decode(text), {"i32": "<i4", "f64": "<f8"}[kind])


def seconds_of(course: Course) -> int:
    """Return how many seconds a future of a run knows the load of."""
    outset = outset_of(course, DAY)
    return outset.step * len(outset.simulate(0).busy)


def test_what_futures_say(course: Course) -> None:
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
    edges = numbers(found["edges"])
    assert (BUSY, BUSY + DAY) == (edges[0], edges[-1])
    load = np.array([numbers(bound) for bound in found["fans"]["load"]])
    assert (5, len(edges) - 1) == load.shape
    assert (np.diff(load, axis=0) >= 0).all()
    assert 0 <= load.min() <= load.max() <= 8
    # The last step before now in the record is the last one of the line.
    begin, moment = int(numbers(found["before"]["edges"])[-2]), course.moment()
    start = np.maximum(jobs.start[moment.started], begin)
    end = np.where(moment.ended, jobs.end, BUSY)[moment.started]
    used = (np.maximum(end - start, 0) * jobs.processors[moment.started]).sum() / (BUSY - begin)
    assert used == pytest.approx(numbers(found["before"]["load"])[-1])
    np.testing.assert_array_equal(jobs.matrix, course.moment().jobs.matrix)


def test_two_ways_are_compared_future_by_future(course: Course) -> None:
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


def test_pairs_draw_the_same_run_times(course: Course) -> None:
    """Whatever one would submit, the jobs that run and wait draw the same."""
    sets = ([], [Asked(1, HOUR)], [Asked(2, 2 * HOUR, user=3, count=7)])
    futures = [outset_of(course, DAY, asked).simulate(4) for asked in sets]
    running = int(course.moment().running.sum())
    ends = [one.end[:running].tolist() for one in futures]
    assert ends[0] == ends[1] == ends[2]


def test_a_job_that_is_too_large(course: Course) -> None:
    """One line says so, before anything is simulated."""
    job = {"count": 1, "processors": 9, "requested": HOUR}
    with pytest.raises(QuantityError, match="a job of 9 processors: the machine has 8"):
        next(forecast(course, {"futures": 5, "days": 1, "jobs": [job]}))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in KINDS],
)
def test_every_kind(log: Path, tmp_path: Path, name: str) -> None:
    """Each kind of run has a forecast or says why not, simulated and played back."""
    (tmp_path / "log.swf").write_bytes(log.read_bytes())
    (tmp_path / "what.toml").write_text("[scenario]\n" + KINDS[name])
    course = subject_of(tmp_path / "what.toml").begin({})
    assert isinstance(course, LiveCourse)
    view = View.of({}, 0)
    if not course.moment().submitted.any():
        assert forecast_panel(course, view)["why"]
    course.advance(course.now + 30 * DAY)
    if name in NONE:
        assert why_not(course).startswith(NONE[name])
        with pytest.raises(QuantityError, match=NONE[name]):
            outset_of(course, DAY)
    elif not why_not(course):  # else everything is down
        assert USERS.get(name, "think-time") == forecast_panel(course, view)["users"]
        assert DAY == seconds_of(course)
    write_results(course.staged.run(), tmp_path / "run", plots=False)
    back = subject_of(tmp_path / "run").begin({})
    back.advance(30 * DAY)
    why = why_not(back)
    assert bool(why) or DAY == seconds_of(back)
    assert bool(why) == (name in NONE or name.startswith("platform")), why


def test_played_back_and_simulated_have_the_same_forecast(log: Path, tmp_path: Path) -> None:
    """A folder of results knows at a second what the simulation knew."""
    live = subject_of(log).begin({})
    assert isinstance(live, LiveCourse)
    live.advance(BUSY)
    one = found_of(live)
    write_results(live.staged.run(), tmp_path / "run", plots=False)
    back = subject_of(tmp_path / "run").begin({})
    back.advance(BUSY)
    other = found_of(back)
    assert one == other


def test_users_of_the_futures(log: Path, tmp_path: Path) -> None:
    """Users who follow a learned model do so in futures; changes by hand count."""
    (tmp_path / "log.swf").write_bytes(log.read_bytes())
    (tmp_path / "what.toml").write_text(
        '[scenario]\nkind = "replay"\ntrace = "log.swf"\nusers = "learned"\n'
    )
    course = subject_of(tmp_path / "what.toml").begin({})
    course.advance(20 * DAY)
    users, model = users_of(course)
    assert ("learned", True) == (users, model is not None)
    assert DAY == seconds_of(course)
    rigid = [
        {"user": user, "kind": "behaviour", "value": "rigid"} for user in course.moment().users
    ]
    apply_changes(course, rigid)
    assert ("rigid", None) == users_of(course)
