"""Bounds of starts from other logs, from a site's hindcasts, and from how such bounds fared."""

import tomllib
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hpcrowd.analysis.curves import log_minutes
from hpcrowd.analysis.forecast import prior as module
from hpcrowd.analysis.forecast import site_bounds
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.hindsight import FEATURES
from hpcrowd.analysis.forecast.judge import Case
from hpcrowd.analysis.forecast.prior import FILE, Seen, fit_prior, known_prior, written
from hpcrowd.analysis.forecast.site_bounds import Learned, SiteBounds, Withheld, promise_of
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.jobs import UNKNOWN

pytest.importorskip("sklearn", reason="no scikit-learn: pip install 'hpcrowd[fits]'")

MEAN = list(FEATURES).index("simulated mean")


def made_log(number, *, shift=0.0, jobs=400):
    """Jobs whose waits are about as simulated, in ln(1 + minutes), but for a shift of the log."""
    draw = np.random.default_rng(number)
    features = np.zeros((jobs, len(FEATURES)))
    features[:, MEAN] = draw.uniform(1, 6, jobs)
    logs = np.maximum(features[:, MEAN] + shift + draw.normal(0, 0.3, jobs), 0)
    fresh = np.arange(jobs) % 2 == 0
    return Seen(features, 60 * np.expm1(logs), fresh, np.ones(jobs))


def test_a_prior_has_the_errors_of_logs_that_it_has_not_seen():
    """If logs differ by a shift it is as wide as the shifts, and not only as the jobs differ."""
    alike = fit_prior([made_log(n) for n in range(4)])
    differ = fit_prior([made_log(n, shift=n - 1.5) for n in range(4)])
    log = made_log(9)
    for prior, low, high in ((alike, 0.8, 1.4), (differ, 2.5, 6.0)):
        bounds = prior.bounds(log.features, log.fresh, np.array(LEVELS))
        assert (np.diff(bounds, axis=1) >= 0).all()
        assert low < float(np.median(bounds[:, 4] - bounds[:, 0])) < high
    bounds = alike.bounds(log.features, log.fresh, np.array(LEVELS))
    came = log_minutes(log.wait)
    inside = (came >= bounds[:, 0]) & (came <= bounds[:, 4])
    assert 0.9 == pytest.approx(inside.mean(), abs=0.05)


def test_a_prior_is_read_as_it_was_written(tmp_path, monkeypatch):
    """All numbers; the file that comes with the program names its features."""
    made = replace(fit_prior([made_log(n) for n in range(2)]), held=((7200, 0.8), (DAY, 0.9)))
    (tmp_path / "prior.toml").write_text(written(made, "Made by a test"))
    monkeypatch.setattr(module, "FILE", tmp_path / "prior.toml")
    known_prior.cache_clear()
    assert made == known_prior()
    known_prior.cache_clear()
    assert [0.8, 0.8, 0.9] == [made.share_held(record) for record in (60, DAY - 1, 9 * DAY)]
    found = tomllib.loads(FILE.read_text())
    assert set(found["waiting"]["features"]) | set(found["fresh"]["features"]) <= set(FEATURES)


def made_cases(count, *, every=HOUR, jobs=6, factor=1.0, seed=0):
    """Hindcasts of jobs whose waits are a factor of what is simulated, with some noise."""
    found = []
    for place in range(count):
        log = made_log((seed, place), jobs=jobs)
        now = place * every
        start = now + np.maximum(factor * log.wait, 1).astype(np.int64)
        found.append(Case(now, np.arange(jobs), log.fresh, log.features, start))
    return found


def covered(cases, bounds_of):
    """The shares of waits within the 90 % and the 50 % bounds."""
    inside = []
    for case in cases:
        bounds, waits = bounds_of(case), case.start - case.now
        inside.append([(waits >= bounds[:, low]) & (waits <= bounds[:, 4 - low]) for low in (0, 1)])
    return np.concatenate(inside, axis=1).mean(axis=1)


def test_a_site_unlike_other_logs_is_learned():
    """Its waits are eight times as long: bounds of other logs miss, its own hindcasts do not."""
    prior = fit_prior([made_log(n) for n in range(3)])
    cases, new = made_cases(120, factor=8.0), made_cases(60, factor=8.0, seed=1)
    assert covered(new, lambda c: SiteBounds(prior).bounds(c.features, c.fresh, c.now))[0] < 0.2
    site = SiteBounds(prior)
    site.learn(cases)
    now = 120 * HOUR
    shares = covered(new, lambda c: site.bounds(c.features, c.fresh, now))
    assert shares[0] > 0.8
    assert 0.35 < shares[1] < 0.75
    chances = site.chances(new[0].features, new[0].fresh, now, 60 * DAY)
    assert chances == pytest.approx(1, abs=0.05)


def test_hindcasts_are_foreseen_from_those_before():
    """What came later does not change the bounds that count for the track."""
    prior = fit_prior([made_log(n) for n in range(3)])
    cases = made_cases(24)
    sites = [SiteBounds(prior), SiteBounds(prior)]
    sites[0].learn(cases)
    moved = [replace(one, start=one.start + 9 * DAY) for one in cases[12:]]
    sites[1].learn([*moved, *cases[:12]])  # in any order
    for first, second in zip(sites[0]._seen[:12], sites[1]._seen[:12], strict=True):
        assert np.array_equal(first.bounds, second.bounds)


def test_the_track_counts_what_is_known():
    """Jobs that have started, or wait beyond their bounds; others cannot be judged yet."""
    prior = fit_prior([made_log(n) for n in range(3)])
    (case,) = made_cases(1)
    site = SiteBounds(prior)
    site.learn([case])
    assert (0, 0, 0, 0) == site.track(0)
    judged, in_90, in_50, since = site.track(400 * DAY)
    assert (6, 0) == (judged, since)
    assert in_50 <= in_90 <= 6
    never = replace(case, start=np.full(6, UNKNOWN))
    site = SiteBounds(prior)
    site.learn([never])
    assert (0, 0, 0, 0) == site.track(1)
    assert (6, 0, 0, 0) == site.track(400 * DAY)


def test_the_promise_says_what_backs_it():
    """The track of the site if it is long enough, else how bounds did on other logs."""
    prior = replace(fit_prior([made_log(n) for n in range(3)]), held=((7200, 0.83),))
    site = SiteBounds(prior)
    assert "with records as short, 90 % bounds held 83 % of starts" in promise_of(site, 0, HOUR)
    site.learn(made_cases(24))
    track = site.track(30 * DAY)
    words = promise_of(site, 30 * DAY, 30 * DAY)
    assert f"held {track.in_90} of 144 starts here in the last 30.0 days" in words


def test_bounds_that_did_not_hold_are_withheld():
    """Waits that changed by the day were in few of the bounds, so only medians are given."""
    prior = fit_prior([made_log(n) for n in range(3)])
    cases = [
        case
        for day, factor in enumerate((1, 60, 0.02, 200, 0.02, 60))
        for case in made_cases(24 * day + 24, factor=factor)[24 * day :]
    ]
    site = SiteBounds(prior)
    site.learn(cases)
    now = 60 * DAY
    assert site.track(now).broken
    assert "No bounds of starts" in promise_of(site, now, now)
    learned = SimpleNamespace(track=site.track(now), adjusted=lambda raw: raw + 1)
    bounds = Withheld(cast("Learned", learned)).adjusted(np.zeros((2, 5)))
    assert np.isnan(bounds[:, [0, 1, 3, 4]]).all()
    assert [1, 1] == bounds[:, 2].tolist()


def test_without_scikit_learn(monkeypatch):
    """Bounds are those of other logs, with levels exchanged for those that came true."""
    prior = fit_prior([made_log(n) for n in range(3)])
    monkeypatch.setattr(site_bounds, "find_spec", lambda name: None)
    site = SiteBounds(prior)
    site.learn(made_cases(60, factor=8.0))
    assert 0 == site.hindsight.fits
    new = made_cases(5, seed=1)[0]
    wider = site.bounds(new.features, new.fresh, 90 * DAY)
    plain = SiteBounds(prior).bounds(new.features, new.fresh, 0)
    assert (wider[:, 2] > plain[:, 2]).all()
