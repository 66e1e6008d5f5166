"""Schedulers and estimates by text, and what the plain engine asks and passes on."""

import re
from typing import Any

import pytest
from hpcrowd import JobTable, Scheduler
from hpcrowd.environment.schedulers import names
from hpcrowd.environment.schedulers.arithmetic import INCREMENTS, believed_end
from hpcrowd.environment.schedulers.policies.fair_share import FairShare
from hpcrowd.environment.schedulers.policies.priority import WFP3
from hpcrowd.errors import QuantityError, SchedulerError
from hpcrowd.policies import (
    EASY,
    FCFS,
    Conservative,
    EndedJob,
    Look,
    Selective,
    SelectiveCategorized,
    parse_scheduler,
)
from hpcrowd.predictors import Estimates, parse_estimates
from hypothesis import given
from hypothesis import strategies as st

from tests.environment.schedulers.pool_cases import ran
from tests.support.simulations import both


class Patient(FCFS):
    """Waits for whole minutes before it starts anything."""

    name = "patient"

    def __init__(self, minutes=1, polite=True, share=0.5):
        if minutes < 1:
            raise QuantityError(f"minutes {minutes}: must be at least 1")
        self.minutes = minutes
        self.polite = polite
        self.share = share
        self.heard: list[tuple[int, list[EndedJob]]] = []

    def ended(self, now, jobs):
        """Keep what it hears."""
        self.heard.append((now, list(jobs)))

    def select(self, look):
        """At whole minutes only; promise that of the next."""
        minute = 60 * self.minutes
        self.promises.update((job.row, -(-look.now // minute) * minute) for job in look.waiting)
        return [] if look.now % minute else super().select(look)

    def wake(self, now):
        """At the next."""
        minute = 60 * self.minutes
        return (now // minute + 1) * minute


@pytest.fixture
def known(monkeypatch):
    """The patient scheduler can be chosen by name."""
    monkeypatch.setitem(names.SCHEDULERS, "patient", Patient)


@pytest.mark.usefixtures("known")
def test_texts_make_schedulers():
    """A name makes the policy with its defaults, options are read as the constructor's types."""
    assert [FCFS, EASY] == [type(parse_scheduler(name)) for name in ("fcfs", "easy")]
    assert parse_scheduler("recorded") is None
    made = parse_scheduler("patient:minutes=5, polite=no")
    assert isinstance(made, Patient)
    assert (5, False, 0.5) == (made.minutes, made.polite, made.share)
    assert "patient:minutes=5,polite=no" == str(made)


MADE: list[tuple[Any, str]] = [
    *((text, text) for text in (
        "fair-share:half-life=12h,shares=1:2", "creasy:alpha=10.0", "order:by=-area",
        "wfp3:backfill=conservative", "adaptive:underload-positive=easy:backfill=sjbf",
    )),
    ("multifactor:age=5", "multifactor:age=5.0"),
    (FairShare(half_life="1d"), "fair-share:half-life=1d"),
    (Conservative(), "conservative"),
    (Selective(threshold="1.5", bound=10), "selective:threshold=1.5,bound=10"),
    (SelectiveCategorized(categories="1000/10001"), "selective-categorized"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "text"), MADE, ids=str)
def test_policies_are_given_back_as_text(made, text):
    """Options that are not default are in the text of a policy."""
    assert text == str(parse_scheduler(made) if isinstance(made, str) else made)
    assert text == str(parse_scheduler(text))


WRONG = [
    ("sooner", "choose fcfs, easy"),
    ("recorded:now=1", "choose fcfs, easy"),
    ("fcfs:order=x", "'order' is not an option of it; write fcfs"),
    ("patient:seconds=3", "minutes, polite, share"),
    ("patient:minutes", "is without a value"),
    ("patient:minutes=1,minutes=2", "given twice"),
    ("patient:minutes=1.5", "minutes must be a whole number, got '1.5'"),
    ("patient:polite=maybe", "polite must be yes or no"),
    ("patient:share=half", "share must be a number"),
    ("patient:minutes=0", "must be at least 1"),
    ("selective:threshold=0.9", "threshold '0.9': must be adaptive, or a number of at least 1"),
    *((f"selective:threshold={one}", f"threshold '{one}'") for one in ("often", "inf", "nan")),
    *(
        (f"selective:categories={one}", f"categories '{one}'")
        for one in ("10000/1000", "5/5", "0/5", "-5", "small", "")
    ),
    ("selective:bound=0", "bound 0: must be at least 1 s"),
    ("order:by=size", "by 'size': not known; did you mean processors? choose submit, estimate"),
    ("easy:backfill=most", "backfill 'most': not known; choose queue, fcfs, sjbf, largest"),
    ("easy:backfill=none", "backfill 'none': not known"),
    ("multi-queue:file=none.toml", "none.toml: cannot be read"),
    ("multi-queue:user-jobs=0", "a limit of 0 jobs: must be at least 1"),
    ("multi-queue:priorities=1", "priorities '1': '1' is not name:value"),
    ("multi-queue:priorities=1:2+1:3", "1 is named twice"),
    ("fair-share:half-life=0", "half-life '0': must be at least 1 s"),
    ("fair-share:half-life=long", "duration 'long'"),
    ("fair-share:by=queue", "by 'queue': not known; choose user, group"),
    ("fair-share:shares=1:0", "the value of 1 must be positive"),
    ("creasy:alpha=-1", "alpha -1.0: must be 0 or more"),
    ("creasy:limit=2", "limit 2.0: is a probability"),
    ("adaptive:overload-positive=easier", "scheduler 'easier': not known"),
    ("adaptive:overload-positive=recorded", "'recorded': not a policy to switch to"),
    ("adaptive:overload-positive=slurm", "'slurm': not a policy to switch to"),
    ("adaptive:every=0s", "every '0s': must be at least 1 s"),
    ("adaptive:overload=-1", "overload -1.0: must be 0 or more"),
    ("multifactor:age=-1", "age -1: must be 0 or more"),
]


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("text", "words"), WRONG)
def test_wrong_text_is_one_line(text, words):
    """What cannot be is named, with what can."""
    with pytest.raises(QuantityError, match=re.escape(words)):
        parse_scheduler(text)


def test_scheduler_is_woken_and_its_promises_are_noted(make_jobs):
    """A pass happens when the scheduler asks for it; the first promise is kept; ends too."""
    jobs, scheduler = make_jobs((10, 30, 1), (70, 20, 1)), Patient()
    ran(jobs, 2, scheduler)
    assert [60, 120] == jobs.start.tolist()
    assert [60, 120] == jobs.promised.tolist()
    heard = [(at, [job.row for job in ended]) for at, ended in scheduler.heard]
    assert [(90, [0]), (140, [1])] == heard


def test_scheduler_that_wants_to_be_asked_in_the_past(make_jobs):
    """A wake time that is not ahead would stop the clock, and is an error."""

    class Sleepless(FCFS):
        def wake(self, now):
            return now

    with pytest.raises(SchedulerError, match="must return a later second"):
        ran(make_jobs((0, 30, 2), (0, 30, 2)), 2, Sleepless())


def test_schedulers_that_cannot_run_say_so():
    """The base class names what is missing, and a wrong option is found at the start, too."""
    with pytest.raises(NotImplementedError, match="must define select"):
        Scheduler().select(Look(0, [], [], 1, 1))
    with pytest.raises(QuantityError, match="backfill 'some': not known"):
        ran(JobTable(), 4, WFP3(backfill="some"))


times = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("text", "expected"), [("requested", 90), ("exact", 60), ("0.5x", 45), ("1.25x", 113)]
)
def test_estimates_by_name(text, expected):
    """The request, the run time, or a multiple of the request, rounded half up."""
    estimates = parse_estimates(text)
    assert text == str(estimates)
    assert expected == estimates.of(requested=90, run=60)


@pytest.mark.parametrize("text", ["", "guess", "0x", "-1x", "1.0000001x", "10000001x", "x"])
def test_unknown_estimates_are_refused(text):
    """What is not an estimate is named."""
    with pytest.raises(QuantityError):
        parse_estimates(text)
    with pytest.raises(QuantityError, match="choose requested, exact, factor"):
        Estimates(text or "guess")


@both
@pytest.mark.parametrize(("overrun", "expected"), [("keep", 100), ("kill", 40)])
def test_exact_is_the_time_on_the_machine(make_jobs, plain, overrun, expected):
    """Exact estimates of jobs that are stopped at their request are the request."""
    jobs = make_jobs((0, 100, 1, 40))
    ran(jobs, 2, "easy", estimates="exact", overrun=overrun, plain=plain)
    assert [expected] == jobs.estimate.tolist()


@given(start=times, estimate=times, requested=times, first=times, later=times)
def test_believed_end(start, estimate, requested, first, later):
    """It is always ahead, at the estimate while that is not past, and holds until it is past."""
    before = believed_end(start, estimate, requested, first)
    after = believed_end(start, estimate, requested, first + later)
    assert before > first
    assert before == start + estimate or start + estimate <= first
    assert after == before if before > first + later else after > before
    now = start + estimate + later
    request = estimate + later + 1  # an outrun estimate is never raised beyond a request to come
    assert start + request == believed_end(start, estimate, request, now)


def test_believed_end_by_increments():
    """By one minute, six, 21, and so on; after the last increment by that one again and again."""
    minutes = [believed_end(0, 0, 0, now) // 60 for now in (0, 59, 60, 360, 21 * 60)]
    assert [1, 1, 6, 21, 51] == minutes
    total = sum(INCREMENTS)
    assert total + 3 * INCREMENTS[-1] == believed_end(0, 0, 0, total + 2 * INCREMENTS[-1])
