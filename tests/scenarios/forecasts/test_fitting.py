"""``--scheduler fitted`` of replays and forecasts; the search itself is tested with the states."""

import numpy as np
import pytest
from hpcrowd import parse_swf
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.state import fitted as module
from hpcrowd.environment.state.fitted import Fitted
from hpcrowd.environment.state.moments import Score
from hpcrowd.environment.state.site_fit import SO_FAR, Candidate, SiteFit
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.forecasts.fitting import with_found
from hpcrowd.scenarios.forecasts.forecast import Forecast
from hpcrowd.scenarios.kinds.replay import ReplayConfig

from tests.scenarios.forecasts.forecast_cases import CLOCK, PROCESSORS, site_log

NOW = 10 * DAY

#: Two jobs, of which the second waits.
LOG = "; MaxProcs: 2\n1 0 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1\n" + (
    "2 1 59 60 2 -1 -1 2 60 -1 1 1 1 -1 1 -1 -1 -1\n"
)


def a_fit(texts, delay=0):
    """What a fit might find: these schedulers do equally well, and the site delays so long."""
    nothing = Score(np.zeros((3, 3)), np.zeros((3, 3)), np.ones((3, 2), np.int64), np.zeros(3))
    tried = [Candidate(text, nothing) for text in texts]
    delays = tuple(np.array([delay]) for _ in range(len(SO_FAR) + 2))
    others = tuple((one, 1 / len(tried)) for one in tried)
    return SiteFit(tried[0], tried[-1], tried[0], others, 1.0, delays, {}, len(tried))


def outset(fit):
    """Three jobs of equal size wait for two places; nobody submits more."""
    jobs = JobTable(4)
    jobs.number[:], jobs.user[:], jobs.processors[:] = np.arange(4) + 1, [1, 2, 3, 3], 1
    jobs.recorded_submit[:], jobs.requested_time[:] = NOW - 100 + np.arange(4), [50, 300, 200, 100]
    for column in (jobs.recorded_start, jobs.recorded_end, jobs.run_time):
        column[1:] = -1
    jobs.recorded_start[0], jobs.recorded_end[0], jobs.run_time[0] = NOW - 90, NOW - 40, 50
    scheduler = Fitted()
    scheduler.fit = fit
    state = ClusterState(jobs, NOW, Clock(), 1)
    return Outset(state, DAY, scheduler=scheduler, users="none")


def test_futures_draw_one_of_the_schedulers():
    """Each future begins as one of those that do nearly as well; the same number is the same."""
    made = outset(a_fit(["site", "site:order=-submit"]))
    first = [int(np.argmin(made.simulate(number).start)) for number in range(20)]
    assert {0, 2} == set(first)
    assert first == [int(np.argmin(made.simulate(number).start)) for number in range(20)]


def test_futures_draw_delays():
    """Jobs join the queue when their delay is over."""
    starts = outset(a_fit(["site"], delay=HOUR)).simulate(0).start
    assert (starts >= NOW + HOUR).all()
    assert (outset(a_fit(["site"])).simulate(0).start == NOW).sum() == 1


def test_new_jobs_are_delayed_too():
    """What users submit later joins the queue late, and its wait counts from the submission."""
    state = ClusterState.of(site_log(), 21 * DAY + 12 * HOUR, CLOCK, PROCESSORS)
    scheduler = Fitted()
    scheduler.fit = a_fit(["site"], delay=HOUR)
    waits = Outset(state, DAY, scheduler=scheduler).simulate(0).wait
    begun = waits[waits >= 0]
    assert len(begun) > 3
    assert begun.min() >= HOUR


def test_a_replay_runs_what_was_found(monkeypatch, capsys):
    """The configuration names it, so that the run can be repeated without the fit."""
    monkeypatch.setattr(module, "fit_site", lambda *given, **how: a_fit(["site:user-jobs=2"]))
    found = with_found(ReplayConfig(scheduler="fitted"), parse_swf(LOG))
    assert "site:user-jobs=2" == found.scheduler
    assert "fitted scheduler: site:user-jobs=2" in capsys.readouterr().err


def test_other_schedulers_stay():
    """Nothing is fitted unless asked for."""
    config = ReplayConfig(scheduler="easy")
    assert with_found(config, parse_swf(LOG)) is config


def test_a_short_log_is_refused():
    """One line says what a fit needs."""
    with pytest.raises(QuantityError, match=r"fitted: the record is .*; name a policy"):
        with_found(ReplayConfig(scheduler="fitted"), parse_swf(LOG))


def test_a_forecast_fits_to_what_came_before(monkeypatch):
    """The fit gets the jobs that had been submitted by then, and is made once."""
    seen = []

    def fit_site(jobs, *given, **how):
        seen.append(int(jobs.recorded_submit.max()))
        return a_fit(["site"])

    monkeypatch.setattr(module, "fit_site", fit_site)
    settings = {"at": 30, "scheduler": "fitted", "users": "none", "futures": 2, "hindcasts": 0}
    found = Forecast(parse_swf(LOG), executor="inline", **settings).run()
    assert [1] == seen
    assert "fitted scheduler: site" in found.answers.notes
