"""A run that begins from a state goes on as the run that the state was cut from."""

from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.engine.kernel.nodes.loop import next_pass
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, Column, JobTable, State
from hpcrowd.environment.machine.model import Machine, NodeType, Partition
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.state.state import begin_from
from hpcrowd.environment.stops import FOREVER

from tests.environment.machine.machine_cases import random_jobs, random_machine
from tests.environment.schedulers.slurm.brute import BruteSlurm
from tests.support.simulations import simulation_of

PROCESSORS = 16

#: Policies with a plan: a state does not hold their reservations.
PLANNING = ("conservative", "selective", "selective-categorized", "adaptive")


def workload(seed, count=300):
    """Return jobs of five users who ask for somewhat more than the machine has."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 4000, count) // rng.choice([1, 20], count)
    processors = np.minimum(2 ** rng.integers(0, 4, count), PROCESSORS)
    gap = run.mean() * processors.mean() / PROCESSORS / 1.2
    jobs = JobTable()
    jobs.append(
        count,
        number=np.arange(count) + 1,
        user=rng.integers(0, 5, count),
        group=rng.integers(0, 2, count),
        queue=rng.integers(0, 3, count),
        executable=rng.integers(0, 4, count),
        processors=processors,
        run_time=run,
        requested_time=np.maximum(run * rng.choice([0.7, 1, 2, 5], count), 1).astype(np.int64),
        recorded_submit=np.cumsum(rng.exponential(gap, count)).astype(np.int64),
    )
    return jobs


def cut_at(jobs, now):
    """Return what a state knows of a run, and rows that run, wait, are over and are to come."""
    known = jobs.copy()
    known.recorded_submit[:] = jobs.submit
    known.recorded_start[:] = np.where(jobs.start <= now, jobs.start, UNKNOWN)
    known.recorded_end[:] = np.where(jobs.end <= now, jobs.end, UNKNOWN)
    here = (jobs.submit <= now) & (jobs.submit != UNKNOWN) & (jobs.state != State.REJECTED)
    started, over = known.recorded_start != UNKNOWN, known.recorded_end != UNKNOWN
    running, waiting = here & started & ~over, here & ~started & ~over
    parts = running, waiting, here & over, jobs.submit > now
    return known, [np.flatnonzero(rows) for rows in parts]


def twice(policy, plain, seed=1, part=0.5, **options):
    """Return the table of a whole run, that of one which goes on from a state, and the second."""
    jobs = workload(seed)
    whole = simulation_of(jobs, PROCESSORS, policy, plain=plain, **options)
    whole.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
    whole.run()
    now = int(np.quantile(jobs.submit, part))
    known, (running, waiting, over, later) = cut_at(jobs, now)
    other = simulation_of(known, PROCESSORS, policy, plain=plain, **options)
    begin_from(other, now, running, waiting, over)
    other.cluster.submit(later, known.recorded_submit[later])
    other.run()
    assert len(running) > 1
    assert len(waiting) > 5
    return jobs, known, now


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    "policy",
    [
        *(name for name in POOL_SCHEDULERS if name not in PLANNING),
        "easy:backfill=sjbf",
        "multi-queue:user-jobs=2,priorities=1:5",
        "fair-share:by=group,shares=1:3,half-life=2h",
        "wfp3:backfill=conservative",
    ],
)
def test_it_goes_on_exactly(policy, plain):
    """Every policy without reservations starts all jobs when it would have."""
    jobs, known, _ = twice(policy, plain)
    for column in ("submit", "enqueued", "estimate", "start", "end", "state"):
        assert np.array_equal(getattr(known, column), getattr(jobs, column)), column


@pytest.mark.parametrize("policy", PLANNING)
def test_lost_reservations_change_only_what_comes_later(policy):
    """With a plan made anew, the past is the same and the mean wait nearly so; engines agree."""
    starts = []
    for plain in (False, True):
        jobs, known, now = twice(policy, plain)
        before = jobs.start <= now
        assert np.array_equal(known.start[before & (jobs.submit <= now)], jobs.start[before])
        assert np.array_equal(known.estimate, jobs.estimate)
        waits = [float(np.mean(one.start - one.submit)) for one in (jobs, known)]
        assert waits[1] == pytest.approx(waits[0], rel=0.1)
        starts.append(known.start.tolist())
    assert starts[0] == starts[1]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("estimates", ["exact", "1.5x", "last-two", "nearest:k=3"])
def test_estimates_go_on(estimates, plain):
    """Predictors hear of the past in order, and predict the future as if they had been there."""
    jobs, known, _ = twice("easy", plain, estimates=estimates, overrun="kill")
    for column in ("estimate", "start", "state"):
        assert np.array_equal(getattr(known, column), getattr(jobs, column)), column


#: The controller, and its oracle.
CONTROLLERS = (Slurm, BruteSlurm)


class Cut:
    """A run on a machine of nodes that is cut at a second, and what its scheduler knew then."""

    def __init__(self, seed, policy):
        rng = np.random.default_rng(seed)
        self.site = random_machine(rng)
        self.jobs = random_jobs(rng, self.site)
        self.now = int(rng.integers(5, 40))
        self.policy = policy
        self.whole = self.simulation(self.jobs.copy())
        everything = np.arange(len(self.jobs))
        self.whole.cluster.submit(everything, self.jobs.recorded_submit)
        self.whole.run(until=self.now + 1)
        scheduler: Any = self.whole.cluster.engine.scheduler
        self.known, parts = cut_at(self.whole.jobs, self.now)
        for column in (Column.PROCESSORS, Column.REQUESTED_TIME):  # as asked, not as granted
            here = np.setdiff1d(np.arange(len(self.jobs)), parts[2])
            self.known.column(column)[here] = self.jobs.column(column)[here]
        self.known.requests = self.jobs.requests
        self.running, self.waiting, self.over, self.later = parts
        turns = {run.row: turn for turn, run in enumerate(scheduler.ledger)}
        self.running = np.array(sorted(self.running.tolist(), key=turns.__getitem__), np.int64)
        self.phases, self.placed = None, {}
        for run in scheduler.ledger:
            self.placed[run.row] = Placed(run.partition, holding=run.holding)
        if policy in CONTROLLERS:
            state = scheduler.state
            self.phases = state.phases
            #: Passes that are left out, as nothing could start, come again after a cut.
            if policy is BruteSlurm:
                self.stuck = scheduler.wake(self.now) is None
            else:
                book, arrays = scheduler.book, self.whole.cluster.engine.arrays()
                site = book.site(arrays.jobs, arrays.state, arrays.ends)
                self.stuck = next_pass(site, self.now) == FOREVER
            for row, job in (state.waiting | state.running).items():
                before = self.placed.get(row, Placed())
                self.placed[row] = before._replace(eligible=job.eligible, reason=job.reason)
        self.whole.run()

    def simulation(self, jobs):
        """Return a simulation of jobs on the machine."""
        policy = self.policy if isinstance(self.policy, str) else self.policy()
        return simulation_of(jobs, self.site.cores, policy, machine=self.site, seed=1)

    def go_on(self, **known):
        """Return a simulation that went on from the cut, with this knowledge of it."""
        jobs = self.known.copy()
        model = self.simulation(jobs)
        begin_from(model, self.now, self.running, self.waiting, self.over, **known)
        model.cluster.submit(self.later, self.jobs.recorded_submit[self.later])
        return model.run()

    @property
    def runs_again(self):
        """Whether a job was stopped, whose earlier run no table of jobs has."""
        return bool(self.whole.cluster.attempts)


def ledger(model):
    """Return what jobs held when, but for how they were started."""
    scheduler: Any = model.cluster.engine.scheduler
    return [(run.row, run.start, run.end, run.partition, run.holding) for run in scheduler.ledger]


def goes_on(seed, by):
    """Whether a run of a controller could be cut; if so, check that it goes on exactly."""
    cut = Cut(seed, by)
    if cut.stuck or (cut.runs_again and cut.site.priority.weight_fair_share):
        return False
    model = cut.go_on(placed=cut.placed, phases=cut.phases)
    for column in ("start", "end", "state", "estimate", "processors"):
        mine, its = getattr(model.jobs, column), getattr(cut.whole.jobs, column)
        kept = cut.whole.jobs.state != State.REJECTED  # before the cut nobody knows of those
        assert np.array_equal(mine[kept], its[kept]), (seed, column)
    later = [run for run in ledger(cut.whole) if run[1] > cut.now]
    assert later == [run for run in ledger(model) if run[1] > cut.now], seed
    return len(cut.running) > 0 and len(cut.waiting) > 0


def begin_alike(seed):
    """Check that the controller and its oracle go on alike, whatever is known of them."""
    cuts = [Cut(seed, by) for by in CONTROLLERS]
    for known in ({}, {"placed": {}}, {"phases": cuts[0].phases}):
        models = [cut.go_on(**known) for cut in cuts]
        assert ledger(models[0]) == ledger(models[1]), (seed, known)
        assert np.array_equal(*(model.jobs.matrix for model in models)), seed


#: Machines with preemption, reservations, GPUs, arrays, begin times and limits among them.
FEW, MANY = range(8), range(8, 40)


@pytest.mark.parametrize("by", CONTROLLERS)
def test_slurm_goes_on_exactly(by):
    """With its phases, eligible times and nodes, the controller does the same as if it went on."""
    assert sum(goes_on(seed, by) for seed in FEW) > 1


@pytest.mark.slow
def test_slurm_goes_on_exactly_on_many_machines():
    """The same, and both alike whatever is known."""
    assert sum(goes_on(seed, by) for seed in MANY for by in CONTROLLERS) > 20
    for seed in MANY[:12]:
        begin_alike(seed)


def test_slurm_begins_as_brute_force():
    """Whatever is known, the controller seats and starts all jobs as its oracle does."""
    for seed in FEW[:2]:
        begin_alike(seed)


@pytest.mark.parametrize("policy", ["easy", "fair-share", "multi-queue:user-jobs=2"])
def test_policies_of_a_pool_go_on_on_nodes(policy):
    """Policies that know processors only go on exactly on nodes that are given."""
    for seed in FEW[:5]:
        cut = Cut(seed, policy)
        model = cut.go_on(placed=cut.placed)
        assert np.array_equal(model.jobs.start, cut.whole.jobs.start), seed


def test_nodes_by_name_are_kept():
    """A running job is seated on the nodes that are named, in its partition."""
    site = Machine(
        nodes=(NodeType(name="n[1-4]", cores=4),),
        partitions=(Partition(name="all", default=True), Partition(name="two", nodes=("n[3-4]",))),
    )
    jobs = table([(0, 6, 50), (0, 1, 50), (0, 1, 50), (5, 16, 10)])
    jobs.recorded_start[:3] = 1, 2, 3
    model = simulation_of(jobs, site.cores, "slurm", machine=site)
    placed = {0: Placed("all", ("n2", "n4")), 1: Placed("two")}
    begin_from(model, 10, np.array([0, 1, 2]), np.array([3]), placed=placed)
    found = [(part, {one.node + 1 for one in holding}) for _, _, _, part, holding in ledger(model)]
    assert found[0] == ("all", {2, 4})
    assert found[1][0] == "two"
    assert found[1][1] < {3, 4}
    assert found[2][0] == "all"
    engine = model.cluster.engine
    engine.advance()
    assert jobs.start.tolist()[:3] == [1, 2, 3]
    assert 53 <= jobs.start[3] <= 56  # the pass after the last of them has ended


def table(rows):
    """Return jobs of one user by submission, processors and run time."""
    jobs = JobTable()
    submit, processors, run = np.array(rows).T
    jobs.append(
        len(rows), number=np.arange(len(rows)) + 1, user=1, processors=processors, run_time=run,
        requested_time=run, recorded_submit=submit,
    )  # fmt: skip
    return jobs


def refused(model, **known):
    """Return the one line with which a state at 100 s is refused."""
    with pytest.raises(QuantityError) as error:
        begin_from(model, 100, **{"waiting": np.array([], int)} | known)
    return str(error.value)


def test_a_state_that_does_not_fit_is_one_line():
    """Unknown partitions and nodes, and nodes that are too small, are errors."""
    site = Machine(nodes=(NodeType(name="n[1-2]", cores=4),))
    jobs = table([(0, 4, 500), (0, 4, 500)])
    jobs.recorded_start[:] = 1
    for placed, message in (
        ({0: Placed("gpu")}, "running job 1 in partition 'gpu'"),
        ({0: Placed(nodes=("n9",))}, "running job 1: node 'n9'"),
        ({0: Placed(nodes=("n1",)), 1: Placed(nodes=("n1",))}, "running job 2: it needs 4"),
    ):
        model = simulation_of(jobs.copy(), site.cores, "slurm", machine=site)
        assert message in refused(model, running=np.array([0, 1]), placed=placed)


@pytest.mark.parametrize(
    ("column", "value", "rows", "message"),
    [
        ("recorded_start", 200, "running", "must have started after its submission"),
        ("recorded_submit", 200, "waiting", "must have been submitted by then"),
        ("processors", 20, "running", "they need 21 processors, and the machine has 16"),
        ("recorded_end", 200, "over", "must have ended by then"),
    ],
)
def test_contradictions_are_one_line(column, value, rows, message):
    """A job that starts, ends or is submitted later than now is an error that names it."""
    jobs = table([(0, 1, 50), (0, 1, 500), (0, 1, 50), (0, 1, 50)])
    jobs.recorded_start[:] = 1, 2, 3, UNKNOWN
    jobs.recorded_end[0] = 51
    parts = {"over": np.array([0]), "running": np.array([1, 2]), "waiting": np.array([3])}
    getattr(jobs, column)[parts[rows][0]] = value
    assert message in refused(Simulation(jobs, PROCESSORS, "easy"), **parts)


def test_what_can_never_run_is_rejected():
    """A waiting job larger than the machine is rejected, as on arrival; jobs left are cancelled."""
    jobs = table([(0, 20, 5), (0, 1, 5), (0, 1, 5)])
    jobs.recorded_end[1] = 8
    model = Simulation(jobs, PROCESSORS, "easy")
    begin_from(model, 10, np.array([], int), np.array([0, 2]), np.array([1]))
    model.run()
    expected = [State.REJECTED, State.CANCELLED, State.COMPLETED]
    assert expected == jobs.state.tolist()
