"""What jobs are billed, and limits on decayed usage, as stories."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.machine.model import (
    Account,
    Limits,
    NodeType,
    Partition,
    PrioritySettings,
    Qos,
)
from hpcrowd.environment.schedulers.slurm.billing import billable, reset_around
from hpcrowd.environment.schedulers.slurm.policy import Slurm

from tests.environment.machine.audit import faults
from tests.environment.machine.machine_cases import Nobody, machine, table
from tests.support.simulations import simulation_of

#: The example of slurm.conf(5), TRESBillingWeights: 1 CPU and 8 GB.
WEIGHTS = {"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 2.0}
HELD = {"cpu": 1, "mem": 8192, "node": 1, "gres/gpu": 0}

ORIGIN = int(datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp())  # a Saturday


def test_jobs_are_billed_as_the_manual_page_says():
    """The sum of weighted resources, or the largest product; without weights the cores."""
    assert 3.0 == billable(HELD, WEIGHTS, largest=False)
    assert 2.0 == billable(HELD, WEIGHTS, largest=True)
    assert 1.0 == billable(HELD, {}, largest=True)


@pytest.mark.parametrize(
    ("period", "days"),
    [("daily", (-0.5, 0.5)), ("weekly", (-6.5, 0.5)), ("monthly", (-27.5, 3.5)),
     ("quarterly", (-86.5, 3.5)), ("yearly", (-86.5, 278.5))],
)  # fmt: skip
def test_usage_is_reset_at_midnight(period, days):
    """On Sundays, or the first day of a month, quarter or year."""
    assert tuple(round(day * DAY) for day in days) == reset_around(period, 0, ORIGIN, UTC)


def test_midnight_is_of_the_time_zone():
    """The night in which summer time begins is an hour shorter."""
    zone = ZoneInfo("Europe/Paris")
    assert (11 * HOUR, 34 * HOUR) == reset_around("daily", 11 * HOUR, ORIGIN, zone)


def simulated(*jobs, clock=None, priority=None, **more):
    """Return starts and usage in a machine of two nodes of four cores, and the faults."""
    site = machine(
        NodeType(name="n[1-2]", cores=4, gpus={"a": 1}), **more,
        priority=PrioritySettings(calculation_period=60, **(priority or {})),
    )  # fmt: skip
    made, at = table(*jobs)
    policy = Slurm()
    model = simulation_of(made, site.cores, policy, machine=site, clock=clock)
    model.submit(Nobody(), np.arange(len(at)), at)
    model.run()
    assert policy.machine is not None
    wrong = faults(policy.machine, model.jobs, policy.ledger)
    return model.jobs.start.tolist(), policy.state.shares.root.usage, wrong


def test_fair_share_counts_what_is_billed():
    """A GPU counts three times a core here, and usage twice in a QOS."""
    partition = Partition(name="p", billing_weights={"cpu": 1.0, "gres/gpu": 3.0})
    jobs = [{"cores": 2, "gpus": 1, "qos": "q"}, {"at": 300}]
    _, usage, wrong = simulated(
        *jobs, partitions=(partition,), qos=(Qos(name="q", usage_factor=2),),
        priority={"half_life": 0},
    )  # fmt: skip
    # The second has run for a minute when usage is computed last.
    assert (100 * (2 + 3) * 2 + 60, []) == (usage, wrong)


LIMITED = {"scheduling": {"enforce_limits": True}}


def of_account(minutes):
    """Return accounts of which all use is limited."""
    limits = Limits(group_tres_minutes=minutes)
    return (Account(account="a", limits=limits), Account(account="a", user="u1"))


def test_jobs_wait_until_usage_has_decayed():
    """5 cores for 100 s are 8.3 minutes: at 60 s 5, after the half-life less than 4."""
    jobs = [{"cores": 5, "run": 100, "limit": 100}, {"at": 150}]
    starts, _, wrong = simulated(
        *jobs, accounts=of_account({"cpu": 4}), priority={"half_life": 600}, **LIMITED
    )
    # 500 core-s at 120 s, less what has decayed; 240 are left after about a half-life.
    assert starts[0] == 0
    assert 600 < starts[1] <= 780
    assert wrong == []
    unlimited, *_ = simulated(*jobs, accounts=of_account({"cpu": 9}), **LIMITED)
    assert unlimited == [0, 150]


def test_a_reset_ends_the_wait():
    """At the first calculation after midnight, which is 10 minutes after the origin."""
    clock = Clock(Clock().unix_start + DAY - 590)
    starts, _, wrong = simulated(
        {"cores": 5}, {"at": 150}, accounts=of_account({"cpu": 4}), clock=clock,
        priority={"half_life": 0, "usage_reset": "daily"}, **LIMITED,
    )  # fmt: skip
    assert ([0, 600], []) == (starts, wrong)


def test_without_decay_jobs_wait_for_ever():
    """A QOS without decay keeps its jobs, and the run ends nevertheless."""
    qos = Qos(name="q", no_decay=True, limits=Limits(group_tres_minutes={"node": 1}))
    jobs = [{"run": 100, "qos": "q"}, {"at": 130, "qos": "q"}, {"at": 130}]
    starts, *_ = simulated(*jobs, qos=(qos,), **LIMITED)
    assert starts == [0, -1, 130]


def test_safe_limits_hold_to_the_ends_of_jobs():
    """Six minutes are enough for two jobs of three, but not for a third before one has ended."""
    jobs = [{"limit": 180, "run": 60}] * 3
    scheduling = {"enforce_limits": True, "safe_limits": True}
    how = {"accounts": of_account({"cpu": 6}), "priority": {"half_life": 0}}
    starts, _, wrong = simulated(*jobs, scheduling=scheduling, **how)
    # Each has used a minute then, which leaves four: room for one more.
    assert ([0, 0, 60], []) == (starts, wrong)
    assert [0, 0, 0] == simulated(*jobs, **how, **LIMITED)[0]


def test_limits_on_what_is_billed():
    """A job of two cores and a GPU is billed 5; the second has to wait for the first."""
    partition = Partition(name="p", billing_weights={"cpu": 1.0, "gres/gpu": 3.0})
    qos = Qos(name="q", limits=Limits(group_tres={"billing": 9}))
    jobs = [{"cores": 2, "gpus": 1, "qos": "q"}] * 2
    assert [0, 100] == simulated(*jobs, partitions=(partition,), qos=(qos,), **LIMITED)[0]
