"""Schedulers by text, and what the plain engine asks and tells them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hpcrowd.environment import (
    EASY,
    FCFS,
    EndedJob,
    JobTable,
    Look,
    QuantityError,
    Scheduler,
    SchedulerError,
    Simulation,
    WaitingJob,
    parse_scheduler,
)
from hpcrowd.environment.schedulers import names

MakeJobs = Callable[..., JobTable]


class Patient(FCFS):
    """Waits for whole minutes before it starts anything."""

    name = "patient"

    def __init__(self, minutes: int = 1, polite: bool = True, share: float = 0.5) -> None:
        if minutes < 1:
            raise QuantityError(f"minutes {minutes}: must be at least 1")
        self.minutes = minutes
        self.polite = polite
        self.share = share
        self.heard: list[tuple[int, list[EndedJob]]] = []

    def ended(self, now: int, jobs: Sequence[EndedJob]) -> None:
        """Keep what it hears."""
        self.heard.append((now, list(jobs)))

    def select(self, look: Look) -> Iterable[WaitingJob]:
        """At whole minutes only; promise that of the next."""
        minute = 60 * self.minutes
        self.promises.update((job.row, -(-look.now // minute) * minute) for job in look.waiting)
        return [] if look.now % minute else super().select(look)

    def wake(self, now: int) -> int | None:
        """At the next."""
        minute = 60 * self.minutes
        return (now // minute + 1) * minute


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patient scheduler can be chosen by name."""
    monkeypatch.setitem(names.SCHEDULERS, "patient", Patient)


def test_names_give_schedulers() -> None:
    """A name makes the policy with its defaults; recorded is none."""
    assert [FCFS, EASY] == [type(parse_scheduler(name)) for name in ("fcfs", "easy")]
    assert parse_scheduler("recorded") is None


@pytest.mark.usefixtures("known")
def test_options_in_text() -> None:
    """Options are read as the constructor's types, and given back where they are not default."""
    made = parse_scheduler("patient:minutes=5, polite=no")
    assert isinstance(made, Patient)
    assert (5, False, 0.5) == (made.minutes, made.polite, made.share)
    assert "patient:minutes=5,polite=no" == str(made)
    assert str(made) == str(parse_scheduler(str(made)))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sooner", "choose fcfs, easy"),
        ("recorded:now=1", "choose fcfs, easy"),
        ("fcfs:order=x", "'order' is not an option of it; write fcfs"),
        ("fcfs:", "is not an option"),
        ("patient:seconds=3", "minutes, polite, share"),
        ("patient:minutes", "is not an option"),
        ("patient:minutes=1,minutes=2", "given twice"),
        ("patient:minutes=1.5", "minutes must be a whole number, got '1.5'"),
        ("patient:polite=maybe", "polite must be yes or no"),
        ("patient:share=half", "share must be a number"),
        ("patient:minutes=0", "must be at least 1"),
    ],
)
def test_wrong_text_is_one_line(text: str, told: str) -> None:
    """What cannot be is named, with what can."""
    with pytest.raises(QuantityError, match=told) as caught:
        parse_scheduler(text)
    assert "\n" not in str(caught.value)


def test_scheduler_is_woken_and_its_promises_are_noted(make_jobs: MakeJobs) -> None:
    """A pass happens when the scheduler asks for it; the first promise is kept; ends too."""
    jobs = make_jobs((10, 30, 1), (70, 20, 1))
    scheduler = Patient()
    model = Simulation(jobs, 2, scheduler)
    model.cluster.submit([0, 1], [10, 70])
    model.run()
    assert [60, 120] == jobs.start.tolist()
    assert [60, 120] == jobs.promised.tolist()
    assert [(90, [0]), (140, [1])] == [
        (at, [job.row for job in ended]) for at, ended in scheduler.heard
    ]


def test_scheduler_that_wants_to_be_asked_in_the_past(make_jobs: MakeJobs) -> None:
    """A wake time that is not ahead would stop the clock, and is an error."""

    class Sleepless(FCFS):
        def wake(self, now: int) -> int | None:
            return now

    jobs = make_jobs((0, 30, 2), (0, 30, 2))
    model = Simulation(jobs, 2, Sleepless())
    model.cluster.submit([0, 1], 0)
    with pytest.raises(SchedulerError, match="must return a later second"):
        model.run()


def test_subclass_of_a_library_scheduler_runs_plain(make_jobs: MakeJobs) -> None:
    """One's own version of EASY is not taken for the compiled one."""

    class Reversed(EASY):
        def select(self, look: Look) -> Any:
            return super().select(look._replace(waiting=look.waiting[::-1]))

    jobs = make_jobs((0, 30, 2), (0, 30, 2))
    model = Simulation(jobs, 2, Reversed())
    model.cluster.submit([0, 1], 0)
    model.run()
    assert [30, 0] == jobs.start.tolist()


def test_scheduler_without_select_says_so() -> None:
    """The base class names what is missing."""
    with pytest.raises(NotImplementedError, match="must define select"):
        Scheduler().select(Look(0, [], [], 1, 1))
