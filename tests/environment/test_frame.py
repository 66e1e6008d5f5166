"""What the run loop relies on in Mesa. When one of these fails, Mesa has changed."""

import gc

import mesa
import pytest
from hpcrowd import JobTable, Simulation
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.frame import Frame
from hpcrowd.environment.stops import FOREVER
from hpcrowd.errors import SimulationError


@pytest.fixture
def model():
    """An empty simulation."""
    return Simulation(JobTable(), 1)


@pytest.fixture
def seen():
    """What was called."""
    return []


def test_mesa_has_a_heartbeat_to_switch_off():
    """A stock model schedules its own step; the parts that the frame takes hold of exist."""
    stock = mesa.Model(rng=0)
    assert 1 == len(stock._event_list)
    assert "step" in vars(stock)
    assert stock._default_schedule.is_active
    assert callable(stock._advance_time)
    with pytest.raises(ValueError, match="alive"):  # which is why the frame holds functions
        stock.schedule_event(lambda: None, at=1)


def test_heartbeat_is_off(model):
    """Nothing is due at first, nor later: time passes without steps of Mesa."""
    assert 0 == len(model._event_list)
    assert FOREVER == model.next_event_time()
    assert not model._default_schedule.is_active
    model.run(until=10 * HOUR)
    assert 10 * HOUR == model.time
    assert FOREVER == model.next_event_time()


def test_all_ways_to_let_time_pass(model, seen):
    """Mesa's own go through the run loop, events included; time is an int; a step is an hour."""
    assert (0, int) == (model.time, type(model.time))
    for at in (40, 90, 91, 200):
        model.call_at(at, lambda: seen.append(model.time))
    for go, until, expected in (
        (lambda: model.run_for(90.0), 90, [40, 90]),
        (lambda: model.run_until(150.0), 150, [40, 90, 91]),
        (lambda: model.run(until=190), 190, [40, 90, 91]),
        (lambda: model.run_for(10), 200, [40, 90, 91, 200]),
        (model.step, 200 + HOUR, [40, 90, 91, 200]),
    ):
        steps = model.steps
        go()
        assert (until, int, expected) == (model.time, type(model.time), seen)
    assert steps + 1 == model.steps


def test_events_hold_their_function_and_arguments(model, seen):
    """Lambdas and methods of objects that nobody else holds are called all the same."""

    class Bell:
        def ring(self, *words):
            seen.append((model.time, *words))

    def schedule():
        model.call_at(2, lambda: seen.append("lambda"))
        model.call_at(3, Bell().ring, "a", 2, None)

    schedule()
    gc.collect()
    model.run()
    assert ["lambda", (3, "a", 2, None)] == seen


def test_cancelled_event_does_not_happen(model, seen):
    """A cancelled event is not called, not due, and does not hold time up, whoever cancels it."""
    first = model.call_at(5, seen.append, "first")
    model.call_at(8, lambda: later.cancel())
    later = model.call_at(8, seen.append, "never")
    model.call_at(8, seen.append, "third")
    assert 5 == model.next_event_time()
    first.cancel()
    assert 8 == model.next_event_time()
    assert (8, seen.append, ("third",)) in model.due()
    assert 3 == len(list(model.due()))
    model.run()
    assert ["third"] == seen


def test_events_of_one_second_keep_their_order(model, seen):
    """Events of one second happen in the order they were scheduled, those they add come last."""

    def more():
        seen.append("a")
        model.call_at(6, seen.append, "added")

    model.call_at(9, seen.append, "late")
    model.call_at(6, more)
    for word in "bcd":
        model.call_at(6, seen.append, word)
        assert 6 == model.next_event_time()  # looking ahead changes no order
    model.run()
    assert ["a", "b", "c", "d", "added", "late"] == seen


def test_event_in_the_past_is_an_error(model, seen):
    """An event cannot be scheduled before now; both times are reported. Now itself is fine."""
    model.run(until=30)
    with pytest.raises(SimulationError, match=r"event at 29 s: in the past, it is already 30 s"):
        model.call_at(29, print)
    model.call_at(30, seen.append, 1)
    model.run()
    assert ([1], 30) == (seen, model.time)


def test_mesa_schedules_through_the_same_list(make_jobs):
    """What is scheduled by Mesa's own methods happens too; between seconds, in the next one."""
    model = Simulation(make_jobs((0, 10, 1)), 1)
    seen: list[int] = []

    def tick():
        seen.append(model.time)

    model.schedule_event(tick, at=50.5)
    model.schedule_recurring(tick, mesa.time.Schedule(interval=100, start=100, count=3))
    model.run(until=400)
    assert [51, 100, 200, 300] == seen


@pytest.mark.parametrize("draw", [lambda m: m.rng.random(), lambda m: m.random.random()])
def test_generators_of_mesa_are_seeded(draw):
    """Mesa's own generators follow the seed, 0 included."""
    assert draw(Frame(0)) == draw(Frame(0))
    assert draw(Frame(0)) != draw(Frame(1))


def test_frame_alone_does_not_run():
    """The frame leaves it to its subclass how time passes."""
    with pytest.raises(NotImplementedError):
        Frame().run()
