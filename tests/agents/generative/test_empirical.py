"""What generative users draw from: distributions that are taken from a record."""

from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, SessionDefinition, Work
from hpcrowd.agents.generative.empirical import draw
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.errors import QuantityError
from hpcrowd.populations import Attendance, Empirical, Habits


def fit(jobs, definition="last:20m", **choices):
    """The habits in a table of jobs."""
    work = Work.of(jobs, SessionDefinition.parse(definition))
    return Habits.fit(work, **choices)


#: Pauses of 0, 1200, 1201, 28799 and 28800 s after jobs of 100 s.
PAUSES = [0, 100, 1400, 2701, 31600, 60500]


@pytest.mark.parametrize(
    ("rows", "definition", "expected"),
    [
        # Up to 20 min is a think time, more and less than 8 h a break, 8 h neither.
        ([(at, 100, 1) for at in PAUSES], "last:20m",
         {"think": [0, 1200], "pauses": [1201, 28799], "widths": [1] * 6, "gaps": []}),
        # A batch goes on while each job comes before the end of the one before it.
        ([(0, 100, 1), (30, 100, 1), (120, 5, 1), (125, 5, 1)], "last:20m",
         {"think": [0], "widths": [3, 1], "gaps": [30, 90]}),
        # A long job that still runs does not matter under last, and makes one batch under max.
        ([(0, 10_000, 1), (10, 90, 1), (400, 10, 1)], "last:20m", {"think": [300]}),
        ([(0, 10_000, 1), (10, 90, 1), (400, 10, 1)], "max:20m", {"widths": [3]}),
        # Under arrival, pauses count from the latest end: sessions that overlap leave none.
        ([(0, 20_000, 1), (5000, 10, 1), (5100, 10, 1)], "arrival:1h", {"think": [], "pauses": []}),
        ([(0, 100, 1), (400, 10, 1), (5410, 10, 1)], "arrival:1h",
         {"think": [300], "pauses": [5000]}),
        # Jobs of a batch more than an hour apart count for its width, not for its gaps.
        ([(0, DAY, 1), (HOUR, DAY, 1), (2 * HOUR + 1, DAY, 1)], "last:20m",
         {"widths": [3], "gaps": [HOUR]}),
        # Nothing lasts from one user's job to another's.
        ([(0, 10, 1, 10, 1), (40, 10, 1, 10, 2), (100, 10, 1, 10, 1)], "last:20m",
         {"think": [90], "widths": [1, 1, 1], "repeats": [2, 1]}),
        # The same job may run longer the next time.
        ([(0, 5, 1, 60), (10, 50, 1, 60)], "last:20m", {"repeats": [2]}),
        # One job gives a width and a repetition, and no pause.
        ([(5, 10, 1)], "last:20m",
         {"think": [], "pauses": [], "gaps": [], "widths": [1], "repeats": [1]}),
    ],
)  # fmt: skip
def test_habits_of_a_record(make_jobs, rows, definition, expected):
    """Think times, breaks, gaps, widths and repetitions are those of the record, and no others."""
    jobs = make_jobs(*rows)
    habits = fit(jobs, definition)
    assert expected == {name: getattr(habits, name).values.tolist() for name in expected}
    if expected.get("gaps") == [HOUR]:
        assert [HOUR, HOUR + 1] == fit(jobs, longest_gap=None).gaps.values.tolist()


def test_jobs_that_are_the_same_and_whose_they_are(make_jobs):
    """A run ends where jobs ask for something else; strangers draw from their group's jobs."""
    jobs = make_jobs(*[(10 * place, 5, 1, 60) for place in range(8)])
    jobs.processors[2:] = 2
    jobs.requested_time[4:] = 90
    jobs.executable[:] = [1, 1, 1, 1, 1, -1, 2, 3]
    assert [2, 2, 3, 1] == fit(jobs).repeats.values.tolist()
    jobs = make_jobs((0, 1, 1, 1, 1), (10, 1, 1, 1, 2), (20, 1, 1, 1, 3), (30, 1, 1, 1, 1))
    jobs.group[:] = [7, 7, 8, 7]
    habits = fit(jobs)
    whose = {(1, 7): [0, 3], (9, 7): [0, 1, 3], (9, 8): [2], (9, 9): [0, 1, 2, 3],
             (9, -1): [0, 1, 2, 3]}  # fmt: skip
    assert whose == {who: sorted(habits.jobs_of(*who)) for who in whose}


def test_who_draws_from_what():
    """A user with enough values draws from its own, others from everybody's, all equally likely."""
    values = Empirical([1, 2, 3, 4], np.array([0, 0, 0, 1]), least=3)
    assert [[1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]] == [list(values.of(at)) for at in (0, 1, -1)]
    assert [1, 2, 3, 4] == list(Empirical([1, 2, 3, 4], np.array([0, 0, 0, 1])).of(0))
    with pytest.raises(QuantityError, match="must be 1 value or more"):
        Empirical([1], least=0)
    stream = np.random.default_rng(5)
    drawn = np.bincount([draw([0, 1, 2, 3], stream) for _ in range(4000)], minlength=4)
    assert pytest.approx(np.full(4, 1000), abs=5 * np.sqrt(4000 * 0.25 * 0.75)) == drawn


@pytest.mark.parametrize("choice", [{"longest_break": 0}, {"longest_gap": -1}, {"least": 0}])
def test_impossible_limits_are_refused(make_jobs, choice):
    """Limits are lengths of time."""
    with pytest.raises(QuantityError, match=r"or more|more than"):
        fit(make_jobs((0, 1, 1)), **choice)


def test_attendance_counts_local_days(make_jobs):
    """Days begin at local midnight; who came on two days out of four comes with half."""
    zone = ZoneInfo("Europe/Stockholm")
    clock = Clock(unix_start=1704697200, zone=zone, known=True)  # Mon 8 January 2024, 8:00
    night = 16 * HOUR
    seconds = ((0, 1), (night - 1, 1), (night + 2 * DAY, 1), (night, 2), (night + 1, 2))
    found = Attendance.fit(
        Work.of(make_jobs(*((at, 1, 1, 1, user) for at, user in seconds))), clock
    )
    assert ([2, 1], [4, 1]) == (found.active.tolist(), found.present.tolist())
    chances = {(0, 7): 0.5, (0, 5): 0.7, (1, 5): 1.0, (-1, 7): 3 / 5}
    assert pytest.approx(chances) == {one: found.probability(*one) for one in chances}
