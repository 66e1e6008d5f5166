"""Clusters in lock-step, with a broker or without, against an oracle, and what must hold of any."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment import GridSpec, JobTable, Simulation
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


def test_a_grid_needs_schedulers() -> None:
    """The recorded schedule knows no free processors."""
    with pytest.raises(ValueError, match="grid with home: it follows the recorded schedule"):
        Simulation(JobTable(), 4, "recorded", grid=GridSpec())
    with pytest.raises(ValueError, match="broker 'best': not known; choose first-fit"):
        GridSpec("best")
