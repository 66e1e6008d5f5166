"""Clusters in lock-step, with a broker or without, against an oracle, and what must hold of any."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import GridSpec, JobTable, Simulation, State
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.grid.grid_cases import (
    Crowd,
    Place,
    Users,
    brokers,
    crowds,
    foretold,
    overruns,
    places,
    play,
    rooms,
)

schedulers = places("fcfs", "easy", "recorded", "own")


def crowd_of(users: Users, clusters: list[Place], broker: str | None) -> Crowd:
    """Users who wander over all clusters, and the grid if there is one."""
    return Crowd(users, len(clusters) + (broker is not None))


crowded = given(crowds, places("fcfs", "own", "easy"), brokers, overruns, st.booleans(), rooms)


@settings(max_examples=60)
@crowded
def test_engines_equal_the_oracle(
    users: Users, clusters: list[Place], broker: str | None, overrun: str, plain: bool, room: int
) -> None:
    """No cluster is ever ahead of another: all is as if one merged simulation had done it."""
    expected = foretold(crowd_of(users, clusters, broker), clusters, broker, overrun)
    crowd = crowd_of(users, clusters, broker)
    assert expected == play(crowd, clusters, broker, overrun, plain=plain, room=room)


ways = st.fixed_dictionaries({
    "broker": brokers,
    "overrun": overruns,
    "estimates": st.sampled_from(["requested", "exact", "1.5x"]),
})  # fmt: skip
pieces = st.fixed_dictionaries({
    "stops": st.lists(st.integers(0, 6), max_size=8).map(lambda one: np.cumsum(one, dtype=int)),
    "room": rooms,
    "events": st.integers(1, 4),
    "plain": st.booleans(),
})  # fmt: skip
played = given(
    crowds, places("fcfs", "easy", "conservative", "sjf", "recorded", "own"), ways, pieces
)


@settings(max_examples=60)
@played
def test_compiled_equals_plain_with_stops_on_the_way(
    users: Users, clusters: list[Place], way: dict[str, Any], how: dict[str, Any]
) -> None:
    """Under any schedulers, in one piece or several, also when arrays have to grow."""
    expected = play(crowd_of(users, clusters, way["broker"]), clusters, **way, plain=True)
    assert expected == play(crowd_of(users, clusters, way["broker"]), clusters, **way, **how)


#: The same for many more crowds.
test_engines_equal_the_oracle_often = pytest.mark.slow(
    settings(max_examples=500)(crowded(test_engines_equal_the_oracle.hypothesis.inner_test))
)
test_compiled_equals_plain_often = pytest.mark.slow(
    settings(max_examples=500)(
        played(test_compiled_equals_plain_with_stops_on_the_way.hypothesis.inner_test)
    )
)


@settings(max_examples=50)
@given(crowds, schedulers, overruns, st.booleans())
def test_who_never_leaves_does_not_notice_the_others(
    users: Users, clusters: list[Place], overrun: str, plain: bool
) -> None:
    """Clusters with users of their own do, job for job, what each does in a simulation alone."""
    count = len(clusters)
    homes = {user: user % count for user in range(len(users))}
    crowd = Crowd(users, count, homes)
    together, log = play(crowd, clusters, None, overrun, plain=plain)
    for number, place in enumerate(clusters):
        alone = Crowd(users, 1, dict.fromkeys(homes, 0))
        for row, job in enumerate(alone.jobs):
            times = job.run, max(job.run + job.slack, 0)
            run, request = (max(floor(t / place.speed + 0.5), 1) if t else 0 for t in times)
            alone.jobs[row] = job._replace(run=run, slack=request - run)
        alone.users = alone.users[number::count]
        rows = [row for user in alone.users for _, unit in user.units for row in unit]
        found, heard = play(alone, [place], None, overrun, plain=plain)
        for name in ("submit", "start", "end", "state"):
            expected = [found[name][row] for row in rows]
            assert expected == [together[name][row] for row in rows]
        assert heard == [(now, user) for now, user in log if user % count == number]


@settings(max_examples=50)
@given(crowds, schedulers, brokers, overruns, st.booleans())
def test_jobs_in_are_jobs_out_and_fit(
    users: Users, clusters: list[Place], broker: str | None, overrun: str, plain: bool
) -> None:
    """Every job ends eventually, every user hears of every unit, no cluster holds too much."""
    if broker is None:
        clusters = [one._replace(scheduler="easy") for one in clusters]
    crowd = crowd_of(users, clusters, broker)
    found, log = play(crowd, clusters, broker, overrun, plain=plain)
    assert sum(len(steps) for steps in users) == len(log)
    assert State.UNFINISHED not in found["state"]
    assert [job.renounced for job in crowd.jobs] == [place == -1 for place in found["cluster"]]
    submit, enqueued, start, end, cluster, _ = (np.array(found[name]) for name in found)
    need = np.array([job.processors for job in crowd.jobs])
    ran = start >= 0
    assert (submit[ran] <= enqueued[ran]).all()
    assert (enqueued[ran] <= start[ran]).all()
    for number, place in enumerate(clusters):
        mine = ran & (cluster == number)
        for time in set(start[mine].tolist()):
            assert need[mine & (start <= time) & (end > time)].sum() <= place.processors


@settings(max_examples=50)
@given(crowds, places("fcfs", "easy"), brokers.filter(bool), st.booleans())
def test_a_grid_of_one_cluster_is_the_cluster(
    users: Users, clusters: list[Place], broker: str, plain: bool
) -> None:
    """Who submits to the cluster does not notice the broker; a broker that sends on at once too."""
    home, everybody = clusters[:1], range(len(users))
    alone, local, grid = (
        play(Crowd(users, 2, dict.fromkeys(everybody, place)), home, by, plain=plain)
        for place, by in ((0, None), (0, broker), (1, broker))
    )
    assert alone == local
    if broker in ("least-loaded", "fastest-completion"):
        assert alone[1] == grid[1]
        for name in ("submit", "enqueued", "start", "end", "state"):
            assert alone[0][name] == grid[0][name]


def test_a_grid_needs_schedulers() -> None:
    """The recorded schedule knows no free processors."""
    with pytest.raises(ValueError, match="grid with home: it follows the recorded schedule"):
        Simulation(JobTable(), 4, "recorded", grid=GridSpec())
    with pytest.raises(ValueError, match="broker 'best': not known; choose first-fit"):
        GridSpec("best")
