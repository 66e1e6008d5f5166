"""What the contract of behaviours is compared with: all of them, workloads, and what must hold."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hpcrowd import Clock, JobTable, Recipe, SessionDefinition, Simulation, State, Work, add_users
from hpcrowd.agents.behaviours.user import ReplayUser
from hpcrowd.agents.presets import THINK, WHEN, WINDOWS
from hpcrowd.behaviours import PRESETS, Composed, DecisionLog, LinearThink, Recorded
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.environment.power.description import NodePower, Power
from hpcrowd.reactions import Reaction
from hypothesis import strategies as st

from tests.support.simulations import recorded, simulation_of

Rows = list[tuple[int, ...]]

#: A user whose think times grow with the response times, for those that fit a line.
TEACHER = [(100_000 * place, 100 * (place + 1), 1) for place in range(4)] + [
    (100_000 * place + 300 * (place + 1), 1, 1) for place in range(4)
]

#: The origin is Thursday 1997-03-27, 0:00, before clocks are put forward.
SPRING = Clock(859417200, ZoneInfo("Europe/Stockholm"), known=True)

#: The origin is Monday 2024-01-08, 8:00.
STOCKHOLM = Clock(1704697200, ZoneInfo("Europe/Stockholm"), known=True)

EVERY_JOB = SessionDefinition("arrival", None)

#: Processors draw 1 kW each, but only while they are busy.
ONE_KILOWATT = Power((NodePower("node", 0.0, 1000.0),))

OUTCOME = ("submit", "start", "end", "state", "cluster")


def recipes() -> dict[str, Recipe]:
    """Every valid product of the parts that have names, and the presets that are recipes."""
    found = {}
    for when, think, window, waits in product(WHEN, THINK, WINDOWS, (False, True)):
        with suppress(QuantityError):
            recipe = Recipe(when, think, window, waits)
            name = f"{when} x {think} x {window}{' x waits' if waits else ''}"
            # Few of the small workloads have their own line.
            found[name] = replace(recipe, think=LinearThink()) if think == "linear" else recipe
    presets = {name: each for name, each in PRESETS.items() if isinstance(each, Recipe)}
    return found | presets


RECIPES = recipes()


def draws(recipe: Recipe) -> bool:
    """Whether the behaviour leaves something to chance."""
    return recipe.think in ("own", "continuation", "learned") or recipe.window == "shifts"


def table(rows: Rows) -> JobTable:
    """Jobs (submission, recorded run, processors[, user[, run[, recorded wait[, requested]]]])."""
    full = [(*row, *(1, row[1], 0, row[1])[len(row) - 3 :]) for row in rows]
    submit, recorded_run, processors, user, run, wait, requested = np.array(full, np.int64).T
    now = {"run_time": run, "requested_time": requested, "processors": processors}
    return recorded(submit, recorded_run, wait, **now, user=user, group=user % 3)


def run(
    jobs: JobTable,
    make: Any,
    *,
    processors: int = 8,
    scheduler: str = "easy",
    definition: str = "arrival:60m",
    seed: int = 0,
    plain: bool = False,
    log: DecisionLog | None = None,
) -> tuple[JobTable, Work]:
    """The jobs after a run on a copy of the table, and the recorded work; lines have a teacher."""
    jobs = jobs.copy()
    work = Work.of(jobs, SessionDefinition.parse(definition))
    model = Simulation(jobs, processors, scheduler, plain=plain, clock=SPRING, seed=seed)
    if isinstance(make, Recipe) and make.think == "linear":
        make = partial(make, fit=Work.of(table([(*row, 1, 1) for row in TEACHER])))
    users = add_users(model, work, make, log=log)
    model.run()
    assert sum(user.submitted for user in users) == sum(len(user.units) for user in users)
    return jobs, work


def outcome(jobs: JobTable) -> dict[str, bytes]:
    """The outcome of every job, to compare."""
    return {name: getattr(jobs, name).tobytes() for name in OUTCOME}


def holds(recipe: Recipe, jobs: JobTable, work: Work, processors: int) -> None:
    """Check everything that a behaviour promises of any run."""
    rejected = jobs.processors > processors
    expected = np.where(rejected, State.REJECTED, State.COMPLETED)
    assert expected.tolist() == jobs.state.tolist()
    assert np.all(jobs.submit >= 0)
    assert np.all(jobs.start[~rejected] >= jobs.submit[~rejected])
    assert (jobs.start + jobs.run_time)[~rejected].tolist() == jobs.end[~rejected].tolist()
    if recipe.when == "recorded":
        assert jobs.recorded_submit.tolist() == jobs.submit.tolist()
        return
    batches = recipe.when == "batches"
    sessions = work.sessions
    bounds = sessions.batch_first if batches else sessions.session_first
    first, last = sessions.rows[bounds[:-1]], sessions.rows[bounds[1:] - 1]
    # Jobs of a unit are as far apart as recorded.
    leader = np.repeat(first, np.diff(bounds))
    shift = (jobs.submit - jobs.recorded_submit)[sessions.rows]
    assert (jobs.submit - jobs.recorded_submit)[leader].tolist() == shift.tolist()
    # The first unit of each user comes as recorded.
    opening = sessions.rows[sessions.session_first[sessions.user_first[:-1]]]
    assert jobs.recorded_submit[opening].tolist() == jobs.submit[opening].tolist()
    if batches:
        same = jobs.user[first[1:]] == jobs.user[last[:-1]]
        assert np.all((jobs.submit[last[:-1]] <= jobs.submit[first[1:]])[same])
    assert [] == broken(jobs, work.by_batch if batches else work.by_session)


def broken(jobs: JobTable, units: Any) -> list[tuple[int, int]]:
    """Dependencies whose second unit was submitted before the first one was over."""
    over = np.where(jobs.end >= 0, jobs.end, jobs.submit)  # a rejected job ends at once
    rows, edges, found = np.split(units.rows, units.first[1:-1]), units.dependencies, []
    for before, after in zip(edges.predecessor.tolist(), edges.successor.tolist(), strict=True):
        came = jobs.submit[rows[after]]
        if (came[came >= 0] < over[rows[before]].max()).any():
            found.append((before, after))
    return found


def react(
    jobs: JobTable, *reactions: Reaction, processors: int = 8, acting: Any = (), **options: Any
) -> list[ReplayUser]:
    """Replay jobs with users who react; return the users. Beside them, ``acting`` parts act."""
    of_users = {name: options.pop(name) for name in JOIN & options.keys()}
    model = simulation_of(jobs, processors, parts=acting, **options)
    users = join(model, *reactions, **of_users)
    model.run()
    return users


#: Settings of users beside their reactions.
JOIN = {"when", "sessions", "log", "parts"}


def join(
    model: Simulation,
    *reactions: Reaction,
    when: Any = Recorded,
    sessions: SessionDefinition = EVERY_JOB,
    log: DecisionLog | None = None,
    parts: dict[str, Any] | None = None,
) -> list[ReplayUser]:
    """Let users who react take part in a run that has not begun; return them."""

    def maker(work: Work) -> Composed:
        return Composed(when(work), reactions=reactions, **(parts or {}))

    return add_users(model, Work.of(model.jobs, sessions), maker, log=log)


def renounced(jobs: JobTable) -> list[int]:
    """Rows of renounced jobs."""
    return np.flatnonzero(jobs.state == State.RENOUNCED).tolist()


def refused(make: Callable[[], Any], words: str, error: type[Exception] = HpcrowdError) -> None:
    """Check that a mistake is reported with these words."""
    with pytest.raises(error, match=re.escape(words)):
        make()


@st.composite
def workloads(draw: st.DrawFn) -> Rows:
    """Up to 25 jobs of up to three users, within seconds, hours or weeks; ties everywhere."""
    scale = draw(st.sampled_from([1, 300, 20_000]))
    small = st.integers(0, 8)
    job = st.tuples(
        st.integers(0, 30), small, st.integers(1, 6), st.integers(1, 3), small, small, small
    )
    rows = draw(st.lists(job, min_size=1, max_size=25))
    return [
        (submit * scale, recorded * scale, width, user, runs * scale, wait * scale, asks * scale)
        for submit, recorded, width, user, runs, wait, asks in sorted(rows)
    ]


def random_jobs(draw: np.random.Generator, last: int, *, users: int, waits: int = 1) -> JobTable:
    """Up to 40 short jobs of some users, submitted before second ``last``, with short waits."""
    count = int(draw.integers(6, 40))
    submit = np.sort(draw.integers(0, last, count))
    run, wait = draw.integers(1, 200, count), draw.integers(0, waits, count)
    who, size = draw.integers(1, users + 1, count), draw.integers(1, 4, count)
    return recorded(submit, run, wait, user=who, processors=size, requested_time=2 * run)


def lively(*users: int) -> Rows:
    """Users with pauses of all lengths inside and between sessions, jobs slower than recorded."""
    rows: Rows = []
    for user in users:
        random = np.random.default_rng(user)
        submit = np.cumsum(random.choice([60, 900, 2500, 9000, 30_000], 150))
        length = random.choice([30, 800, 12_000], 150)
        rows += [
            (at, run, 1, user, 2 * run)
            for at, run in zip(submit.tolist(), length.tolist(), strict=True)
        ]
    return sorted(rows)


#: Made workloads by name: (rows, processors).
EXTREMES: dict[str, tuple[Rows, int]] = {
    "one job": ([(5, 10, 1)], 1),
    "one job without length": ([(0, 0, 1)], 1),
    "one job that is rejected": ([(0, 7, 9)], 8),
    "one-job users": ([(7 * user, 100, 1, user) for user in range(60)], 4),
    "all rejected": ([(600 * place, 60, 9, 1 + place % 2) for place in range(40)], 8),
    "every other rejected": (
        [(600 * place, 900, 3 + 6 * (place % 2), 1 + place % 3) for place in range(60)], 8),
    "no run times": ([(900 * (place // 3), 0, 2, 1 + place % 2) for place in range(60)], 4),
    "no time at all": ([(3, 0, 1, 1 + place % 2) for place in range(300)], 2),
    "all at one second": ([(10, 50, 1 + place % 8, 1 + place % 5) for place in range(200)], 8),
    "recorded without length": ([(40 * place, 0, 1, 1 + place % 2, 90) for place in range(80)], 2),
    "widths of Curie": (
        [(120 * place, 600, 2 ** (place % 17), 1 + place % 7) for place in range(200)], 93_312),
    "over a year": ([(1_000_003 * place, 9 * HOUR, 2, 1) for place in range(40)], 2),
    "far slower than recorded": (
        [(1800 * place, 60, 4, 1 + place % 3, 30_000) for place in range(60)], 4),
}  # fmt: skip
