"""Grids whose clusters change: stories, and an independent simulator, compiled and plain."""

import os
from typing import Any

import numpy as np
import pytest
from hpcrowd import ClusterSpec, JobTable, Simulation, State
from hpcrowd.analysis.pictures.platform_marks import marks_of
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.platform.part import Platform
from hpcrowd.environment.streams import Streams
from hpcrowd.grids import Grid
from hpcrowd.platform import Failures, Maintenance, NodesDown, Resize, SpeedChange
from hpcrowd.scenarios.kinds.grids.grid import GridConfig, read_grid, run_grid

from tests.environment.grid.grid_cases import BROKERS
from tests.environment.grid.grid_oracle import (
    ANNOUNCE,
    CLOSE,
    DOWN,
    RESUBMIT,
    SIZE,
    Change,
    Job,
    Node,
    Oracle,
)

#: Random cases of the slow tests.
MANY = int(1000 * float(os.environ.get("HPCROWD_ATTACK", "1")))

Case = tuple[list[Job], list[int], list[list[Any]], dict[str, Any], float]


class Fixed:
    """A random stream that always draws the same number."""

    def __init__(self, value):
        self.value = value

    def random(self):
        """Draw it."""
        return self.value


def simulation(
    jobs,
    sizes,
    changes,
    broker="first-fit",
    *,
    policies=("fcfs", "fcfs", "fcfs"),
    plain=False,
    coallocation=False,
):
    """A grid of clusters with changes."""
    clusters = {
        f"site {place}": ClusterSpec(size, policies[place]) for place, size in enumerate(sizes)
    }
    parts = [Platform(changes[place], RESUBMIT, f"site {place}") for place in range(len(sizes))]
    return Simulation(jobs, clusters, plain=plain, parts=[*parts, Grid(broker, coallocation)])


def played(jobs, sizes, changes, **how):
    """What happens to every row."""
    table = JobTable()
    groups = []
    for job in jobs:
        times = {"run_time": job.run, "requested_time": job.request}
        groups.append([int(table.append(1, processors=need, **times)[0]) for need in job.parts])
    together = any(len(group) > 1 for group in groups)
    model = simulation(table, sizes, changes, coallocation=together, **how)
    places = [*model.clusters, "grid"]
    for job, rows in zip(jobs, groups, strict=True):
        site: Any = model.place(places[job.to])
        if len(rows) > 1:
            site.submit_together(rows, job.at)
        else:
            site.submit(rows, job.at)
    model.run()
    found = {name: getattr(table, name).tolist() for name in ("start", "end", "cluster", "submit")}
    return {**found, "state": [State(state).name for state in table.state.tolist()]}


def steps_of(changes):
    """The same changes for the independent simulator."""
    found = []
    for one in changes:
        if isinstance(one, NodesDown):
            found.append(Change(one.at, DOWN, one.processors, one.jobs, one.until))
        elif isinstance(one, Resize):
            found.append(Change(one.at, SIZE, one.processors))
        else:
            announced = max(0, one.start - one.announced)
            found.append(Change(announced, ANNOUNCE, one.start, until=one.end))
            found.append(Change(one.start, CLOSE, 0, one.jobs, one.end))
    return found


def case(seed):
    """A random grid; ties are frequent, and outages at seconds at which jobs end."""
    rng = np.random.default_rng([20, seed])
    clusters = int(rng.integers(1, 4))
    sizes = rng.integers(1, 9, clusters).tolist()
    parts = bool(rng.random() < 0.3)
    span = int(rng.choice([5, 30, 100]))
    jobs = []
    for _ in range(int(rng.integers(1, 16))):
        run = int(rng.choice([0, 1, 5, 10, 30]))
        request = max(run + int(rng.integers(-4, 6)), 0)
        to = int(rng.integers(0, clusters)) if rng.random() < 0.4 else clusters
        wide = parts and to == clusters and rng.random() < 0.5
        count = int(rng.integers(2, clusters + 2)) if wide else 1
        needs = rng.integers(1, 5 if wide else 10, count).tolist()
        at = int(rng.integers(0, span)) // 5 * 5
        # Components take as long as requested when speeds are equal, so all estimates agree.
        jobs.append(Job(at, run, request, tuple(needs), to))
    fates = ["requeue", "resubmit", "fail"]
    changes: list[list[Any]] = []
    for size in sizes:
        mine: list[Any] = []
        for _ in range(int(rng.integers(0, 3))):
            at = int(rng.integers(0, span * 2)) // 5 * 5
            until = at + int(rng.integers(1, 40)) if rng.random() < 0.8 else None
            processors = int(rng.integers(1, size + 1))
            mine.append(NodesDown(at, until, processors, str(rng.choice(fates))))
        for at in rng.choice(span * 2, int(rng.integers(0, 3)), replace=False).tolist():
            mine.append(Resize(at // 2 * 2 + len(mine) % 2, int(rng.integers(size, 12))))
        if rng.random() < 0.3:
            start = int(rng.integers(1, span * 2))
            end, announced = start + int(rng.integers(1, 40)), int(rng.integers(0, 40))
            fate = str(rng.choice([*fates, "run"]))
            mine.append(Maintenance(start, end, announced, fate))
        if rng.random() < 0.5:  # shrink, but not below what may be down
            down = sum(one.processors for one in mine if isinstance(one, NodesDown))
            mine = [one for one in mine if not isinstance(one, Resize)]
            mine.append(
                Resize(int(rng.integers(0, span * 2)), max(1, int(rng.integers(1, 9)), down))
            )
        changes.append(mine)
    how = {
        "broker": str(rng.choice(BROKERS)),
        "policies": [str(rng.choice(["fcfs", "easy"])) for _ in sizes],
    }
    return jobs, sizes, changes, how, float(rng.random())


def check(case, patch):
    """Compare a case, compiled and plain; return what happens, None if it is not possible."""
    jobs, sizes, changes, how, draw = case
    patch.setattr(Streams, "generator", lambda self, *name: Fixed(draw))
    try:
        compiled = played(jobs, sizes, changes, **how)
    except QuantityError:
        return None
    nodes = [
        Node(size, policy, steps_of(mine))
        for size, policy, mine in zip(sizes, how["policies"], changes, strict=True)
    ]
    oracle = Oracle(jobs, nodes, how["broker"], draw)
    oracle.run()
    expected = {
        "start": oracle.start,
        "end": oracle.end,
        "cluster": oracle.place,
        "submit": oracle.submit,
        "state": oracle.state,
    }
    assert expected == compiled, case
    assert expected == played(jobs, sizes, changes, plain=True, **how), case
    return compiled


@pytest.mark.parametrize(
    "seeds", [range(120), pytest.param(range(1000, 1000 + MANY), marks=pytest.mark.slow)], ids=str
)
def test_changing_grids_equal_an_independent_simulator(monkeypatch, seeds):
    """Every job starts, ends and is stopped as in a simulator that shares nothing with this one."""
    found = [check(case(seed), monkeypatch) for seed in seeds]
    assert sum(one is not None for one in found) > len(seeds) // 3


def one(at, run, *parts, to):
    """A job that asks for its run time."""
    return Job(at, run, run, parts, to)


CLOSED = [[Maintenance(300, 600)], [Maintenance(300, 500)]]
WINDOW = Maintenance(5, 40, 0, "run")

#: Jobs, sizes of the clusters, their changes, and when the jobs start.
STORIES: dict[str, tuple[list[Job], list[int], list[list[Any]], list[int]]] = {
    **{f"components stop and start together: {fate}": (
        [one(0, 30, 3, 2, to=2), one(11, 5, 2, to=1)], [4, 2],
        [[NodesDown(10, 60, 4, fate)], []], [start, start, 11])
        for fate, start in (("requeue", 60), ("resubmit", 60), ("fail", 0))},
    "components do not run into maintenance": (
        [one(0, 30, 3, 2, to=2)], [4, 2], [[Maintenance(20, 50, 20)], []], [50, 50]),
    "a stopped job of the grid waits in the queue of its cluster, and no other is sent there": (
        [one(0, 1000, 4, to=2), one(50, 0, 4, to=2), one(160, 100, 3, to=2), one(20, 150, 4, to=1)],
        [4, 4], [[NodesDown(100, until=5000)], []], [5000, 170, 170, 20]),
    "a held job waits for a cluster to grow, under any broker": (
        [one(0, 200, 10, to=0), one(10, 10, 8, to=2)], [10, 1],
        [[WINDOW, Resize(30, 3), Resize(5000, 10)], []], [0, 5000]),
    "a job waits for the first cluster that opens, under any broker": (
        [one(400, 10, 8, to=2)], [10, 9], CLOSED, [500]),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_stories(name, monkeypatch):
    """The broker knows what clusters that change can do; all as in the independent simulator."""
    jobs, sizes, changes, start = STORIES[name]
    how = {"policies": ["fcfs"] * len(sizes)}
    for broker in BROKERS if "any broker" in name else BROKERS[:1]:
        found = check((jobs, sizes, changes, how | {"broker": broker}, 0.0), monkeypatch)
        assert found is not None
        assert start == found["start"], broker


def test_components_need_clusters_of_constant_speed():
    """Components take equally long, which a change of speed would break."""
    model = simulation(JobTable(), [4, 4], [[SpeedChange(5, 2.0)], []], coallocation=True)
    broker = broker_of(model)
    assert broker is not None
    with pytest.raises(QuantityError, match="co-allocation on site 0: its speed changes"):
        broker.bind([])


@pytest.mark.parametrize("plain", [False, True])
def test_random_failures_do_not_keep_a_grid_running(plain):
    """A job that no cluster can hold any more does not wait for ever while nodes fail."""
    changes = [[Failures(5.0, 2.0), Resize(3, 2)], [Failures(7.0, 3.0)]]
    jobs = [one(0, 10, 8, to=0), one(1, 10, 8, to=2), one(2, 10, 1, to=2)]
    found = played(jobs, [8, 1], changes, plain=plain)
    assert ["UNFINISHED", "COMPLETED"] == found["state"][1:]


FILE = """
[clusters.north]
processors = 20
model = "lublin"
load = 0.5
days = 1

[clusters.south]
processors = 10

[grid]
model = "lublin"
days = 1
load = 0.4

[platform]
changes = [
{do = "resize", cluster = "south", at = 40000, processors = 5},
{do = "maintain", cluster = "north", start = 20000, end = 30000},
]
"""


def test_a_grid_file_has_changes_of_the_platform(tmp_path):
    """Each change happens on its cluster; totals, marks and the configuration show it."""
    (tmp_path / "two.toml").write_text(FILE)
    run = run_grid(read_grid(str(tmp_path / "two.toml")))
    assert 10000 == run.parts["platform"].account["north"]["maintenance_s"]
    assert [[40000, 10, 5]] == run.parts["platform"].account["south"]["sizes"]
    jobs = run.jobs
    began = jobs.start[(jobs.cluster == 0) & (jobs.start >= 0)]
    assert not ((began >= 20000) & (began < 30000)).any(), "closed"
    texts = [mark.text for mark in marks_of(run)]
    assert ["north: maintenance", "south: 10 to 5 processors"] == texts
    again = GridConfig.configure(
        **{name: value for name, value in run.configuration.items() if name != "files_sha256"}
    )
    assert (run_grid(again).jobs.start == jobs.start).all(), "repeated from its configuration"


def test_a_file_of_changes_is_an_option(tmp_path, monkeypatch):
    """It is found from here, replaces those of the grid's file, and names its clusters."""
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "two.toml").write_text(FILE)
    down = '[[changes]]\ndo = "down"\nat = 50\nuntil = 60\ncluster = "CLUSTER"\n'
    (tmp_path / "down.toml").write_text(down.replace("CLUSTER", "south"))
    (tmp_path / "wrong.toml").write_text(down.replace("CLUSTER", "east"))
    monkeypatch.chdir(tmp_path)
    run = run_grid(read_grid("grids/two.toml", platform="down.toml"))
    assert 10 == run.parts["platform"].account["south"]["down_processor_s"]
    assert "down.toml" in run.configuration["files_sha256"]
    with pytest.raises(
        QuantityError, match=r"wrong\.toml: .*'east': no such cluster; choose north"
    ):
        run_grid(read_grid("grids/two.toml", platform="wrong.toml"))
    speed = FILE.removesuffix("]\n") + '{do = "speed", cluster = "north", at = 5, factor = 2}\n]\n'
    (tmp_path / "speed.toml").write_text(speed)
    with pytest.raises(QuantityError, match="components 4: the platform has a change of speed"):
        read_grid("speed.toml", components=4)
