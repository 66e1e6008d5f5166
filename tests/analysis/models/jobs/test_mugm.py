"""MUGM as a model: what it generates, what it keeps of users, and traces that are hardly any."""

import numpy as np
import pytest
from hpcrowd import generate
from hpcrowd.analysis.features.sizes import is_power_of_two
from hpcrowd.analysis.models.jobs.mugm import Mixture, Mugm, UserGroup, nearest_power
from hpcrowd.analysis.models.model import fit
from hpcrowd.environment.errors import QuantityError
from hpcrowd.features import Workload


def two_kinds(jobs, seed, **columns):
    """Return short serial jobs of users 1 to 8, and long parallel ones of users 11 to 18."""
    random = np.random.default_rng(seed)
    large = random.random(jobs) < 0.3
    made = {
        "run_time": np.exp2(np.where(large, 14, 5) + random.normal(0, 0.5, jobs)),
        "processors": np.where(large, random.integers(12, 21, jobs), 1),
        "user": np.where(large, 10, 0) + random.integers(1, 9, jobs),
        "machine": 64,
    } | columns
    return Workload.of(np.sort(random.uniform(0, 1e6, jobs)), **made)


def group(**changes):
    """Return a group of jobs around 16 processors and an hour."""
    mixture = Mixture(weights=(1.0,), means=((4.0, 12.0),), covariances=((0.5, 0.1, 1.0),))
    made = {"jobs": (3, 1), "area": 1.0, "mixture": mixture, "powers": 0.5, "powers_drawn": 0.2}
    return UserGroup(**(made | changes))


def model(*groups, **changes):
    """Return a model on 64 processors."""
    made = {"groups": groups, "run_time_medoids": (12.0,), "machine": 64, "longest_s": 1e5}
    return Mugm(**(made | changes))


def test_users_who_submit_alike_are_a_group():
    """Two kinds of users are two groups, the one with more area first, with their jobs."""
    workload = two_kinds(4000, 1)
    found = Mugm.fit(workload, groups=2, clusters=2)
    large = workload.user > 10
    area = workload.run_time * workload.processors
    assert [int(large.sum()), int((~large).sum())] == [one.size for one in found.groups]
    assert [8, 8] == [len(one.jobs) for one in found.groups]
    assert found.groups[0].area == pytest.approx(area[large].sum() / area.sum())
    assert found.groups[0].powers == is_power_of_two(workload.processors[large]).mean()
    np.testing.assert_allclose(found.run_time_medoids, [5, 14], atol=0.1)
    assert [list(range(1, 9)), list(range(9, 17))] == [one.tolist() for one in found.users]


def test_the_share_of_powers_of_two_is_met_or_overshoots():
    """(f - h) / (1 - h) meets f; the probability f of the paper gives h + (1 - h) f."""
    base = group()
    random = np.random.default_rng(4)
    _, sizes = base.mixture.draw(200_000, random, machine=64, longest_s=1e5)
    one = group(powers_drawn=float(is_power_of_two(sizes).mean()))
    before = one.powers_drawn
    assert 0 < before < one.powers
    for rule, expected in (("met", one.powers), ("paper", before + (1 - before) * one.powers)):
        _, drawn = model(one, powers_of_two=rule).draw_group(1, 100_000, random)
        # Two shares with chance errors: the one drawn, and the one measured before.
        error = 0.5 / np.sqrt(100_000)
        assert is_power_of_two(drawn).mean() == pytest.approx(expected, abs=6 * error)
    assert 0 == group(powers=0.1, powers_drawn=0.4).rounded_share("met")
    assert 0 == group(powers=1.0, powers_drawn=1.0).rounded_share("met")
    sizes = np.array([1, 2, 3, 5, 11, 12, 90, 96, 100])
    assert [1, 2, 4, 4, 8, 16, 64, 64, 64] == nearest_power(sizes, 100).tolist()
    assert [1] == nearest_power(np.array([1]), 1).tolist()


def test_what_is_generated_is_like_the_trace():
    """Shares of groups and users, run times and powers of two come out, within chance."""
    workload = two_kinds(4000, 2)
    fitted = fit("mugm", workload, arrivals="poisson", options={"groups": 2})
    drawn, parts = generate(fitted, jobs=40_000, seed=3).drawn, fitted.jobs
    sizes, jobs = ([one.size for one in parts.groups], [one.jobs for one in parts.groups])
    for found, expected in ((drawn.group, sizes), (drawn.user, np.concatenate(jobs))):
        shares = np.bincount(found)[1:] / 40_000
        np.testing.assert_allclose(shares, np.array(expected) / 4000, atol=4 * 0.5 / 200)
    for number, one in enumerate(parts.groups, 1):
        mine = drawn.group == number
        assert {*parts.users[number - 1].tolist()} == {*drawn.user[mine].tolist()}
        assert is_power_of_two(drawn.processors[mine]).mean() == pytest.approx(one.powers, abs=0.02)
        log = np.log2(drawn.run_time[mine]).mean()
        assert log == pytest.approx({1: 14, 2: 5}[number], abs=0.1)
    assert 1 <= drawn.run_time.min() <= drawn.run_time.max() <= np.ceil(workload.run_time.max())


def test_a_group_is_drawn_alone():
    """Run times and processors of one group, the same for the same stream; others are refused."""
    found = model(group(), group(jobs=(2,)))
    first, second = (found.draw_group(2, 50, np.random.default_rng(5)) for _ in range(2))
    assert ([50, 50], True) == ([len(one) for one in first], np.array_equal(first, second))
    assert found.draw_group(1, 2000, np.random.default_rng(5), machine=10)[1].max() <= 10
    assert (0,) == found.draw_group(1, 0, np.random.default_rng(5))[0].shape
    for wrong in (0, 3):
        with pytest.raises(QuantityError, match=f"group {wrong}: choose 1 to 2"):
            found.draw_group(wrong, 1, np.random.default_rng(5))


def test_what_counts_is_reported():
    """Jobs with a run time of 0 and without a user are listed, and too few groups."""
    found = Mugm.fit(Workload.of(range(4), [0, 5, 9, 7], user=[1, -1, 2, 3]), groups=3)
    assert 3 == sum(one.size for one in found.groups)
    assert "1 jobs with a run time of 0 left out" in found.notes
    assert "1 jobs without a user: count as one user's" in found.notes
    found = Mugm.fit(Workload.of(range(5), np.arange(1, 6) * 10.0, 2, user=1, machine=8))
    assert ("1 groups of users instead of 4: too few differ",) == found.notes
    assert found.draw_group(1, 100, np.random.default_rng(9))[0].max() <= 50
