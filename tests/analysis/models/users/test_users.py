"""Users and requested times of generated jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.analysis.features import Workload
from hpcrowd.analysis.models.generation import generate
from hpcrowd.analysis.models.model import fit, published
from hpcrowd.analysis.models.parts.base import Drawn
from hpcrowd.analysis.models.parts.users import Requests, UserShares
from hpcrowd.environment.errors import QuantityError
from pydantic import ValidationError

from tests.analysis.features.feature_cases import bursty_workload, poisson_workload


def test_users_have_their_shares_of_the_bags() -> None:
    """Each user comes as often as fitted, within chance; groups go with users."""
    users = UserShares(weights=(0.6, 0.3, 0.1), groups=(2, 1, 2))
    n = 40_000
    user, group = users.assign(n, np.random.default_rng(1))
    shares = np.bincount(user, minlength=4)[1:] / n
    np.testing.assert_allclose(shares, users.weights, atol=4 * 0.5 / np.sqrt(n))
    assert {(1, 2), (2, 1), (3, 2)} == set(zip(user.tolist(), group.tolist(), strict=True))


def test_who_stays_submits_the_next_bag_too() -> None:
    """The share of bags with the user of the one before is chance plus what stays."""
    users = UserShares(weights=(0.5, 0.5), groups=(1, 1), stay=0.6)
    user, _ = users.assign(40_000, np.random.default_rng(2))
    same = np.mean(user[1:] == user[:-1])
    assert same == pytest.approx(0.6 + 0.4 * 0.5, abs=4 * 0.5 / np.sqrt(40_000))
    assert np.mean(user == 1) == pytest.approx(0.5, abs=0.03)


def test_a_fit_takes_shares_groups_and_persistence() -> None:
    """The most active user is number 1; a workload without users has one."""
    workload = Workload.of(
        np.arange(8) * 1000,
        5,
        user=[7, 7, 7, 7, 7, 3, 3, 3],
        group=[20, 20, 20, 20, 20, 10, 10, 10],
    )
    found = UserShares.fit(workload)
    assert (5 / 8, 3 / 8) == found.weights
    assert (2, 1) == found.groups
    chance = (5 / 8) ** 2 + (3 / 8) ** 2
    assert found.stay == pytest.approx((6 / 7 - chance) / (1 - chance))
    alone = UserShares.fit(Workload.of([0, 1], 1))
    assert ((1.0,), (1,)) == (alone.weights, alone.groups)
    assert ("no users recorded: one for all",) == alone.notes


def test_users_that_make_no_sense_are_refused() -> None:
    """Lengths agree, groups count from 1, there is at least one."""
    for wrong in (
        {"weights": (1.0,), "groups": (1, 2)},
        {"weights": (1.0,), "groups": (0,)},
        {"weights": (), "groups": ()},
    ):
        with pytest.raises(ValidationError):
            UserShares(**wrong)


def test_jobs_of_a_bag_ask_for_the_same() -> None:
    """One request for each bag, at least the longest run time where the fitted times allow."""
    workload = bursty_workload(800, 3)
    found = Requests.fit(workload)
    assert found is not None
    random = np.random.default_rng(4)
    size = 5000
    bag = np.sort(random.integers(0, 900, size))
    drawn = Drawn.of(
        np.arange(size) * 1.0, random.uniform(0, 500, size), np.ones(size, int), bag=bag
    )
    asked = found.times(drawn, random)
    firsts = np.flatnonzero(np.r_[True, bag[1:] != bag[:-1]])
    assert (asked == np.repeat(asked[firsts], np.diff(np.r_[firsts, size]))).all()
    assert (asked >= drawn.run_time).mean() > 0.99
    assert set(asked.tolist()) <= set(range(1, found.longest_s + 1))


def test_without_requests_there_is_nothing_to_fit() -> None:
    """No requested times, too few of them, or none of an hour: no model."""
    assert Requests.fit(poisson_workload(100, 10, 1, requested_time=-1)) is None
    few = np.full(100, -1.0)
    few[:5] = 7200
    assert Requests.fit(poisson_workload(100, 10, 1, requested_time=few)) is None
    assert Requests.fit(poisson_workload(100, 10, 1, requested_time=60)) is None
    assert Requests.fit(Workload.of([], [])) is None


def test_more_users_have_the_same_distribution_of_shares() -> None:
    """Of ten times as many ten are like each; of fewer, those at equal steps of the rank."""
    users = UserShares(weights=(0.6, 0.3, 0.1), groups=(2, 1, 2))
    more = users.resized(30)
    np.testing.assert_allclose(more.weights, np.repeat([0.06, 0.03, 0.01], 10))
    assert (2,) * 10 + (1,) * 10 + (2,) * 10 == more.groups
    assert ((1.0,), (1,)) == (users.resized(1).weights, users.resized(1).groups)
    assert users.resized(3).groups == users.groups


@pytest.mark.parametrize("name", ["lublin", "feitelson96", "downey"])
def test_workloads_of_more_users(name: str) -> None:
    """A tenfold workload of ten times as many users; each submits as much as before."""
    model = published(name, 128)
    before = generate(model, jobs=2000)
    after = generate(model, jobs=20_000, users="10x")
    counts = [np.unique(made.drawn.user, return_counts=True)[1] for made in (before, after)]
    assert len(counts[1]) > 8 * len(counts[0])
    assert 0.8 < counts[1].mean() / counts[0].mean() < 1.25
    assert any("about 1,000 users; the model has 100" in note for note in after.notes)
    assert len(np.unique(generate(model, jobs=2000, users=7).drawn.user)) == 7


def test_users_of_groups() -> None:
    """Models with groups of users keep the shares of the groups."""
    model = fit("mugm", bursty_workload(400, 3), arrivals="poisson", options={"groups": 2})
    many = generate(model, jobs=3000, users="4x").drawn
    few = generate(model, jobs=3000).drawn
    assert len(np.unique(many.user)) > 2 * len(np.unique(few.user))
    shares = [np.mean(drawn.group == 1) for drawn in (many, few)]
    assert shares[0] == pytest.approx(shares[1], abs=0.05)


@pytest.mark.parametrize(
    ("users", "message"),
    [("0x", "users '0x'"), (0, "users '0'"), ("many", "users 'many'"), (-3, "users '-3'")],
)
def test_wrong_numbers_of_users(users: object, message: str) -> None:
    """One line with the value."""
    with pytest.raises(QuantityError, match=message):
        generate(published("lublin", 64), jobs=10, users=users)  # type: ignore[arg-type]


def test_busier_users_are_noted() -> None:
    """The same users with far more jobs a day are worth a word; more users are not."""
    model = fit("lublin", poisson_workload(2000, 300, 1))
    calm, busy = generate(model, jobs=500), generate(model, jobs=500, load=50)
    assert not [note for note in calm.notes if "times as many" in note]
    assert [note for note in busy.notes if "times as many jobs a day as in the log" in note]
