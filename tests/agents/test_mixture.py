"""Mixed populations: who has which behaviour, and what is not a mixture."""

from typing import Any

import numpy as np
import pytest
from hpcrowd import Simulation, Streams, Work, add_users
from hpcrowd.behaviours import Rigid, ThinkTime
from hpcrowd.errors import QuantityError
from hpcrowd.populations import Mixture, Part

from tests.support.simulations import both


def crowd(make_jobs, numbers):
    """The work of users with these numbers, two jobs each; groups of ten."""
    jobs = make_jobs(*((10 * place, 5, 1, 5, number) for place in (0, 900) for number in numbers))
    jobs.group[:] = jobs.user // 10
    return Work.of(jobs)


def test_shares_are_met(make_jobs):
    """Each user draws by the shares, to within what chance allows, from its own stream."""
    count, shares = 3000, np.array([0.2, 0.5, 0.3])
    kinds = ("fluid", "rigid", "adjusted")
    mixture = Mixture([Part(kind, share) for kind, share in zip(kinds, shares, strict=True)])
    found = mixture.assign(crowd(make_jobs, range(count)), Streams(1))
    errors = np.abs(np.bincount(found) / count - shares)
    assert np.all(errors < 5 * np.sqrt(shares * (1 - shares) / count))
    fewer = mixture.assign(crowd(make_jobs, range(1, 200)), Streams(1))
    assert found[1:200].tolist() == fewer.tolist()
    assert np.any(fewer != mixture.assign(crowd(make_jobs, range(1, 200)), Streams(4)))


def test_users_go_before_groups_and_groups_before_shares(make_jobs):
    """Who is named goes first, then who has its first job in a named group; the others draw."""
    parts = Part("rigid", users=(5, 11)), Part("fluid", groups=(1,)), Part("adjusted", 1.0)
    found = Mixture(parts).assign(crowd(make_jobs, range(30)), Streams())
    expected = np.repeat([2, 1, 2], 10)
    expected[[5, 11]] = 0
    assert expected.tolist() == found.tolist()
    jobs = make_jobs((900, 5, 1, 5, 1), (0, 5, 1, 5, 1), (5, 5, 1, 5, 2))
    jobs.group[:] = 7, 8, 7
    mixture = Mixture([Part("rigid", groups=(7,)), Part("fluid", groups=(8,))])
    assert [1, 0] == mixture.assign(Work.of(jobs), Streams()).tolist()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "mixture without parts"),
        ([Part("rigid", 0.5), Part("fluid", 0.6)], r"shares 0\.5 \+ 0\.6 = 1\.1: must add up to 1"),
        ([Part("rigid", 1.5)], r"share 1\.5: must be between 0 and 1"),
        ([Part("rigid", -0.5)], r"share -0\.5: must be between 0 and 1"),
        ([Part("rigid", users=(3,)), Part("fluid", users=(3,))], "users 3: named twice"),
        ([Part("rigid", groups=(3, 3))], "groups 3: named twice"),
        ([Part("rigid", 1.0), Part("fluid", users=(99,))], "user 99: named .* not in the trace"),
        ([Part("rigid", 1.0), Part("fluid", groups=(9,))], "group 9: named .* not in the trace"),
        ([Part("rigid", users=(1,))], "user 0: no part of the mixture names it"),
        ([Part("slow", 1.0)], "users 'slow': not known; choose rigid, think-time"),
    ],
)
def test_what_is_not_a_mixture(make_jobs, parts, message):
    """Shares that do not add up, who is named twice or not there, and unknown names are refused."""
    work = crowd(make_jobs, range(5))
    with pytest.raises(QuantityError, match=message):
        add_users(Simulation(work.jobs, 4), work, Mixture(parts))


def test_what_parts_may_be(make_jobs):
    """Ten tenths add up to 1; users of a part share a behaviour, which a function may make."""
    assert 10 == len(Mixture([Part("rigid", 0.1)] * 10).parts)
    named = [Part("fluid", 0.5), Part(ThinkTime, 0.5)]
    assert "mixture of fluid, ThinkTime" == str(Mixture(named))
    work = crowd(make_jobs, range(40))
    parts = [Part(lambda work: Rigid(), 0.5), Part(ThinkTime, 0.5)]
    users = add_users(Simulation(work.jobs, 10), work, Mixture(parts))
    assert {Rigid, ThinkTime} == {type(user.behaviour) for user in users}
    assert 2 == len({id(user.behaviour) for user in users})


@both
def test_each_user_behaves_as_its_part_says(make_jobs, plain):
    """Units of work of different kinds side by side: each user as in its own population."""
    units = (0, 100), (50, 700), (900, 30), (9000, 50), (9900, 20)
    jobs = make_jobs(*((at + u, run, 1, run, u) for at, run in units for u in (1, 2, 3, 4)))
    jobs.run_time[:] *= 3
    kinds: list[Any] = ["rigid", "think-time", "adjusted", "fluid"]

    def submissions(behaviour):
        table = jobs.copy()
        model = Simulation(table, 100, "easy", plain=plain)
        add_users(model, Work.of(table), behaviour)
        model.run()
        return table.submit

    mixed = submissions(Mixture([Part(kind, users=(1 + n,)) for n, kind in enumerate(kinds)]))
    for number, kind in enumerate(kinds, start=1):
        mine = jobs.user == number
        assert submissions(kind)[mine].tolist() == mixed[mine].tolist(), kind
