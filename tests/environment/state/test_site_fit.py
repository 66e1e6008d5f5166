"""The fit of a site's scheduler: rules that a made-up site had are found in its record."""

import numpy as np
import pytest
from hpcrowd import JobTable
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.state.fitted import Delays, Fitted
from hpcrowd.environment.state.moments import NEVER, Score, moments_of
from hpcrowd.environment.state.site_fit import busiest, closed_hours, delays_of, fit_site
from hpcrowd.errors import QuantityError

from tests.environment.schedulers.pool_cases import ran

#: Processors of the site, its rules, and its clock.
SIZE, RULES, CLOCK = 16, "site:hours=2h:8-17", Clock()


@pytest.fixture(scope="module")
def record():
    """What a site with these rules recorded in a month."""
    random, count = np.random.default_rng(1), 1600
    jobs = JobTable(count)
    jobs.number[:] = np.arange(count) + 1
    jobs.recorded_submit[:] = np.cumsum(random.exponential(1600, count)).astype(int)
    jobs.user[:], jobs.queue[:] = random.integers(0, 9, count), 1
    jobs.processors[:] = random.integers(1, 9, count)
    jobs.run_time[:] = np.minimum(random.exponential(4500, count).astype(int) + 1, 20_000)
    jobs.requested_time[:] = 2 * jobs.run_time
    done = ran(jobs, SIZE, RULES).jobs
    done.recorded_start[:], done.recorded_end[:] = done.start, done.end
    return done


@pytest.fixture(scope="module")
def fit(record):
    """What is found in it."""
    return fit_site(record, CLOCK, SIZE, moments=15)


def test_rules_are_found(fit):
    """The hidden rules start every job as recorded, and the best single policy does not."""
    assert fit.text == RULES
    assert fit.best.score.shares.tolist() == [1, 1, 1]
    assert fit.single.score.shares[1] < 0.9


def test_what_is_told(fit):
    """The lines name both, and the options with their confidence; so does the JSON."""
    text = "\n".join(fit.lines())
    assert RULES in text
    assert fit.single.text in text
    assert 0 < fit.agreement()["hours=2h:8-17"] <= 1
    assert fit.to_dict()["fitted"]["held_out_within_60_600_3600_s"] == [1, 1, 1]
    assert sum(weight for _, weight in fit.others) == pytest.approx(1)
    assert sum(fit.causes.values()) == pytest.approx(1)


def test_partitions_of_sizes_are_found(record):
    """A site on which large jobs run one at a time shows it."""
    rules = "site:partitions=size 7:8"
    odd = record.copy()
    odd.erase_outcome()
    odd.processors[:] = np.where(odd.processors > 4, 7, 2)
    odd = ran(odd, SIZE, rules).jobs
    odd.recorded_start[:], odd.recorded_end[:] = odd.start, odd.end
    found = fit_site(odd, CLOCK, SIZE, moments=15)
    assert found.text.startswith("site:partitions=size ")
    assert found.rules.score.shares[1] > found.single.score.shares[1]


def test_rules_that_are_no_better_are_given_up(record):
    """Where a site ran a policy of the library, that is found, and the lines say why."""
    plain = record.copy()
    plain.erase_outcome()
    plain = ran(plain, SIZE, "easy").jobs
    plain.recorded_start[:], plain.recorded_end[:] = plain.start, plain.end
    found = fit_site(plain, CLOCK, SIZE, moments=30)
    assert found.text == found.single.text == "easy"
    assert found.sure < 0.95
    assert "so the best single policy is taken" in "\n".join(found.lines())


def test_rules_that_are_better_stay(fit):
    """The lines say with which confidence they are better than the single policy."""
    assert fit.sure >= 0.95
    assert fit.text == fit.rules.text != fit.single.text
    assert "kept" in "\n".join(fit.lines())


def test_a_site_without_secrets_has_no_delays(fit):
    """Nothing is left to explain where the rules explain all."""
    assert max(int(kind.max()) for kind in fit.delays) == 0


def test_the_seconds_that_a_start_takes_are_delays(record):
    """A site that starts each job five seconds after its turn has that delay."""
    slow = record.copy()
    slow.recorded_start[:] += 5
    slow.recorded_end[:] += 5
    moments = moments_of(slow, CLOCK, SIZE, np.arange(200, 1400, 100))
    new = delays_of(moments, RULES)[-1]
    assert 5 == np.median(new)


def test_as_a_scheduler(record, fit):
    """``fitted`` runs what was found."""
    fitted = Fitted(moments=15)
    fitted.fit = fit
    again = ran(record.copy(), SIZE, fitted).jobs
    assert again.start.tolist() == record.recorded_start.tolist()


def test_no_waits(record):
    """A record without waits, or of a few days, is refused with the cure."""
    idle = record.copy()
    idle.recorded_start[:] = idle.recorded_submit
    with pytest.raises(QuantityError, match=r"no waits.*name a policy"):
        fit_site(idle, CLOCK, SIZE)
    short = record.take(np.flatnonzero(record.recorded_submit < 5 * DAY))
    with pytest.raises(QuantityError, match=r"at least 8\.0 days are needed"):
        fit_site(short, CLOCK, SIZE)


def test_a_moment_starts_as_recorded(record):
    """Under the site's own rules all jobs start from a moment as they did."""
    (moment,) = moments_of(record, CLOCK, SIZE, np.array([700]))
    starts = moment.starts(RULES)
    within = moment.start <= moment.now + moment.reach
    assert within.sum() > 50
    assert starts[within].tolist() == moment.start[within].tolist()
    assert (starts[~within] == NEVER).all()


def test_delays_of_a_moment(record):
    """A delayed job starts no sooner than its delay is over."""
    (moment,) = moments_of(record, CLOCK, SIZE, np.array([700]))
    delays = np.zeros(len(moment.jobs), np.int64)
    row = moment.running
    delays[row] = DAY
    assert moment.starts("easy", delays)[row] >= moment.now + DAY


def test_scores_count_what_is_near(record):
    """Shares are of the waiting jobs that are compared."""
    moments = moments_of(record, CLOCK, SIZE, np.array([600, 700]))
    score = Score.of(moments, "fcfs")
    assert (np.diff(score.waiting, axis=1) >= 0).all()
    assert score.counts[:, 0].tolist() == [len(one.judged) for one in moments]
    assert 0 <= score.shares[0] <= score.shares[2] <= 1


def test_busiest():
    """Two jobs hold 3 processors together for a tenth of the time in which any runs."""
    starts, ends = np.array([0, 90]), np.array([100, 101])
    assert [3, 3, 3] == busiest(starts, ends, np.array([1, 2])).tolist()
    assert [0, 0, 0] == busiest(starts[:0], ends[:0], ends[:0]).tolist()


def test_closed_hours(record):
    """Hours without starts of long jobs are those of the rule."""
    assert (8, 17) in closed_hours(record, record.requested_time > 2 * HOUR, CLOCK)
    assert closed_hours(record, record.requested_time > 30 * DAY, CLOCK) == []


def test_delays_are_drawn_from_the_record():
    """Jobs of one user in one class share a delay; new jobs have a class of their own."""
    known = tuple(np.array([10 * kind, 10 * kind + 1]) for kind in range(8))
    delays = Delays(known, np.random.default_rng(0))
    users, waited = np.array([1, 1, 2]), np.array([0, 0, 30 * DAY])
    first, second, third = delays.of_waiting(users, waited).tolist()
    assert first == second
    assert first in (0, 1)
    assert third in (60, 61)
    (start,) = delays.starts([1], [60], [1000])
    assert start in (1070, 1071)
