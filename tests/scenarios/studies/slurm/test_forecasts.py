"""Forecasts of a recorded Slurm and ours: what was known, what was said, how they are judged."""

import numpy as np
import pytest
from hpcrowd.analysis.forecast.conformal import LEVELS
from hpcrowd.analysis.forecast.futures import Outset
from hpcrowd.environment.clock import WEEK, Clock
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.holds.rules import Condition, Parent
from hpcrowd.environment.jobs import UNKNOWN, JobTable
from hpcrowd.environment.machine.model import (
    Machine,
    NodeType,
    Partition,
    Preempt,
    SchedulingSettings,
)
from hpcrowd.environment.requests import Ask, Requests
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.schedulers.slurm.policy import Slurm
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.state.state import ClusterState, begin_from, check_state
from hpcrowd.scenarios.studies.slurm import forecasts, study
from hpcrowd.scenarios.studies.slurm.records import Key, load

from tests.environment.schedulers.slurm.brute import BruteSlurm
from tests.support.simulations import simulation_of

SITE = Machine(
    nodes=(NodeType(name="n[1-4]", cores=8),), partitions=(Partition(name="all", default=True),)
)


def table(*processors, recorded_start=0, **columns):
    """Return jobs that were submitted at 0 s, one for each number."""
    jobs, number = JobTable(), np.arange(len(processors)) + 1
    times = {"recorded_submit": 0, "recorded_start": recorded_start}
    jobs.append(len(processors), number=number, processors=processors, **times, **columns)
    return jobs


def running(*processors):
    """Return jobs that run since 0 s for 1,000 s."""
    return table(*processors, run_time=1000, requested_time=2000)


@pytest.mark.parametrize("by", [Slurm, BruteSlurm])
def test_nodes_without_shares(by):
    """Jobs of several nodes share what is left by those of one, whoever started first."""
    jobs = running(8, 4, 5, 6, 16)  # with 7 + 1 for the first job others would have no room
    placed = {
        0: Placed("all", ("n1", "n2", "n3")),
        1: Placed("all", ("n2", "n3", "n4")),
        2: Placed("all", ("n1",)),
        3: Placed("all", ("n2",)),
    }
    jobs.recorded_start[4] = UNKNOWN
    model = simulation_of(jobs, 32, by(), machine=SITE)
    begin_from(model, 10, np.arange(4), np.array([4]), placed=placed)
    policy = model.cluster.engine.scheduler
    assert isinstance(policy, by)
    held = {job.row: job.holding for job in policy.state.running.values()}
    used = np.zeros(4, int)
    for row, holding in held.items():
        assert {f"n{share.node + 1}" for share in holding} == set(placed[row].nodes)
        assert sum(share.cores for share in holding) == jobs.processors[row]
        for share in holding:
            used[share.node] += share.cores
    assert used.max() <= 8
    model.run()
    assert [1000, 1000, 1000, 1000] == jobs.end[:4].tolist()
    with pytest.raises(QuantityError, match="job 4: it needs 6 processors, and nodes n1 have no"):
        begin_from(
            simulation_of(running(8, 4, 5, 6), 32, by(), machine=SITE), 10,
            np.arange(4), np.zeros(0, int), placed=placed | {3: Placed("all", ("n1",))},
        )  # fmt: skip


def test_dependent_jobs_join_the_queue():
    """Held jobs start once those that they wait for are over as asked; others never do."""
    start = [0, -1, -1, -1, -1]
    jobs = table(8, 8, 8, 8, 8, recorded_start=start, user=1, requested_time=500)
    awaits = {
        1: (Parent(0, Condition.ANY),),
        2: (Parent(1, Condition.OK),),
        3: (Parent(0, Condition.NOT_OK),),
    }
    held = dict.fromkeys((1, 2, 3, 4), "Dependency")
    state = ClusterState(jobs, 10, Clock(), 32, held=held)
    outset = Outset(
        state, 5000, scheduler=Slurm(), users="none", machine=SITE, overrun="kill", awaits=awaits
    )
    future = outset.simulate(0)
    assert future.start[1] >= future.end[0] > 10
    assert future.start[2] >= future.end[1]
    assert [UNKNOWN, UNKNOWN] == future.start[3:].tolist()
    alone = Outset(state, 5000, scheduler=Slurm(), users="none", machine=SITE, overrun="kill")
    assert [UNKNOWN] * 4 == alone.simulate(0).start[1:].tolist()


def test_the_first_start_of_a_job_that_is_stopped():
    """A job that makes way for another started when it started first."""
    site = Machine(
        nodes=(NodeType(name="n1", cores=8),),
        partitions=(
            Partition(name="high", default=True, priority_tier=2),
            Partition(name="low", priority_tier=1, preempt_mode=Preempt.REQUEUE),
        ),
        scheduling=SchedulingSettings(preempt_type="partition", preempt_mode=Preempt.REQUEUE),
    )
    who = {"user": [1, 2, 1], "queue": [0, 1, 0]}
    jobs = table(8, 8, 8, recorded_start=[0, -1, -1], requested_time=[500, 5000, 500], **who)
    jobs.names = {"queue": {0: "high", 1: "low"}}
    jobs.requests = Requests(3)
    jobs.requests.set(2, Ask.BEGIN, 1500)
    state = ClusterState(jobs, 10, Clock(), 8)
    outset = Outset(state, 20_000, scheduler=Slurm(), users="none", machine=site, overrun="kill")
    ran: list[Simulation] = []
    futures = [outset.simulate(number, watch=ran.append) for number in range(8)]
    first = np.array([one.start[1] for one in futures])
    last = np.array([one.jobs.start[1] for one in ran])
    assert (first < 700).all()
    assert (last[last != first] > 1500).all()
    assert 0 < (last != first).sum() < 8


def made_case(moment, came, spread=100.0):
    """Return a case whose futures are around 1,000 s, with ends a spread away."""
    futures = np.linspace(1000 - spread, 1000 + spread, 21)[:, None] + np.zeros(len(came))
    keys = tuple(Key(job, UNKNOWN) for job in range(len(came)))
    return forecasts.Case(moment, keys, np.full(len(came), 1500), np.array(came), futures)


def test_recalibration_knows_only_what_has_come():
    """Bounds of a case follow from earlier cases, as far as they are known at its moment."""
    before = [made_case(at * 900, [3000, 3500, 2500]) for at in range(40)]
    cases = [made_case(at * 900, [3000 + at, 3500, UNKNOWN]) for at in range(6)]
    bounds = forecasts.recalibrated(cases, before)
    assert np.array_equal(cases[0].bounds, forecasts.recalibrated(cases, [])[0])
    assert bounds[0][0, 2] > 2000  # the median has learned from the run before
    changed = [*cases[:3], made_case(2700, [9999, 9999, 9999]), *cases[4:]]
    # At 3,600 s nobody knows more of the jobs of 2,700 s than that they wait.
    for place in range(5):
        assert np.array_equal(bounds[place], forecasts.recalibrated(changed, before)[place])
    sooner = [*cases[:3], made_case(2700, [10, 10, 10]), *cases[4:]]
    assert np.array_equal(bounds[3], forecasts.recalibrated(sooner, before)[3])
    assert not np.array_equal(bounds[4], forecasts.recalibrated(sooner, before)[4])


def test_scores_by_class():
    """Errors of both, shares within bounds, and jobs left out, by what Slurm said."""
    case = made_case(0, [1000, 1200, UNKNOWN, 1050])
    far = made_case(900, [1040])
    far.said[:] = 9000
    other = made_case(0, [1000])
    cases = {("fresh", "a"): [case, far], ("fresh", "b"): [other]}
    found = forecasts.Forecasts(cases, {"a": "b", "b": "a"}, 21)
    scores = found.scores("fresh")
    near = scores["a", "below 30 min"]
    assert (3, 1) == (near.jobs, near.missing)
    assert near.slurm == pytest.approx(((500 + 300 + 450) / 3, 450, (500 + 300 + 450) / 3))
    assert near.ours == pytest.approx(((0 + 200 + 50) / 3, 50, -(0 + 200 + 50) / 3))
    assert near.cover50[0] == pytest.approx(2 / 3)
    assert near.cover90[0] == pytest.approx(2 / 3)
    assert ("a", "30 min to 2 h") not in scores
    assert scores["a", "beyond 2 h"].slurm == pytest.approx((7960, 7960, 7960))
    assert 4 == scores["all", "below 30 min"].jobs
    assert {len(study.Slurm.declared["forecasts"]["heading"])} == {len(row) for row in found.rows()}
    assert 0.5 == LEVELS[2]


def test_a_run_alone():
    """Without a run of another plan there is only who knows nothing before, raw at first."""
    cases = {("fresh", "a"): [made_case(0, [1000, 2000])]}
    found = forecasts.Forecasts(cases, {}, 21)
    assert {("a", "below 30 min"), ("all", "below 30 min")} == set(found.scores("fresh"))
    assert {} == found.scores("week")
    assert ["nothing", "nothing"] == [row[0] for row in found.rows()]
    score = found.scores("fresh")["a", "below 30 min"]
    assert 0.5 == score.cover90[0] == score.cover90[1]


def test_runs_without_what_slurm_expected():
    """It is said before the work begins that there is nothing to compare with."""
    with pytest.raises(TraceError, match="need a recorded run with samples of squeue --start"):
        forecasts.forecasts_of([])


def test_the_runs_of_one_plan(referee_runs):
    """None is the week before another."""
    runs, before = forecasts.weeks_before([load(referee_runs / f"run{name}") for name in "AB"])
    assert (["runA", "runB"], {}) == ([one.name for one in runs], before)


@pytest.fixture(scope="module")
def scene(referee_runs):
    """Run C with run A a week before."""
    return forecasts.Scene(load(referee_runs / "runC"), load(referee_runs / "runA"))


def test_what_was_known(scene):
    """A state has the jobs of the sample, those that were over, and those of the week before."""
    record = scene.record
    moments = sorted(scene.expected)
    assert len(moments) > 30
    # Tasks that wait together have the start of their line in ``squeue --start``.
    starts = [(one, key) for one in scene.expected.values() for key in one]
    assert all(one[key] > 0 for one, key in starts)
    following = [one.get(Key(key.plan, key.task + 1)) == one[key] for one, key in starts]
    assert 20 < sum(following)
    for moment in moments[2::9]:
        known = scene.known_at(moment)
        state, jobs = known.state, known.state.jobs
        assert [] == [note for note in check_state(state) if "run" in note and "more" in note]
        queue = {one.key: one for one in scene.samples[moment]}
        waiting = {known.key_of[row] for row in state.waiting.tolist()}
        assert {key for key, one in queue.items() if one.state == "PENDING"} == waiting
        for row in state.running.tolist():
            one = queue[known.key_of[row]]
            tries = [run for run in record.jobs[one.key] if run.start == one.expected]
            assert tries
            assert len(state.placed[row].nodes) == len(tries[0].nodes)
            assert jobs.recorded_start[row] == one.expected + WEEK
        # Nothing of a later second is known.
        assert jobs.recorded_end.max() <= state.now
        assert (jobs.run_time[np.setdiff1d(np.arange(len(jobs)), state.over)] == UNKNOWN).all()
        week_before = [row for row in state.over.tolist() if row not in known.key_of]
        assert len(week_before) > 500
        assert jobs.recorded_end[week_before].max() < WEEK
        assert set(state.held.values()) <= forecasts.HELD
        for row, parents in known.awaits.items():
            line = record.lines[known.key_of[row].plan]
            assert {known.key_of[one.row].plan for one in parents} == {line.parent}


@pytest.mark.slow
def test_nearer_than_slurm_itself(scene):
    """At two moments of a run, with few futures, ours are much nearer beyond two hours."""
    cases = [forecasts.case_at(scene, moment, "rigid", 4) for moment in (9001, 18001)]
    slurm, ours = [], []
    for case in cases:
        far = (case.came != UNKNOWN) & (case.said > 7200)
        slurm += (case.said - case.came)[far].tolist()
        ours += (case.bounds[far, 2] - case.came[far]).tolist()
    assert len(ours) > 5
    assert np.abs(ours).mean() < 0.6 * np.abs(slurm).mean()
    again = forecasts.case_at(scene, cases[0].moment, "rigid", 4)
    assert np.array_equal(cases[0].futures, again.futures)
