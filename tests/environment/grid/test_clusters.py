"""Clusters, alone and in grids: who goes where, hears, arrives and starts when; co-allocation."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hpcrowd import ClusterSpec, JobTable, State
from hpcrowd.agents.work.recorded import Work
from hpcrowd.agents.work.sessions import SessionDefinition
from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, SchedulerError, SimulationError
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.grid.das3 import das3_clusters
from hpcrowd.environment.grid.policies import GRID_POLICIES, fits, parts_of
from hpcrowd.grids import Grid, GridPolicy
from hpcrowd.scenarios.kinds.grids.components import split_wide
from hpcrowd.scenarios.kinds.grids.grid import GridConfig, Workloads, run_grid
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulations import both, recorded, simulation_of


class Script:
    """Submits what the script says when a unit has ended: row, cluster, delay; notes the ends."""

    def __init__(self, model, *steps):
        self.model = model
        self.steps = list(steps)
        self.heard: list[int] = []

    def go_on(self, now):
        """Submit the next jobs as one unit."""
        if self.steps:
            step = self.steps.pop(0)
            self.model.add_unit(self, np.array([row for row, _, _ in step]))
            for row, cluster, delay in step:
                self.model.clusters[cluster].submit(row, now + delay)

    def on_finished(self, unit, now):
        """Note it, continue."""
        self.heard.append(now)
        self.go_on(now)


@both
def test_recorded_unit_runs_on_another_cluster(make_jobs, plain):
    """A unit with recorded gaps may go to any cluster; its gaps stay, its run times scale."""
    jobs = make_jobs((10, 100, 1), (14, 50, 1))
    model = simulation_of(jobs, 4, plain=plain, others={"slow": ClusterSpec(4, speed=0.5)})
    user = Script(model)
    model.own_units(np.array([0, 2]), np.array([0, 1]), [user])
    model.clusters["slow"].submit_unit(0, 30)
    model.run()
    assert [30, 34] == jobs.submit.tolist()
    assert [230, 134] == jobs.end.tolist()
    assert ([230], [1, 1]) == (user.heard, jobs.cluster.tolist())


@both
def test_submission_elsewhere_in_the_past_is_an_error(make_jobs, plain):
    """A cluster on which nothing happens keeps time with the others."""
    jobs = make_jobs((0, 10, 1), (0, 10, 1))
    model = simulation_of(jobs, 1, plain=plain, others={"idle": ClusterSpec(1)})

    def late():
        model.clusters["idle"].submit(1, 9)

    model.cluster.submit(0, 0)
    user = Script(model)
    user.on_finished = lambda unit, now: late()
    model.add_unit(user, np.array([0]))
    with pytest.raises(SimulationError, match=r"9 s: in the past, it is already 10 s"):
        model.run()


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ((0,), "processors 0"),
        ((4, "soonest"), "scheduler 'soonest'"),
        ((4, "easy", 0.0), "speed 0.0"),
    ],
)
def test_clusters_that_cannot_be(make_jobs, spec, text):
    """A cluster that cannot be, or is not there, is reported with the value, in one line."""
    with pytest.raises(QuantityError, match=text):
        simulation_of(make_jobs((0, 1, 1)), 1, others={"other": ClusterSpec(*spec)})
    with pytest.raises(QuantityError, match="overrun 'maybe'"):
        simulation_of(make_jobs((0, 1, 1)), 1, overrun="maybe")
    model = simulation_of(make_jobs((0, 1, 1)), 1, others={"other": ClusterSpec(4)})
    with pytest.raises(QuantityError, match="cluster 'moon': not known; choose home, other"):
        model.submit(Script(model), np.array([0]), 0, cluster="moon")


# ---- brokers -----------------------------------------------------------------------------------


def two_clusters(jobs, policy="first-fit", *, plain=False, coallocation=False):
    """A grid of a cluster of 4 processors, and one of 2 with nodes twice as fast."""
    others = {"fast": ClusterSpec(2, "easy", 2.0)}
    spec = Grid(policy, coallocation)
    return simulation_of(jobs, 4, "easy", others=others, grid=spec, plain=plain)


def sized(*rows):
    """Jobs of (processors, run time), which ask for what they need."""
    jobs = JobTable()
    processors, run = np.array(rows).T
    jobs.append(len(rows), processors=processors, run_time=run, requested_time=run, user=1)
    return jobs


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative", "sjf", "fair-share"])
def test_components_go_past_local_queues(scheduler):
    """Whatever the policy of the clusters, all processors are accounted for."""
    jobs = sized(*[(2, 7), (4, 9), (1, 30), (1, 30), (2, 5), (4, 5)] * 8)
    model = simulation_of(
        jobs,
        4,
        scheduler,
        others={"more": ClusterSpec(4, scheduler)},
        grid=Grid("worst-fit", coallocation=True),
    )
    rows = np.arange(len(jobs)).reshape(-1, 6)
    for turn, row in enumerate(rows):
        model.clusters["home"].submit(row[[0, 1]], 10 * turn)
        model.clusters["more"].submit(row[4:], 10 * turn)
        broker_of(model).submit_together(row[2:4], 10 * turn + 1)
    model.run()
    assert (jobs.state == State.COMPLETED).all()
    assert (jobs.start[rows[:, 2]] == jobs.start[rows[:, 3]]).all()
    assert (jobs.cluster[rows[:, 2]] != jobs.cluster[rows[:, 3]]).all()
    for cluster in (0, 1):
        mine = jobs.cluster == cluster
        for time in np.unique(jobs.start[mine]):
            runs = mine & (jobs.start <= time) & (jobs.end > time)
            assert jobs.processors[runs].sum() <= 4


def test_bound_jobs_are_submitted_as_any():
    """Also with others, in any order, and as a unit."""
    jobs = sized((3, 10), (2, 10), (4, 10), (4, 10), (2, 10))
    jobs.recorded_submit[:] = [0, 0, 0, 5, 5]
    model = two_clusters(jobs, coallocation=True)
    for rows in ([0, 1], [3, 4]):
        broker_of(model).bind(rows)
    one, other = Script(model), Script(model)
    model.own_units(np.array([0, 3, 5]), np.arange(5), [one, other])
    broker_of(model).submit([2, 1, 0], 0)
    broker_of(model).submit_unit(1, 5)
    model.run()
    assert [0, 0, 10, 20, 20] == jobs.start.tolist()
    assert ([20], [30]) == (one.heard, other.heard)


def test_components_come_together_or_not_at_all():
    """Parts alone or at other seconds are reported, and grids without components."""
    jobs = sized(*[(2, 10)] * 4)
    broker = broker_of(two_clusters(jobs, coallocation=True))
    broker.bind([0, 1])
    broker.bind([0, 1])
    broker.bind([3])
    for rows, at in (([0], 0), ([1, 2], 0), ([0, 1], [0, 1])):
        with pytest.raises(SimulationError, match=r"rows \[0, 1\], which start together; submit"):
            broker.submit(rows, at)
    assert (jobs.submit == -1).all()
    with pytest.raises(SimulationError, match=r"job in row 1: .* part of only one job"):
        broker.bind([1, 2])
    with pytest.raises(SimulationError, match="the table has 4 jobs"):
        broker.bind([2, 4])

    model = two_clusters(sized((1, 1), (1, 1)))
    with pytest.raises(QuantityError, match="not enabled in this grid; use Grid"):
        broker_of(model).submit_together([0, 1], 0)
    model = simulation_of(sized((1, 1)), 4, estimates="last-two", grid=Grid(coallocation=True))
    with pytest.raises(QuantityError, match="its estimates come from a predictor"):
        broker_of(model).submit_together([0], 0)


def test_a_job_with_a_renounced_component_is_renounced():
    """All of it, and its user hears of it at once."""
    jobs = sized(*[(2, 10)] * 2)
    model = two_clusters(jobs, coallocation=True)
    broker_of(model).bind([0, 1])
    jobs.state[1] = State.RENOUNCED
    broker_of(model).submit([0, 1], 3)
    model.run()
    assert [State.RENOUNCED] * 2 == jobs.state.tolist()
    assert [-1, -1] == jobs.submit.tolist()


class Patient(GridPolicy):
    """Sends a job on when a minute has passed, to the last cluster."""

    name = "patient"

    def select(self, now, waiting, sites):
        """Name the first job."""
        return (waiting[0], sites[-1:]) if now >= 60 + waiting[0].submit else None


def test_a_policy_of_ones_own():
    """It is asked when something happens; one that forgets a job is reported."""
    jobs = sized((1, 10), (1, 90), (1, 10))
    model = two_clusters(jobs, Patient())
    model.clusters["home"].submit([1], 0)
    broker_of(model).submit([0], 0)
    model.clusters["home"].submit([2], 70)
    model.run(until=30)
    assert ([0], 2) == (broker_of(model).waiting.tolist(), jobs.cluster[0])
    model.run()
    assert 70 == jobs.start[0]
    assert "patient" in repr(broker_of(model))
    model = two_clusters(sized((1, 10)), Patient())
    broker_of(model).submit([0], 0)
    with pytest.raises(SchedulerError, match="patient: 1 job left waiting at 0 s"):
        model.run()


def test_das3_is_as_in_the_table():
    """796 cores on 272 nodes, and the speeds of the clocks."""
    clusters = das3_clusters()
    assert [340, 64, 164, 136, 92] == [one.processors for one in clusters.values()]
    assert [1, 13 / 12, 11 / 12, 1, 1] == pytest.approx([one.speed for one in clusters.values()])


# ---- jobs that are split -----------------------------------------------------------------------


def jobs_of(*rows):
    """Jobs of (user, submission, processors, run time), recorded as if they had never waited."""
    user, submit, processors, run = np.array(rows).reshape(-1, 4).T
    return recorded(submit, run, user=user, processors=processors, requested_time=2 * run + 1)


def run(
    tables,
    sizes,
    components,
    broker="first-fit",
    users="think-time",
    sessions="arrival:60m",
    share=0.5,
):
    """What comes of jobs of clusters of (processors, speed), and last of the grid."""
    clusters = {
        f"site {k}": {"processors": size, "speed": speed, "scheduler": "easy", "grid_share": share}
        for k, (size, speed) in enumerate(sizes)
    }
    config = GridConfig(
        clusters=clusters,
        grid={"model": "lublin"},
        broker=broker,
        users=users,
        components=components,
        sessions=sessions,
    )
    names = [*clusters, "grid"]
    loaded = Workloads(names, tables, Clock(), {}, Counter(), Counter())
    return run_grid(config, workloads=loaded)


some_jobs = st.lists(
    st.tuples(
        st.integers(1, 3), st.integers(0, 40), st.integers(1, 9), st.sampled_from([0, 1, 3, 8, 20])
    ),
    max_size=12,
).map(lambda rows: jobs_of(*sorted(rows, key=lambda row: row[1])))


@st.composite
def grids(draw, fewest=1, smallest=1):
    """Up to three clusters, the jobs of each and of the grid; somebody submits."""
    speeds = st.sampled_from([0.5, 1.0, 2.0])
    sizes = draw(st.lists(st.tuples(st.integers(smallest, 9), speeds), min_size=fewest, max_size=3))
    local = [draw(some_jobs) for _ in sizes]
    return [*local, draw(some_jobs.filter(len))], sizes


@pytest.mark.slow
@pytest.mark.parametrize("broker", sorted(GRID_POLICIES))
@settings(max_examples=30)
@given(
    grids(fewest=2, smallest=4),
    st.integers(3, 8),
    st.sampled_from(["rigid", "think-time", "adjusted"]),
    st.sampled_from(["arrival:10s", "arrival:job", "last:2s"]),
)
def test_components_start_together_on_any_grid(broker, grid, components, users, sessions):
    """On a cluster each, for the same time; no cluster holds too much, every job has ended."""
    tables, sizes = grid
    asked = sum(int(table.processors.sum()) for table in tables)
    try:
        found = run(tables, sizes, components, broker, users, sessions)
    except QuantityError:
        with pytest.raises(QuantityError, match=rf"^components {components}: a job of "):
            run(tables, sizes, components, broker, users, sessions)
        return
    jobs, account = found.jobs, found.parts["grid"].account["grid"]
    assert asked == jobs.processors.sum()
    assert State.UNFINISHED not in jobs.state
    rows = found.parts["grid"].rows
    first = rows if len(rows) else np.arange(len(jobs))
    count = np.bincount(first, minlength=len(jobs))
    assert account["jobs_split"] == (count > 1).sum()
    assert account["components"] == count[count > 1].sum()
    assert sum(len(table) for table in tables) == (count > 0).sum()
    for row in np.flatnonzero(count > 1):
        mine = np.flatnonzero(first == row)
        assert jobs.processors[mine].max() <= components < jobs.processors[mine].sum()
        for name in ("user", "session", "batch", "unit", "submit", "enqueued", "start", "end"):
            assert 1 == len(set(getattr(jobs, name)[mine].tolist())), name
        assert len(mine) == len(set(jobs.cluster[mine].tolist()))
        assert (jobs.state[mine] == State.COMPLETED).all()
    for number, (size, _) in enumerate(sizes):
        mine = jobs.over & (jobs.cluster == number)
        for time in set(jobs.start[mine].tolist()):
            runs = mine & (jobs.start <= time) & (jobs.end > time)
            assert jobs.processors[runs].sum() <= size


def test_a_wide_job_runs_on_two_clusters():
    """It waits until both have room, lasts as long as on the slower one, and is one job."""
    tables = [jobs_of((1, 0, 4, 50)), JobTable(), jobs_of((1, 10, 5, 100))]
    sizes = [(4, 1.0), (4, 2.0)]
    found = run(tables, sizes, 4, share=0)
    jobs = found.jobs
    assert [1, 2, 3] == jobs.number.tolist()
    assert [4, 3, 2] == jobs.processors.tolist()
    assert [0, 10, 10] == jobs.submit.tolist()
    assert [0, 50, 50] == jobs.start.tolist()
    assert [50, 150, 150] == jobs.end.tolist()
    assert {0, 1} == set(jobs.cluster[1:].tolist())
    grid, first, second = (
        found.parts["grid"].account[name] for name in ("grid", "site 0", "site 1")
    )
    assert (1, 1, 2) == (grid["jobs"], grid["jobs_split"], grid["components"])
    assert (1, 1) == (first["jobs_by_grid"], second["jobs_by_grid"])
    assert 40 == grid["wait_s"] == grid["held_s"]
    assert pytest.approx(5 * 100 / (8 * 150)) == grid["utilization"]
    assert 1 == run(tables, sizes, None, share=0).parts["grid"].account["grid"]["jobs_rejected"]


def grid_of(widths, sizes, components):
    """What comes of jobs of the grid that only differ in their width."""
    jobs = jobs_of(*[(7, k, width, 10) for k, width in enumerate(widths)])
    tables = [*[JobTable() for _ in sizes], jobs]
    return run(tables, [(size, 1.0) for size in sizes], components).parts["grid"].account["grid"]


@pytest.mark.parametrize(
    ("widths", "sizes", "components", "cure"),
    [
        ([8], [8, 8], 3, "makes 3 of up to 3, .* 8, 8 processors .*; give 4, or"),
        ([6], [6, 2, 2], 3, "makes 2 of up to 3, .*; give 2, or"),
        ([8, 7], [8], 7, "a job of 8 .* makes 2 of up to 4, .*; give 8, or"),
        ([9, 6], [6, 3, 3], 5, "a job of 6 .*; give 6, or|give 3, or"),
        # No other number helps all: one job runs whole only, another in four parts only.
        ([11, 13, 12], [12, 5, 5, 3], 2, "leave the setting out"),
    ],
)
def test_components_that_can_never_start_are_reported(widths, sizes, components, cure):
    """What, value, where, rule and cure; the cure works."""
    with pytest.raises(QuantityError, match=cure) as caught:
        grid_of(widths, sizes, components)
    told = str(caught.value)
    assert told.startswith(f"components {components}: a job of ")
    assert ", of user 7 of grid, makes " in told
    other = told.partition("give ")[2].partition(",")[0]
    if "leave" not in cure:
        grid_of(widths, sizes, int(other))


@pytest.mark.parametrize(
    ("widths", "sizes", "components", "rejected", "split"),
    [([6, 8], [6, 4, 4], 5, 0, 2), ([12, 20], [12, 5, 5, 5], 5, 0, 2), ([9, 6], [4, 4], 3, 1, 1)],
)
def test_jobs_too_wide_in_any_case_are_rejected_as_ever(widths, sizes, components, rejected, split):
    """Equal components of 9 processors fit no two clusters of 4; such a job counts once."""
    grid = grid_of(widths, sizes, components)
    assert (rejected, len(widths) - rejected) == (grid["jobs_rejected"], grid["jobs"])
    assert split == grid["jobs_split"]


@given(st.integers(1, 200), st.integers(1, 200))
def test_components_are_few_and_equal(processors, most):
    """As few as can be, none larger than allowed, differing by at most one."""
    parts = parts_of(processors, most)
    assert processors == sum(parts)
    assert max(parts) <= most
    assert max(parts) - min(parts) <= 1
    assert (len(parts) - 1) * most < processors


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.lists(st.integers(1, 6), max_size=4))
def test_fitting_is_what_trying_all_ways_finds(parts, sizes):
    """Each component on its own cluster."""
    ways = permutations(sizes, len(parts))
    assert any(all(p <= s for p, s in zip(parts, way, strict=True)) for way in ways) == fits(
        parts, sizes
    )


def test_sessions_and_batches_stay(subtests):
    """Components of a job without run time are one session and one batch, whatever the cut."""
    for text in ("arrival:job", "arrival:60m", "last:10s", "max:0s"):
        with subtests.test(text):
            jobs = jobs_of((1, 0, 6, 0), (1, 0, 2, 5), (2, 3, 7, 0), (1, 9, 6, 4))
            work = Work.of(jobs, SessionDefinition.parse(text))
            split = split_wide(work, np.array([True, True, False, True]), 3, [4, 4])
            assert [[0, 1], [4, 5]] == [rows.tolist() for rows in split.rows]
            assert [0, 0, 2, 3, 4, 4] == split.first_of.tolist()
            assert [3, 3, 2, 7, 3, 3] == split.jobs.processors.tolist()
            before, after = work.sessions, split.work.sessions
            assert len(before) == len(after)
            assert before.batches == after.batches
            for name in ("session", "batch"):
                old = getattr(jobs, name)[[0, 0, 1, 2, 3, 3]]
                assert old.tolist() == getattr(split.jobs, name).tolist()
            place = np.repeat(np.arange(len(after)), np.diff(after.session_first))
            assert place.tolist() == split.jobs.session[after.rows].tolist()
            assert [6, 2, 7, 6] == jobs.processors.tolist(), "the first table is as it was"
