"""Grids in lock-step against one heap, compiled against plain, and what must hold of any grid."""

from __future__ import annotations

import numpy as np
import pytest
from hpcrowd.environment import GridSpec, Simulation, State
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.grid.grid_cases import (
    AT_ONCE,
    OUTCOME,
    Place,
    Player,
    Users,
    crowds,
    play,
    reference,
    table,
)
from tests.environment.grid.grid_cases import places as places_of

POLICIES = ("first-fit", "worst-fit", "least-loaded", "fastest-completion")
policies = st.sampled_from(POLICIES)
overruns = st.sampled_from(["keep", "kill"])


@settings(max_examples=400)
@given(crowds, places_of("fcfs"), policies, overruns, st.booleans())
def test_a_grid_equals_one_heap(
    users: Users, places: list[Place], policy: str, overrun: str, plain: bool
) -> None:
    """No cluster is ever ahead of another: all is as if one merged simulation had done it."""
    expected = reference(users, places, policy, overrun)
    assert expected == play(users, places, policy, overrun, plain=plain)


@settings(max_examples=200)
@given(
    crowds,
    places_of("fcfs", "easy", "conservative", "sjf"),
    policies,
    overruns,
    st.sampled_from(["requested", "exact", "1.5x"]),
    st.lists(st.integers(0, 6), max_size=5),
    st.sampled_from([1, 2, 5, 1024]),
)
def test_compiled_equals_plain(
    users: Users,
    places: list[Place],
    policy: str,
    overrun: str,
    estimates: str,
    stops: list[int],
    room: int,
) -> None:
    """Under any schedulers, in one piece or several, also when arrays have to grow."""
    expected = play(users, places, policy, overrun, plain=True, estimates=estimates)
    way = tuple(int(second) for second in np.cumsum(stops))
    pieces = {"estimates": estimates, "stops": way, "room": room}
    assert expected == play(users, places, policy, overrun, **pieces)


@given(crowds, places_of("fcfs", "easy"), policies)
def test_jobs_in_are_jobs_out_and_fit(users: Users, places: list[Place], policy: str) -> None:
    """Every job ends eventually, every user hears of every unit, no cluster holds too much."""
    found, log = play(users, places, policy)
    assert sum(len(steps) for steps in users) == len(log)
    assert State.UNFINISHED not in found["state"]
    jobs, _ = table(users)
    columns = {name: np.array(values) for name, values in found.items()}
    ran = columns["start"] >= 0
    assert (columns["submit"][ran] <= columns["enqueued"][ran]).all()
    assert (columns["enqueued"][ran] <= columns["start"][ran]).all()
    for number, place in enumerate(places):
        mine = ran & (columns["cluster"] == number)
        for time in set(columns["start"][mine].tolist()):
            runs = mine & (columns["start"] <= time) & (columns["end"] > time)
            assert jobs.processors[runs].sum() <= place.processors


@given(crowds, places_of("fcfs", "easy"), policies, st.booleans())
def test_a_grid_of_one_cluster_is_the_cluster(
    users: Users, places: list[Place], policy: str, plain: bool
) -> None:
    """Who submits to the cluster does not notice the broker; a broker that sends on at once too."""
    home = places[:1]
    grid = play(users, home, policy, plain=plain)
    jobs, rows = table(users)
    renounced = jobs.state.copy()
    model = Simulation(jobs, home[0].processors, home[0].scheduler, plain=plain)
    jobs.state[:] = renounced
    local = [
        [step._replace(jobs=[job._replace(to=-number - turn) for job in step.jobs])
         for turn, step in enumerate(steps)]
        for number, steps in enumerate(users)
    ]  # fmt: skip
    alone = play(local, home, policy, plain=plain)
    if policy in AT_ONCE:
        for name in ("submit", "enqueued", "start", "end", "state"):
            assert alone[0][name] == grid[0][name]
        assert alone[1] == grid[1]
    log: list[tuple[int, int]] = []
    for number, steps in enumerate(local):
        Player(model, number, steps, rows[number], log).go_on(0)
    model.run()
    assert alone == ({name: getattr(jobs, name).tolist() for name in OUTCOME}, log)


def test_a_grid_needs_schedulers() -> None:
    """The recorded schedule knows no free processors."""
    jobs, _ = table([[]])
    with pytest.raises(ValueError, match="grid with home: it follows the recorded schedule"):
        Simulation(jobs, 4, "recorded", grid=GridSpec())
    with pytest.raises(ValueError, match="broker 'best': not known; choose first-fit"):
        GridSpec("best")
