"""Recipes and presets: names, what goes together, and the parts a recipe is made of."""

from types import SimpleNamespace
from typing import Any

import pytest
from hpcrowd import Recipe, Work
from hpcrowd.agents.behaviours.activity import ActivityWindow, SameWindow, Shifts
from hpcrowd.agents.behaviours.composed import Composed, Rigid, ThinkTime
from hpcrowd.behaviours import PRESETS, ContinuationLaw, Fitted, LinearThink
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.kinds.replay import BEHAVIOURS


@pytest.fixture
def work(make_jobs):
    """Recorded work with think times that grow with the response."""
    rows: list[tuple[int, ...]] = []
    for user, response in enumerate((10, 20, 90)):
        rows += [(0, response, 1, response, user), (2 * response + 5, 1, 1, 1, user)]
    return Work.of(make_jobs(*rows))


def test_every_preset_can_be_chosen(work):
    """The command line offers all, with a word on each; two are classes that can be subclassed."""
    assert list(PRESETS) == list(BEHAVIOURS)
    assert all(preset.does for preset in PRESETS.values())
    made = PRESETS["rigid"], PRESETS["think-time"], Recipe("sessions", window="fitted")
    assert [Rigid, ThinkTime, Composed] == [type(one(work)) for one in made]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"when": "later"}, "when 'later': not known; choose recorded, sessions, batches"),
        ({"think": "slow"}, "think 'slow': not known; choose recorded, linear, own, continuation"),
        ({"window": "open"}, "window 'open': not known; choose always, fitted, shifts, sessions"),
        ({"when": "recorded", "think": "own"}, "use no think time and no window"),
        ({"when": "recorded", "window": "shifts"}, "use no think time and no window"),
        ({"when": "recorded", "window": ActivityWindow()}, "use no think time and no window"),
        ({"think": "own"}, "think 'own': draws from pauses within sessions"),
        ({"think": ContinuationLaw()}, "units are whole sessions; choose when = batches"),
        ({"waits": True}, "waits: without a window no user is ever absent"),
    ],
)
def test_parts_that_do_not_go_together(choices, message):
    """Unknown names and parts that contradict each other are refused when the recipe is written."""
    with pytest.raises(QuantityError, match=message):
        Recipe(**choices)


def test_given_parts_are_taken_as_they_are(work):
    """A line, a law, a window, shifts or a prior in the recipe go into the behaviour."""
    line, law, hours = LinearThink(0.1, 7), ContinuationLaw(0.5), ActivityWindow(0, 3600)
    shifts = Shifts(shift=0)
    made: Any = Recipe("batches", line, hours)(work)
    assert isinstance(made.window, SameWindow)
    assert (line, hours) == (made.think, made.window.window)
    made = Recipe("batches", law, shifts)(work)
    assert (law, shifts) == (made.think.law, made.window.shifts)
    made = Recipe("sessions", window=Fitted(40.0))(work)
    assert 40.0 == made.window.prior


def test_fitted_to_other_work(work, make_jobs):
    """A line, pauses and windows can come from another record than the one that is replayed."""
    other = Work.of(make_jobs((0, 50, 1), (100, 50, 1), (250, 10, 1)))
    linear: Any = Recipe("batches", "linear")(other, work)
    fluid: Any = PRESETS["fluid"](other, work)
    assert linear.units is fluid.units is other.by_batch
    assert pytest.approx((1.0, 5.0)) == (linear.think.slope, linear.think.intercept)
    stranger: Any = SimpleNamespace(number=999)
    assert [15, 25, 95] == fluid.think.inside.of(stranger, 1).tolist()
