"""Every account of a run against a sum per second over the schedule, as it was seen going by.

Jobs end, are killed, taken back, suspended, requeued, submitted again and stopped for good, on
pools whose platform changes under a cap, and on machines of nodes.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hpcrowd import JobTable, SessionDefinition, State, Work, add_users
from hpcrowd.analysis import curves
from hpcrowd.analysis.accounts.platform import PlatformChanges, accounts_of
from hpcrowd.analysis.energy.part import Energy
from hpcrowd.analysis.energy.record import account_of
from hpcrowd.analysis.parts import RunParts
from hpcrowd.analysis.pictures.density import density_of
from hpcrowd.analysis.run import Run
from hpcrowd.environment.machine.model import Preempt
from hpcrowd.environment.power.caps import PowerCap, SpeedLaw
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.environment.power.draws import DrawTable
from hpcrowd.environment.power.in_use import PowerInUse
from hpcrowd.environment.quantities import KWH
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.signals.tariff import Tariff
from hpcrowd.environment.stops import FOREVER
from hpcrowd.platform import NodesDown
from hpcrowd.scenarios.inspector.panels.overview import utilization_until
from hpcrowd.views import Moment, delays_table, load_table
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.environment.machine.machine_cases import Nobody, random_jobs, random_machine
from tests.support.policies import SIZE, cases, make, options_of
from tests.support.simulations import simulation_of

IDLE, BUSY, PUE = 2.0, 10.0, 1.25


@dataclass
class Seen:
    """What a simulation showed in each second, by the numbers of the jobs that ran and waited."""

    ran: list[dict[int, int]] = field(default_factory=list)  #: processors held by row
    waited: list[dict[int, int]] = field(default_factory=list)  #: processors asked for by row
    up: list[int] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)  #: relative to full speed

    @property
    def used(self):
        """Processors in use in each second."""
        return np.array([sum(one.values()) for one in self.ran])


def watched(model, taken=()):
    """Run a simulation second by second, and return what was seen; users take jobs back."""
    jobs, cluster, seen = model.jobs, model.cluster, Seen()
    second = idle = 0
    while idle < 2 or second < 60:  # a pass of the second of the last end may be to come
        second += 1
        over, before = np.array(jobs.state[:]) != State.UNFINISHED, model.events
        model.run(until=second)
        ended = ~over & jobs.over & (jobs.start >= 0) & (jobs.start < second)
        ended &= jobs.end == second
        idle = idle + 1 if model.next_time == FOREVER and model.events == before else 0
        going = cluster.running[jobs.end[cluster.running] >= 0]  # not suspended
        rows = {*going.tolist(), *np.flatnonzero(ended).tolist()}
        seen.ran.append({row: int(jobs.processors[row]) for row in rows})
        seen.waited.append({row: int(jobs.processors[row]) for row in cluster.waiting.tolist()})
        line = cluster.engine.timeline
        seen.up.append(cluster.processors if line is None else line.history[-1][2])
        seen.clock.append(1.0 if line is None else [1.0, *(f for _, f in line.levels)][-1])
        for row in (row for row, at in taken if at == second and row < len(jobs)):
            if jobs.state[row] == State.UNFINISHED and jobs.submit[row] >= 0:
                model.cancel(row)
    model.run()
    # Who was rejected or renounced in the end counts as never having waited, since the last run.
    last = {one.row: one.end for one in cluster.attempts}
    for row in np.flatnonzero(np.isin(jobs.state, (State.REJECTED, State.RENOUNCED))).tolist():
        for one in seen.waited[last.get(row, 0) :]:
            one.pop(row, None)
    return seen


def finished(model):
    """Return a finished simulation as a run."""
    return Run(
        model.jobs, sum(one.processors for one in model.clusters.values()), "run", {},
        attempts=model.attempts,
        parts=RunParts(PlatformChanges(accounts_of(model)), Energy(over_time=account_of(model))),
    )  # fmt: skip


def check_use(model, seen):
    """Loads, queues, delays and shares of the machine are those of the seconds."""
    run, used = finished(model), seen.used
    moment, edges = replace(Moment.of_model(model), now=len(used)), np.arange(len(used) + 1)
    asked = np.array([sum(one.values()) for one in seen.waited])
    waits = np.array([len(one) for one in seen.waited])
    # When a job was suspended is not in its table: it counts evenly from start to end.
    even = (model.jobs.paused > 0).any()
    assert even or np.allclose(used, curves.processors_in_use(run.runs, edges))
    assert used.sum() == pytest.approx(curves.processors_in_use(run.runs, edges).sum())
    assert np.allclose(waits, curves.jobs_waiting(run.runs, edges))
    assert np.allclose(asked, curves.jobs_waiting(run.runs, edges, run.runs.processors))
    known = {"processors_in_use": used, "jobs_waiting": waits, "processors_asked": asked}
    for now in (moment, Moment.of_run(run, len(used)), Moment.of_run(run, len(used) // 3)):
        frame = load_table(now, None)
        wide = (frame.end_s - frame.begin_s).to_numpy()
        for column, values in known.items():
            if not even or now is moment:
                assert (frame[column] * wide).sum() == pytest.approx(sum(values[: now.now]))
        hours = float(delays_table(now)["processor_hours"].sum())
        assert 3600 * hours == pytest.approx(sum(asked[: now.now]))
    if not even:
        share = density_of(run, 0, len(used))
        assert used.sum() == pytest.approx(share.held @ np.diff(share.edges))


def repeated(step, *values):
    """A signal whose values come again and again."""
    return Signal(np.arange(40) * step, np.resize(values, 40))


POWER = Power(
    (NodePower("n", IDLE, BUSY),),
    DrawTable("processors", {"1": 5.0, "2": 15.0, "3": 30.0}),
    pue=PUE,
    carbon=repeated(20, 100.0, 300.0, 50.0),
    tariff=Tariff(energy=repeated(33, 0.1, -0.2, 0.3), peak_price=10.0, peak_window=60),
)


def check_energy(account, watts):
    """Energy, carbon, cost and peak are those of the seconds; ``watts`` without cooling."""
    watts = PUE * watts[account.begin : account.end]
    at = np.arange(account.begin, account.end)
    found = account.summary()
    assert np.allclose(watts, account.curve.at(at))
    assert watts.sum() / KWH == pytest.approx(found["energy_kwh"])
    assert watts.sum() / KWH == pytest.approx(sum(found["parts_kwh"].values()))
    assert watts.max() / 1000 == pytest.approx(found["peak_kw"])
    carbon, market = account.rates.carbon, account.tariff.energy
    assert float(watts @ carbon.at(at)) / KWH / 1000 == pytest.approx(found["carbon_kg"])
    price = market.values[np.searchsorted(market.times, at, side="right") - 1]
    assert float(watts @ price) / KWH == pytest.approx(found["cost"] - found["peak_cost"])


levels = st.lists(st.floats(9 * IDLE, 120), min_size=1, max_size=6).map(
    lambda watts: Signal(np.arange(len(watts) + 1) * 9, np.array([*watts, 1000]))
)
laws = st.none() | st.just(SpeedLaw(1, exponent=2, levels=(1, 0.9, 0.5)))
caps = st.none() | st.builds(PowerCap, levels, laws, st.sampled_from(["requeue", "fail"]))
policies = st.sampled_from(["fcfs", "easy", "conservative", "sjf"])


@pytest.mark.parametrize("examples", [4, pytest.param(300, marks=pytest.mark.endurance)])
def test_pools(examples):
    """Whatever happens to jobs, each run counts once, for as long as it was seen to run."""
    how = settings(max_examples=examples, deadline=None, phases=[Phase.explicit, Phase.generate])
    how(given(cases, policies, caps, st.booleans())(check_pool))()


def check_pool(case, policy, cap, plain):
    """All checks of a pool."""
    options = options_of(case["cluster"])
    if case["platform"]:
        options |= {"processors": SIZE, "platform": case["platform"]}
    jobs = make(case["rows"])
    model = simulation_of(
        jobs, scheduler=policy, parts=[PowerInUse(replace(POWER, cap=cap))], plain=plain,
        resubmit_after=5, seed=3, **options,
    )  # fmt: skip
    add_users(model, Work.of(jobs, SessionDefinition("arrival", case["gap"])), case["users"])
    seen = watched(model, taken=case["taken"])
    check_use(model, seen)
    account = account_of(model)
    if account is None:
        return
    known = {1: 5.0, 2: 15.0, 3: 30.0}
    added = [
        sum(held * (known.get(held, IDLE + BUSY) - IDLE) for held in one.values())
        for one in seen.ran
    ]
    idle = IDLE * np.maximum(seen.up, seen.used)
    exponent = 1 if cap is None or cap.law is None else cap.law.exponent
    check_energy(account, idle + np.array(added) * np.array(seen.clock) ** exponent)
    lost = sum(one["lost_processor_s"] for one in accounts_of(model).values())
    kept = float(jobs.processors[jobs.ran] @ jobs.lasted[jobs.ran])
    assert seen.used.sum() == kept + lost


def nodes(seed):
    """A simulation of a random machine of nodes that preempts, and suspends in half the cases."""
    rng = np.random.default_rng(seed)
    site = random_machine(rng)
    jobs = random_jobs(rng, site, 20)
    if seed % 2:
        how = {"preempt_type": "partition", "preempt_mode": Preempt.SUSPEND}
        tiers = [
            one.model_copy(update={
                "priority_tier": tier,
                "preempt_mode": (None, None, Preempt.CANCEL, Preempt.REQUEUE)[rng.integers(4)],
            })
            for tier, one in enumerate(site.partitions, 1)
        ]  # fmt: skip
        scheduling = site.scheduling.model_copy(update=how)
        site = site.model_copy(update={"partitions": tuple(tiers), "scheduling": scheduling})
    model = simulation_of(
        jobs, site.cores, "slurm", machine=site, parts=[PowerInUse(POWER)], overrun="kill"
    )
    model.submit(Nobody(), np.arange(len(jobs)), jobs.recorded_submit)
    return model


OFTEN = [pytest.param(seed, marks=pytest.mark.endurance) for seed in range(80)]


@pytest.mark.parametrize("seed", [0, 27, *OFTEN])  # the second suspends
def test_nodes(seed):
    """On nodes, jobs also wait to go on; whoever is preempted ran until then, once."""
    model = nodes(seed)
    jobs, types = model.jobs, model.parts.of(PowerInUse).types
    seen = watched(model, taken=[(row, 7 * row % 50) for row in range(0, len(jobs), 5)])
    check_use(model, seen)
    account = account_of(model)
    if account is None:
        return
    scheduler = model.cluster.engine.scheduler
    kinds = [types[name] for name in scheduler.layout.names]
    watts = model.parts.of(PowerInUse).watts(np.arange(len(jobs)))
    total = np.full(len(seen.ran), sum(one.idle for one in kinds))
    for second, ran in enumerate(seen.ran):
        for row in ran:
            runs = [one for one in scheduler.ledger if one.row == row and one.start <= second]
            held = runs[-1].holding
            idle = sum(share.cores * kinds[share.node].idle_processor for share in held)
            total[second] += max(watts[row] * sum(share.cores for share in held) - idle, 0)
    check_energy(account, total)


def test_a_run_stopped_for_good_counts_once():
    """As the issue has it: 0.8 kWh for each job and 1.62 kWh idle, and never more than 0.8 kW."""
    jobs = JobTable()
    jobs.append(2, processors=4, run_time=[7200, 3600], requested_time=10800, user=1)
    model = simulation_of(
        jobs, 4, "easy", platform=[NodesDown(3600, 5400, 4, "fail")],
        parts=[PowerInUse(Power((NodePower("n", 100.0, 100.0),)))],
    )  # fmt: skip
    model.submit(Nobody(), np.arange(2), np.array([0, 20000]))
    run = finished(model.run())
    energy = run.parts["power"].account
    assert (3.22, 0.8) == pytest.approx((energy["energy_kwh"], energy["peak_kw"]), abs=0.005)
    parts = {"failed": 0.8, "completed": 0.8, "idle": 1.62}
    assert parts == pytest.approx(energy["parts_kwh"], abs=0.005)
    assert 4 == load_table(Moment.of_model(model), None)["processors_in_use"].max()
    share = utilization_until(Moment.of_run(run), 23600)
    assert 7200 / 23600 == pytest.approx(share / 100)
