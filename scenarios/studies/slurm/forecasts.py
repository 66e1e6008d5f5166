"""Slurm's own forecasts of starts in recorded runs, and ours from the same moments.

``squeue --start`` says when Slurm expects each waiting job to start: when its backfilling would
start it if all jobs ran up to their limits and nobody submitted any more. At each sample of a
recorded run we make futures from what was known then: the queue and what ran where, the requests
of these jobs, those of the run that were over, the configuration of the machine. Both are compared
with the start that came. Two forecasters are judged:

========= ======================================================================================
``fresh`` knows no time before the run, as on the first day of a cluster; users submit no more
``week``  knows a run of another plan, too, as its record of the same day a week before; users go
          on as they did then (``rigid``)
========= ======================================================================================

Bounds of both are recalibrated as outcomes come in, beginning with those of the fresh forecaster
in the run of the other plan: that was a week ago, and nothing was known before. Without a run of
another plan there is only the fresh forecaster, whose bounds are raw in the beginning. No forecast
knows anything of a run of the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.analysis.forecast.conformal import LEVELS, OpenForecasts, Recalibration, wait_classes
from hpcrowd.analysis.forecast.scores import covered, quantiles
from hpcrowd.environment.clock import HOUR, WEEK, Clock
from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.holds.rules import Parent
from hpcrowd.environment.jobs import UNKNOWN, Int64s, JobTable
from hpcrowd.environment.requests import Ask, joined
from hpcrowd.environment.schedulers.past import Placed
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.scenarios.studies.running import run_tasks
from hpcrowd.scenarios.studies.slurm.records import Key, Record, Try
from hpcrowd.scenarios.studies.slurm.schedules import (
    Queued,
    nearest,
    read_expected,
    read_queue,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcrowd.environment.machine.model import Machine
    from hpcrowd.scenarios.studies.slurm.simulated import Replayed
    from hpcrowd.scenarios.terminal import Progress

#: Futures at each moment, and how far they go, s (our choice; medians beyond count as that far).
FUTURES, HORIZON = 20, 24 * HOUR

#: The forecasters, and what their users do.
FORECASTERS = {"fresh": "none", "week": "rigid"}

#: Ends of the classes of jobs but the last, by how soon Slurm expects them to start, s; and names.
CLASS_ENDS, CLASSES = (1800, 7200), ("below 30 min", "30 min to 2 h", "beyond 2 h")

#: Reasons of jobs that do not start by themselves, as in samples.
WAITS_FOR_JOB = "Dependency"
HELD = frozenset((WAITS_FOR_JOB, "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin"))

#: State of a try after which its job is back in the queue.
PREEMPTED = "PREEMPTED"

#: Parts that the moments of a run are shared in, for processes.
PARTS = 4


class Known(NamedTuple):
    """What is known at a moment."""

    state: ClusterState
    key_of: dict[int, Key]  #: the jobs of the run, by row of the state
    awaits: dict[int, tuple[Parent, ...]]  #: what held jobs wait for that will be over some time


@dataclass(frozen=True)
class Scene:
    """A recorded run from whose samples one forecasts."""

    record: Record  #: The run.
    before: Record | None = None  #: The run a week before; None for none.

    @property
    def shift(self) -> int:
        """The start of the plan, s since the origin of states."""
        return 0 if self.before is None else WEEK

    @cached_property
    def machine(self) -> Machine:
        """The machine of the run."""
        from hpcrowd.scenarios.studies.slurm.simulated import machine_of

        return machine_of(self.record)

    @cached_property
    def workload(self) -> Replayed:
        """The jobs of the run, with what their users asked for."""
        return _jobs_of(self.record)

    @cached_property
    def samples(self) -> dict[int, list[Queued]]:
        """The jobs that waited or ran, by moment."""
        found: dict[int, list[Queued]] = {}
        for one in read_queue(self.record):
            if one.key in self.workload.row_of:
                found.setdefault(one.moment, []).append(one)
        return found

    @cached_property
    def expected(self) -> dict[int, dict[Key, int]]:
        """When Slurm expected jobs to start, by the moment of the sample of the queue."""
        said = read_expected(self.record)
        paired = {moment: nearest(said, moment) for moment in sorted(self.samples)}
        return {moment: said[other] for moment, other in paired.items() if other != UNKNOWN}

    @cached_property
    def _earlier(self) -> tuple[JobTable, list[Try]] | None:
        """The jobs of the run before that ran, and their tries."""
        if self.before is None:
            return None
        whole = _jobs_of(self.before)
        tries = [
            one
            for one in self.before.tries
            if one.key in whole.row_of and one.started and one.end != UNKNOWN
            if one.state != PREEMPTED
        ]
        rows = np.array([whole.row_of[one.key] for one in tries], np.int64)
        return taken(whole.jobs, rows), tries

    def known_at(self, moment: int) -> Known:
        """Return what was known at a sample of the queue, s since the start of the plan."""
        here = self.samples[moment]
        listed = {one.key for one in here}
        over = [
            one
            for one in self.record.tries
            if one.submit > UNKNOWN and UNKNOWN < one.end <= moment
            if one.state != PREEMPTED and one.key not in listed and one.key in self.workload.row_of
        ]
        keys = [one.key for one in here] + [one.key for one in over]
        jobs = _table(self.workload, keys, self.shift)
        times = [
            (one.submit, UNKNOWN if _waits(one) else min(one.expected, moment), UNKNOWN)
            for one in here
        ] + [(one.submit, one.start, max(one.end, one.submit)) for one in over]
        _set_times(jobs, times, self.shift)
        if self._earlier is not None:
            jobs = _behind(jobs, *self._earlier)
        order = np.argsort(jobs.recorded_submit, kind="stable")
        state_jobs = jobs.take(order)
        state_jobs.number[:] = np.arange(1, len(order) + 1)
        place = np.argsort(order).tolist()
        state = ClusterState(
            state_jobs, moment + self.shift, Clock(self.record.origin - self.shift, known=True),
            self.machine.cores, source=f"{self.record.name} at {moment} s",
            held={place[row]: one.reason for row, one in enumerate(here) if one.reason in HELD},
            placed={place[row]: self._placed(one) for row, one in enumerate(here)},
            partitions=tuple(one.name for one in self.machine.partitions),
        )  # fmt: skip
        key_of = {place[row]: key for row, key in enumerate(keys)}
        row_of = {one.key: place[row] for row, one in enumerate(here)}
        return Known(state, key_of, self._awaits(state, key_of, row_of))

    def _placed(self, one: Queued) -> Placed:
        if not _waits(one):
            return Placed(one.partition, tuple(_names(one.nodes)))
        tries = self.record.jobs.get(one.key, ())
        if any(run.state == PREEMPTED and UNKNOWN < run.end <= one.moment for run in tries):
            again = one.submit + self.machine.scheduling.requeue_delay
            return Placed(eligible=again + self.shift)
        return Placed()

    def _awaits(
        self, state: ClusterState, key_of: Mapping[int, Key], row_of: Mapping[Key, int]
    ) -> dict[int, tuple[Parent, ...]]:
        """Return what held jobs wait for, those left out that wait for a job that stays held."""
        found: dict[int, tuple[Parent, ...]] = {}
        for row, reason in state.held.items():
            line = self.record.lines[key_of[row].plan]
            if reason == WAITS_FOR_JOB and line.condition and line.parent in self.record.lines:
                keys = self.record.lines[line.parent].keys
                rows = [row_of[key] for key in keys if key in row_of]
                found[row] = tuple(Parent(other, line.condition) for other in rows)
        while True:
            stuck = [
                row
                for row, parents in found.items()
                if not parents
                or any(one.row in state.held and one.row not in found for one in parents)
            ]
            if not stuck:
                return found
            for row in stuck:
                del found[row]

    def start_after(self, key: Key, moment: int) -> int:
        """Return when a job started next after a moment, s; -1 if it did not."""
        starts = [one.start for one in self.record.jobs.get(key, ()) if one.start > moment]
        return min(starts, default=UNKNOWN)


@dataclass(frozen=True)
class Case:
    """Forecasts of one moment, and the starts that came; all times in s from that moment."""

    moment: int  #: s since the start of the plan.
    keys: tuple[Key, ...]  #: The jobs of which Slurm expected a start.
    said: Int64s  #: When Slurm expected it, shape (jobs,).
    #: When it came; -1 if the record ends before, or the job was taken back, shape (jobs,).
    came: Int64s
    #: When it came in futures; infinite beyond the horizon, shape (futures, jobs).
    futures: NDArray[np.float64]

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """The quantiles of the futures, shape (jobs, levels)."""
        return quantiles(self.futures.T, LEVELS)


@dataclass(frozen=True)
class Score:
    """How near forecasts of some jobs were; errors in s, of forecasts less starts."""

    #: Jobs at moments that count, and those that did not start within the record.
    jobs: int
    missing: int
    #: Mean error without the sign, its median, and mean with the sign; of the median in futures,
    #: raw and recalibrated.
    slurm: tuple[float, float, float]
    ours: tuple[float, float, float]
    recalibrated: tuple[float, float, float]
    #: Share of starts within bounds, raw and recalibrated.
    cover50: tuple[float, float]
    cover90: tuple[float, float]
    width: float  #: Median width of the recalibrated 90 % bounds, s.


@dataclass
class Forecasts:
    """Forecasts of recorded runs."""

    #: By forecaster and run.
    cases: dict[tuple[str, str], list[Case]] = field(default_factory=dict)
    #: The run that each run has before it; runs without one are left out.
    week_before: dict[str, str] = field(default_factory=dict)
    futures: int = FUTURES  #: Futures at each moment.

    def scores(self, forecaster: str) -> dict[tuple[str, str], Score]:
        """Return the scores of a forecaster by run and class; those of all runs are the last.

        Classes without a job that started are left out.
        """
        parts: dict[str, list[_Judged]] = {}
        for (name, run), cases in self.cases.items():
            if name == forecaster:
                before = self.cases.get(("fresh", self.week_before.get(run, "")), [])
                judged = _judged(cases, recalibrated(cases, before))
                parts[run] = [judged]
                parts.setdefault("all", []).append(judged)
        parts["all"] = parts.pop("all", [])
        found = {}
        for run, ones in parts.items():
            if ones:
                whole = _Judged(*(np.concatenate(columns) for columns in zip(*ones, strict=True)))
                kinds = np.searchsorted(CLASS_ENDS, whole.said, "right")
                for kind, name in enumerate(CLASSES):
                    if ((kinds == kind) & (whole.came != UNKNOWN)).any():
                        found[run, name] = _score(whole, kinds == kind)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "futures": self.futures,
            "week_before": self.week_before,
            "scores": [
                {"forecaster": name, "run": run, "class": kind, **asdict(score)}
                for name in FORECASTERS
                for (run, kind), score in self.scores(name).items()
            ],
        }

    def rows(self) -> list[list[str]]:
        """Return the scores."""
        return [
            _row(forecaster, run, kind, score)
            for forecaster in FORECASTERS
            for (run, kind), score in self.scores(forecaster).items()
        ]


def forecasts_of(
    records: Sequence[Record],
    futures: int = FUTURES,
    seed: int = 0,
    progress: Progress | None = None,
    workers: int = 1,
) -> Forecasts:
    """Return forecasts at all samples of recorded runs, with some futures at each moment.

    Runs without samples of ``squeue --start`` are left out. Progress is called before the first
    part of a run and after each. Where all runs have the same plan, none is the week before
    another, and only the fresh forecaster is judged. Raises TraceError without such a run.
    """
    runs, before = weeks_before(records)
    judged = [
        (name, place)
        for name in FORECASTERS
        for place in range(len(runs))
        if name == "fresh" or place in before
    ]
    tasks = [(*one, part) for one in judged for part in range(PARTS)]
    work = partial(_cases_of, runs, before, futures, seed)
    done = dict(run_tasks(work, tasks, workers, progress, lambda task: runs[task[1]].name))
    found = Forecasts({}, {runs[a].name: runs[b].name for a, b in before.items()}, futures)
    for name, place in judged:
        cases = [case for part in range(PARTS) for case in done[name, place, part]]
        found.cases[name, runs[place].name] = sorted(cases, key=lambda one: one.moment)
    return found


def weeks_before(records: Sequence[Record]) -> tuple[list[Record], dict[int, int]]:
    """Return the runs of which there are forecasts, and which is the week before each, by place.

    Runs without a run of another plan have none. Raises TraceError if there are no runs.
    """
    runs = [one for one in records if not one.is_log and Scene(one).expected]
    if not runs:
        raise TraceError(
            "forecasts: need a recorded run with samples of squeue --start; give its folder with "
            "--records"
        )
    others = {
        place: [other for other, one in enumerate(runs) if not one.same_plan(run)]
        for place, run in enumerate(runs)
    }
    return runs, {place: found[0] for place, found in others.items() if found}


def _cases_of(
    runs: Sequence[Record],
    before: Mapping[int, int],
    futures: int,
    seed: int,
    task: tuple[str, int, int],
) -> list[Case]:
    """Return a part of the cases of a run, by forecaster, run and part."""
    name, place, part = task
    scene = Scene(runs[place], None if name == "fresh" else runs[before[place]])
    moments = sorted(scene.expected)[part::PARTS]
    found = [case_at(scene, moment, FORECASTERS[name], futures, seed) for moment in moments]
    return [case for case in found if len(case.keys)]


def case_at(
    scene: Scene, moment: int, users: str = "none", futures: int = FUTURES, seed: int = 0
) -> Case:
    """Return the forecasts at a sample, s since the start of the plan, and what came.

    Users do one of :data:`hpcrowd.analysis.forecast.futures.USERS`.
    """
    from hpcrowd.analysis.forecast.futures import Outset
    from hpcrowd.environment.schedulers.slurm.policy import Slurm

    known, said = scene.known_at(moment), scene.expected[moment]
    state = known.state
    judged = [
        (place, known.key_of[row])
        for place, row in enumerate(state.waiting.tolist())
        if known.key_of[row] in said
    ]
    keys = tuple(key for _, key in judged)
    starts = np.zeros((futures, len(keys)))
    if keys:
        outset = Outset(
            state, HORIZON, scheduler=Slurm(), users=users, overrun="kill", machine=scene.machine,
            jobs_only=True, awaits=known.awaits,
        )  # fmt: skip
        places = len(state.running) + np.array([place for place, _ in judged], np.int64)
        all_of = (outset.simulate(number, seed).start[places] for number in range(futures))
        starts = np.array(list(all_of), np.float64) - state.now
        starts[starts < 0] = np.inf
    came = np.array([scene.start_after(key, moment) for key in keys], np.int64)
    return Case(
        moment, keys, np.array([said[key] for key in keys], np.int64) - moment,
        np.where(came == UNKNOWN, UNKNOWN, came - moment), starts,
    )  # fmt: skip


def recalibrated(cases: Sequence[Case], before: Sequence[Case]) -> list[NDArray[np.float64]]:
    """Return the bounds of cases, s from their moment, each corrected by what was known earlier.

    Cases are by moment; of those before, of an earlier run, all outcomes are known. Bounds have the
    shape (jobs, levels).
    """
    offsets = Recalibration(LEVELS, classes=_kinds(np.zeros((0, len(LEVELS))))[1])
    for case in before:
        there = case.came != UNKNOWN
        bounds = case.bounds[there]
        offsets.learn(bounds, case.came[there].astype(np.float64), classes=_kinds(bounds)[0])
    found, still_open = [], OpenForecasts(offsets)
    for case in cases:
        still_open.learn(case.moment)
        kinds = _kinds(case.bounds)[0]
        start = np.where(case.came == UNKNOWN, UNKNOWN, case.moment + case.came)
        still_open.add(case.bounds, case.moment, start, kinds)
        found.append(offsets.adjusted(case.bounds, kinds))
    return found


def _kinds(bounds: NDArray[np.float64]) -> tuple[Int64s, int]:
    """Return the class of each job by its median, and how many classes there are."""
    return wait_classes(bounds[:, LEVELS.index(0.5)], CLASS_ENDS), len(CLASS_ENDS) + 1


# ---- tables ------------------------------------------------------------------------------------


class _Judged(NamedTuple):
    """Forecasts of jobs at moments, and what came, s from then; one row a job and moment."""

    said: Int64s
    came: Int64s
    raw: NDArray[np.float64]  #: shape (rows, levels)
    corrected: NDArray[np.float64]


def _judged(cases: Sequence[Case], corrected: Sequence[NDArray[np.float64]]) -> _Judged:
    nothing = np.zeros((0, len(LEVELS)))
    return _Judged(
        np.concatenate([np.zeros(0, np.int64), *(one.said for one in cases)]),
        np.concatenate([np.zeros(0, np.int64), *(one.came for one in cases)]),
        np.concatenate([nothing, *(one.bounds for one in cases)]),
        np.concatenate([nothing, *corrected]),
    )


def _score(judged: _Judged, which: NDArray[np.bool_]) -> Score:
    counts = which & (judged.came != UNKNOWN)
    said, came, raw, corrected = (one[counts] for one in judged)
    middle, last = LEVELS.index(0.5), len(LEVELS) - 1

    def errors(forecast: NDArray[Any]) -> tuple[float, float, float]:
        error = forecast - came
        size = np.abs(error)
        return float(size.mean()), float(np.median(size)), float(error.mean())

    def shares(low: int) -> tuple[float, float]:
        first, second = (covered(one[:, low], one[:, last - low], came) for one in (raw, corrected))
        return first, second

    within = np.minimum(corrected, HORIZON)
    return Score(
        jobs=len(came),
        missing=int(which.sum()) - len(came),
        slurm=errors(said),
        ours=errors(np.minimum(raw[:, middle], HORIZON)),
        recalibrated=errors(within[:, middle]),
        cover50=shares(1),
        cover90=shares(0),
        width=float(np.median(within[:, -1] - within[:, 0])),
    )


def _row(forecaster: str, run: str, kind: str, score: Score) -> list[str]:
    known = {"fresh": "nothing", "week": "another plan's run"}[forecaster]
    return [
        known, run, kind, f"{score.jobs:,}", *(f"{one:,.0f}" for one in score.slurm),
        *(f"{one:,.0f}" for one in score.ours), f"{score.recalibrated[0]:,.0f}",
        *(f"{100 * raw:.0f}, {100 * then:.0f}" for raw, then in (score.cover50, score.cover90)),
        f"{score.width:,.0f}", f"{score.missing:,}",
    ]  # fmt: skip


# ---- states ------------------------------------------------------------------------------------


def _waits(one: Queued) -> bool:
    return one.state == "PENDING"


def _names(nodes: str) -> tuple[str, ...]:
    from hpcrowd.environment.machine.hostlists import expand

    return tuple(expand(nodes))


def _table(workload: Replayed, keys: Sequence[Key], shift: int) -> JobTable:
    """Return what users asked for some jobs, with begin times that are later by a shift, s."""
    rows = np.array([workload.row_of[key] for key in keys], np.int64)
    jobs = taken(workload.jobs, rows)
    if jobs.requests is not None:
        begin = jobs.requests[Ask.BEGIN]
        begin[begin != UNKNOWN] += shift - workload.shift
    jobs.erase_outcome()
    return jobs


def _jobs_of(record: Record) -> Replayed:
    from hpcrowd.scenarios.studies.slurm.simulated import replayed

    return replayed(record)


def taken(jobs: JobTable, rows: Int64s) -> JobTable:
    """Return some jobs with what they ask for."""
    found = jobs.take(rows)
    found.requests = jobs.requests and jobs.requests.take(rows)
    return found


def _set_times(jobs: JobTable, times: Sequence[tuple[int, int, int]], shift: int) -> None:
    """Set submissions, starts and ends; what is not known is -1, and so are its run times."""
    columns = np.array(times, np.int64).reshape(-1, 3).T
    for column, values in zip(
        (jobs.recorded_submit, jobs.recorded_start, jobs.recorded_end), columns, strict=True
    ):
        column[:] = np.where(values == UNKNOWN, UNKNOWN, values + shift)
    ran = (jobs.recorded_start != UNKNOWN) & (jobs.recorded_end != UNKNOWN)
    jobs.run_time[:] = np.where(ran, jobs.recorded_end - jobs.recorded_start, UNKNOWN)


def _behind(jobs: JobTable, more: JobTable, tries: Sequence[Try]) -> JobTable:
    """Return a table with more jobs behind it, joined by the names of users and partitions."""
    more = more.copy()
    more.erase_outcome()
    _set_times(more, [(one.submit, one.start, max(one.end, one.start)) for one in tries], 0)
    names = {}
    for name in ("user", "group", "queue"):
        known = jobs.names[name]
        number_of = {word: number for number, word in known.items()}
        words = more.names[name]
        column = getattr(more, name)
        for row, one in enumerate(column.tolist()):
            column[row] = number_of.setdefault(words[one], max(number_of.values(), default=0) + 1)
        names[name] = {number: word for word, number in number_of.items()}
    both = JobTable(len(jobs) + len(more))
    both.matrix = np.concatenate((jobs.matrix, more.matrix), axis=1)
    both.names = names
    both.requests = joined([one.requests or len(one) for one in (jobs, more)])
    return both
