"""Fair share of accounts and users, and the factors of priorities, as Slurm computes them."""

import pytest
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.demand import demand_of
from hpcrowd.environment.machine.layout import Layout
from hpcrowd.environment.machine.model import (
    Account,
    Machine,
    NodeType,
    Partition,
    PrioritySettings,
    Qos,
)
from hpcrowd.environment.schedulers.slurm.queue import Priorities, QueuedJob
from hpcrowd.environment.schedulers.slurm.shares import Shares

from tests.environment.schedulers.slurm.brute import charge, decay

DAY = 86_400

NODES = (NodeType(name="n[1-10]", cores=8),)

#: Two accounts with 60 and 40 shares; users with 1 share each, Cy with 3.
TREE = (
    Account(account="a", shares=60),
    Account(account="b", shares=40),
    Account(account="a", user="ann"),
    Account(account="a", user="al"),
    Account(account="b", user="bo"),
    Account(account="b", user="cy", shares=3),
)


def tree(**settings):
    """Return the tree with priority settings."""
    priority = PrioritySettings.model_validate({"half_life": DAY, **settings})
    return Shares(Machine(nodes=NODES, accounts=TREE, priority=priority))


def factors(shares):
    """Return the factors of the users."""
    shares.rank()
    return {one.user: one.factor for one in shares.all if one.user}


@pytest.mark.parametrize(
    ("settings", "used", "expected"),
    [
        ({}, {}, dict.fromkeys(("ann", "al", "bo", "cy"), 1.0)),
        # Accounts are compared first: a has .6 of shares, .9 of usage; al, who used nothing, ranks
        # behind bo, who used much.
        ({}, {"ann": 90, "bo": 10}, {"cy": 1.0, "bo": 0.75, "al": 0.5, "ann": 0.25}),
        # With three times the shares, three times the usage is a tie.
        ({"half_life": 0}, {"bo": 1, "cy": 3}, {"bo": 0.5, "cy": 0.5, "ann": 1.0, "al": 1.0}),
        # Users of accounts with the same level rank by their own.
        ({"half_life": 0}, {"ann": 6, "bo": 4}, {"al": 1.0, "cy": 1.0, "ann": 0.5, "bo": 0.25}),
        # The classic factor, 2 ** -(effective usage / share): share .3 and usage .3 + (.6 - .3) / 2
        # of ann; share .1 and usage .1 + (.4 - .1) / 4 of bo.
        (
            {"fair_tree": False},
            {"ann": 30, "al": 30, "bo": 10, "cy": 30},
            {"ann": 2**-1.5, "al": 2**-1.5, "bo": 2**-1.75, "cy": 2**-1.25},
        ),
    ],
    ids=["nobody", "accounts", "shares", "ties", "classic"],
)
def test_factors_follow_usage(settings, used, expected):
    """Users rank by what they and their accounts used, and by their shares."""
    shares = tree(**settings)
    for user, amount in used.items():
        charge(shares, shares.of(user, "a" if user[0] == "a" else "b"), amount, 100)
    assert pytest.approx(expected) == factors(shares)


def test_no_shares_is_last():
    """A user with no shares has level 0, whoever used how much."""
    users = (Account(account="a", user="x", shares=0), Account(account="a", user="y"))
    shares = Shares(Machine(nodes=NODES, accounts=(Account(account="a"), *users)))
    charge(shares, shares.of("y", "a"), 5, 100)
    assert {"y": 1.0, "x": 0.5} == factors(shares)


def test_usage_halves_in_a_half_life():
    """Slurm's decay is (1 - 0.693 / half-life) a second."""
    shares = tree()
    charge(shares, shares.of("ann", "a"), 1, 0.001)
    before = shares.root.usage
    decay(shares, DAY, reset=False)
    assert 0.5 == pytest.approx(shares.root.usage / before, rel=1e-3)
    assert before == pytest.approx(0.001)


def test_unknown_users_join_below_their_account_or_the_root():
    """A user that no account names gets one share."""
    shares = tree()
    assert "b" == shares.of("new", "b").name
    other = shares.of("lost", "nowhere")
    assert ("nowhere", 1.0) == (other.name, other.shares)
    assert "root" == shares.of("alone").name


def job(layout, cores, shares, **more):
    """Return a waiting job of ann."""
    jobs = JobTable()
    jobs.append(1, processors=cores, requested_time=3600, run_time=60)
    demands = {
        name: demand_of(layout, partition, jobs, 0) for name, partition in layout.partitions.items()
    }
    values: dict[str, object] = {
        "row": 0, "user": "ann", "association": shares.of("ann", "a"), "qos": "normal",
        "limit": 3600, "partitions": tuple(demands), "demands": demands, "submitted": 0,
        "eligible": 0,
    }  # fmt: skip
    return QueuedJob(**{**values, **more})


def test_factors_are_weighted():
    """Age, size, partition and QOS count as slurm.conf(5) says."""
    machine = Machine(
        nodes=NODES,
        partitions=(
            Partition(name="half", priority_factor=50),
            Partition(name="full", priority_factor=100),
        ),
        qos=(Qos(name="normal", priority=20), Qos(name="high", priority=100)),
        accounts=TREE,
        priority=PrioritySettings(
            weight_age=1000, weight_size=100, weight_partition=10, weight_qos=500, max_age=DAY,
            weight_fair_share=3000,
        ),
    )  # fmt: skip
    layout, shares = Layout(machine), Shares(machine)
    shares.rank()
    priorities = Priorities(layout)
    found = priorities.of(job(layout, 40, shares), "half", DAY // 2)
    assert (500, 3000, 5, 100) == (found.age, found.fair_share, found.partition, found.qos)
    # One node of ten and 40 cores of 80.
    assert 30 == pytest.approx(found.size)
    assert 500 + 3000 + 5 + 100 + 30 == found.total
    assert 1000 == priorities.of(job(layout, 1, shares), "half", 9 * DAY).age
    assert 0 == priorities.of(job(layout, 1, shares, eligible=100), "half", 50).age
    nice = priorities.of(job(layout, 40, shares, nice=10_000), "half", DAY // 2)
    assert 1 == nice.total


def test_small_jobs_can_be_favored():
    """PriorityFavorSmall turns the size around."""
    machine = Machine(
        nodes=NODES,
        priority=PrioritySettings(weight_size=100, favor_small=True),
    )
    layout = Layout(machine)
    jobs = (job(layout, cores, Shares(machine)) for cores in (1, 80))
    small, large = (Priorities(layout).of(one, "all", 0).size for one in jobs)
    assert small > large
    assert 100 * (1 - 1 / 10 + 1 - 1 / 80) / 2 == pytest.approx(small)
