"""Users and requested times of generated jobs."""

import numpy as np
import pytest
from hpcrowd.analysis.models.generation import generate
from hpcrowd.analysis.models.model import fit, published
from hpcrowd.analysis.models.parts.base import Drawn
from hpcrowd.analysis.models.parts.users import Requests, UserShares
from hpcrowd.features import Workload

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload


def test_users_have_their_shares_of_the_bags():
    """Each user comes as often as fitted, and after itself by chance plus what stays."""
    n = 40_000
    for stay in (0.0, 0.6):
        users = UserShares(weights=(0.6, 0.3, 0.1), groups=(2, 1, 2), stay=stay)
        user, group = users.assign(n, np.random.default_rng(1))
        shares = np.bincount(user, minlength=4)[1:] / n
        np.testing.assert_allclose(shares, users.weights, atol=(8 if stay else 4) * 0.5 / n**0.5)
        assert {(1, 2), (2, 1), (3, 2)} == set(zip(user.tolist(), group.tolist(), strict=True))
        same = np.mean(user[1:] == user[:-1])
        assert same == pytest.approx(stay + (1 - stay) * 0.46, abs=4 * 0.5 / n**0.5)


def test_a_fit_takes_shares_groups_and_persistence():
    """The most active user is number 1; a workload without users has one."""
    columns = {"user": [7] * 5 + [3] * 3, "group": [20] * 5 + [10] * 3}
    found = UserShares.fit(Workload.of(np.arange(8) * 1000, 5, **columns))
    assert (5 / 8, 3 / 8) == found.weights
    assert (2, 1) == found.groups
    chance = (5 / 8) ** 2 + (3 / 8) ** 2
    assert found.stay == pytest.approx((6 / 7 - chance) / (1 - chance))
    alone = UserShares.fit(Workload.of([0, 1], 1))
    assert ((1.0,), (1,)) == (alone.weights, alone.groups)
    assert ("no users recorded: one for all",) == alone.notes


def test_jobs_of_a_bag_ask_for_the_same():
    """One request for each bag, at least the longest run time where the fitted times allow."""
    found = Requests.fit(bursty_workload(800, 3))
    random = np.random.default_rng(4)
    size = 5000
    bag = np.sort(random.integers(0, 900, size))
    arrivals, run_time = np.arange(size) * 1.0, random.uniform(0, 500, size)
    drawn = Drawn.of(arrivals, run_time, np.ones(size, int), bag=bag)
    asked = found.times(drawn, random)
    assert asked[np.searchsorted(bag, bag)].tolist() == asked.tolist()
    assert (asked >= drawn.run_time).mean() > 0.99
    assert set(asked.tolist()) <= set(range(1, found.longest_s + 1))


def test_without_requests_there_is_nothing_to_fit():
    """No requested times, too few of them, or none of an hour: no model."""
    for requested in (-1, 60, np.where(np.arange(100) < 5, 7200.0, -1.0)):
        assert Requests.fit(poisson_workload(100, 10, 1, requested_time=requested)) is None
    assert Requests.fit(Workload.of([], [])) is None


@pytest.mark.parametrize("name", ["lublin", "feitelson96", "downey"])
def test_workloads_of_more_users(name):
    """Ten times as many users each submit as much as before; busier ones are worth a word."""
    model = published(name, 128)
    before = generate(model, jobs=2000)
    after = generate(model, jobs=20_000, users="10x")
    counts = [np.unique(made.drawn.user, return_counts=True)[1] for made in (before, after)]
    assert len(counts[1]) > 8 * len(counts[0])
    assert 0.8 < counts[1].mean() / counts[0].mean() < 1.25
    assert any("about 1,000 users; the model has 100" in note for note in after.notes)
    assert len(np.unique(generate(model, jobs=2000, users=7).drawn.user)) == 7
    fitted = fit("downey", poisson_workload(200, 300, 1))
    for load, busier in ((None, False), (50, True)):
        notes = " ".join(generate(fitted, jobs=500, load=load).notes)
        assert busier == ("times as many jobs a day as in the log" in notes)


def test_more_users_have_the_same_distribution_of_shares():
    """Of ten times as many ten are like each; groups of users keep their shares."""
    users = UserShares(weights=(0.6, 0.3, 0.1), groups=(2, 1, 2))
    more, one = users.resized(30), users.resized(1)
    np.testing.assert_allclose(more.weights, np.repeat([0.06, 0.03, 0.01], 10))
    assert (2,) * 10 + (1,) * 10 + (2,) * 10 == more.groups
    assert ((1.0,), (1,)) == (one.weights, one.groups)
    model = fit("mugm", bursty_workload(400, 3), arrivals="poisson", options={"groups": 2})
    few, many = (generate(model, jobs=3000, users=users).drawn for users in (None, "4x"))
    assert len(np.unique(many.user)) > 2 * len(np.unique(few.user))
    assert np.mean(many.group == 1) == pytest.approx(np.mean(few.group == 1), abs=0.05)
