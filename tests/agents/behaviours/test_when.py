"""Which unit comes next and what released it; the contract checks the exact second of each."""

from typing import override

import pytest
from hpcrowd import Recipe, Simulation, Work, add_users
from hpcrowd.behaviours import (
    BatchOrder,
    Composed,
    Reason,
    Recorded,
    RecordedPauses,
    Release,
    SessionGraph,
)

from tests.support.simulations import both

ENDED, FOLLOWS = Reason.ENDED, Reason.FOLLOWS


class Diary(RecordedPauses):
    """Recorded pauses, and a diary of what was released."""

    def __init__(self):
        self.releases: list[Release] = []

    @override
    def pause(self, user, release):
        self.releases.append(release)
        return super().pause(user, release)


class Noted(Composed):
    """Parts with a diary as the think time, which is asked although it changes nothing."""


@pytest.fixture
def figure_4(make_jobs):
    """Sessions f, s and t of Figure 4: batches f1 f2 f3 s1 s2 t1 t2, one job each, s2 long."""
    first = [(at, 100, 1) for at in (0, 200, 400, 5000)]
    return make_jobs(*first, (6000, 20_000, 1), (10_000, 100, 1), (10_200, 100, 1))


@both
def test_story_of_figure_4(figure_4, plain):
    """When f3 ends only s1 is next, then s2; t1, for which only f3 was needed, follows s2.

    f3 and s1 take longer than recorded, by 9,900 and 6,900 s. If only dependencies counted, t1
    would be submitted at 19,900 s, before s2.
    """
    figure_4.run_time[2], figure_4.run_time[3] = 10_000, 7000
    diary = Diary()
    model = Simulation(figure_4, 100, plain=plain)
    add_users(model, Work.of(figure_4), lambda work: Noted(BatchOrder(work), diary))
    model.run()
    assert [
        (1, 100, ENDED, 100, 0),
        (2, 300, ENDED, 100, 1),
        (3, 10_400, ENDED, 4500, 2),
        (4, 21_900, ENDED, 900, 3),
        (5, 22_800, FOLLOWS, 4000, 2),
        (6, 26_900, ENDED, 100, 5),
    ] == diary.releases
    assert [0, 200, 400, 14_900, 22_800, 26_800, 27_000] == figure_4.submit.tolist()


def test_presets_that_wait_for_nothing_are_not_called(figure_4):
    """Composed of recorded submissions only, a behaviour asks for no news."""
    work = Work.of(figure_4)
    parts = [Composed(when(work)).reacts for when in (Recorded, SessionGraph, BatchOrder)]
    assert [False, True, True] == parts
    assert [False, True] == [Recipe(when)(work).reacts for when in ("recorded", "sessions")]
