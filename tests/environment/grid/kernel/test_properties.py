"""Clusters in lock-step, with a broker or without, against an oracle, and what must hold of any."""

import numpy as np
import pytest
from hpcrowd import JobTable
from hpcrowd.grids import Grid
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.grid.grid_cases import (
    Crowd,
    brokers,
    crowds,
    foretold,
    overruns,
    places,
    play,
    rooms,
)
from tests.support.simulations import simulation_of


def crowd_of(users, clusters, broker):
    """Users who wander over all clusters, and the grid if there is one."""
    return Crowd(users, len(clusters) + (broker is not None))


crowded = given(
    crowds, places("fcfs", "own", "easy", "recorded"), brokers, overruns, st.booleans(), rooms
)


@settings(max_examples=60)
@crowded
def test_engines_equal_the_oracle(users, clusters, broker, overrun, plain, room):
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
def test_compiled_equals_plain_with_stops_on_the_way(users, clusters, way, how):
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


def test_a_grid_needs_schedulers():
    """The recorded schedule knows no free processors."""
    with pytest.raises(ValueError, match="grid with home: it follows the recorded schedule"):
        simulation_of(JobTable(), 4, "recorded", grid=Grid())
    with pytest.raises(ValueError, match="broker 'best': not known; choose first-fit"):
        Grid("best")
