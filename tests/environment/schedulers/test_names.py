"""Schedulers by text, and what the plain engine asks and passes on."""

import re
from typing import Any

import pytest
from hpcrowd import JobTable, Scheduler
from hpcrowd.environment.schedulers import names
from hpcrowd.environment.schedulers.fair_share import FairShare
from hpcrowd.environment.schedulers.priority import WFP3
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

from tests.environment.schedulers.pool_cases import ran


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
    ("fcfs:", "is not an option"),
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
    ("selective:bound=1.5", "bound must be a whole number"),
    ("conservative:bound=3", "'bound' is not an option of it; write conservative"),
    ("order:by=size", "by 'size': not known; choose submit, estimate, requested, processors"),
    ("easy:order=-size", "order '-size': not known; choose submit"),
    ("easy:backfill=most", "backfill 'most': not known; choose queue, fcfs, sjbf, largest"),
    ("easy:backfill=none", "backfill 'none': not known"),
    ("multi-queue:file=none.toml", "none.toml: cannot be read"),
    ("multi-queue:user-jobs=0", "a limit of 0 jobs: must be at least 1"),
    ("multi-queue:user_jobs=1", "'user_jobs' is not an option of it"),
    ("multi-queue:priorities=1", "priorities '1': '1' is not name:value"),
    ("multi-queue:priorities=1:2+1:3", "1 is named twice"),
    ("fair-share:half-life=0", "half-life '0': must be at least 1 s"),
    ("fair-share:half-life=long", "duration 'long'"),
    ("fair-share:by=queue", "by 'queue': not known; choose user, group"),
    ("fair-share:shares=1:0", "the value of 1 must be positive"),
    ("creasy:alpha=-1", "alpha -1.0: must be 0 or more"),
    ("creasy:limit=2", "limit 2.0: is a probability"),
    ("creasy:decline=nan", "decline nan: must be 0 or more"),
    ("adaptive:overload-positive=easier", "scheduler 'easier': not known"),
    ("adaptive:overload-positive=recorded", "'recorded': not a policy to switch to"),
    ("adaptive:underload-negative=adaptive", "'adaptive': not a policy to switch to"),
    ("adaptive:overload-positive=slurm", "'slurm': not a policy to switch to"),
    ("adaptive:every=0s", "every '0s': must be at least 1 s"),
    ("adaptive:every=often", "duration 'often'"),
    ("adaptive:overload=-1", "overload -1.0: must be 0 or more"),
    ("adaptive:overload=inf", "overload inf: must be 0 or more"),
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


def test_subclass_of_a_library_scheduler_runs_plain(make_jobs):
    """One's own version of EASY is not taken for the compiled one."""

    class Reversed(EASY):
        def select(self, look):
            return super().select(look._replace(waiting=look.waiting[::-1]))

    jobs = make_jobs((0, 30, 2), (0, 30, 2))
    ran(jobs, 2, Reversed())
    assert [30, 0] == jobs.start.tolist()


def test_schedulers_that_cannot_run_say_so():
    """The base class names what is missing, and a wrong option is found at the start, too."""
    with pytest.raises(NotImplementedError, match="must define select"):
        Scheduler().select(Look(0, [], [], 1, 1))
    with pytest.raises(QuantityError, match="backfill 'some': not known"):
        ran(JobTable(), 4, WFP3(backfill="some"))
