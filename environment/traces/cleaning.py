"""Clean a trace: remove jobs that are not real work, or not typical work.

Rules are applied only on request. Each is judged on the whole trace, whatever the other rules
remove, and counted.

Flurries are bursts of submissions by a single user. Feitelson and Tsafrir (Workload sanitation for
performance evaluation, ISPASS 2006) found that logs hold surges of activity by one user that
dominate for a short time, and removed them by hand, log by log. Here a rule replaces the manual
choice: it removes the jobs in every stretch of a given length in which their user submitted more
than a given number of jobs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError, TraceError
from hpcrowd.environment.quantities import SECONDS, parse_duration, plural
from hpcrowd.environment.traces.headers import true_header
from hpcrowd.environment.traces.trace import Trace, cut_references, take_jobs

_RATE = re.compile(r"(\d+)\s*/\s*(\d.*|[smhdw])", re.ASCII)


@dataclass(frozen=True)
class Flurry:
    """A burst that was found.

    Attributes
    ----------
    user
        The user.
    first, last
        Submission of its first and last job, s.
    jobs
        Number of jobs.
    """

    user: int
    first: int
    last: int
    jobs: int


@dataclass(frozen=True)
class FlurryRule:
    """The definition of a flurry.

    A job with submit time s belongs to one when there is a time t with t <= s < t + ``within_s``
    such that its user submitted more than ``most`` jobs from t on and before t + ``within_s``. Jobs
    without a user or a submit time belong to none.

    Attributes
    ----------
    most
        Largest number of jobs that is not a flurry. The default finds none in the cleaned versions
        of KTH-SP2, LANL-CM5, LLNL-Thunder, NASA-iPSC and SDSC-DS in the archive, and 1.5 to 4.4 %
        of the jobs of HPC2N, of CEA-Curie, and of DAS2-fs1 and LCG, which were never cleaned.
    within_s
        Length of the stretches of time, s.
    """

    most: int = 500
    within_s: int = 3600

    def __post_init__(self) -> None:
        if self.most < 1 or self.within_s < 1:
            raise QuantityError(
                f"flurries {self.most}/{self.within_s}s: both numbers must be 1 or more"
            )

    @classmethod
    def parse(cls, text: str) -> FlurryRule:
        """Return the rule of a rate such as ``100/1h`` (more than 100 jobs within an hour).

        Raises
        ------
        QuantityError
            If it is not a rate.
        """
        match = _RATE.fullmatch(text.strip())
        if not match:
            raise QuantityError(f"flurries {text!r}: not jobs per time; write for example 500/1h")
        time = match[2] if match[2][0].isdigit() else f"1{match[2]}"
        return cls(int(match[1]), parse_duration(time, f"rate {text!r}: time"))

    def __str__(self) -> str:
        unit = next(u for u in reversed(SECONDS) if self.within_s % SECONDS[u] == 0)
        return f"{self.most}/{self.within_s // SECONDS[unit]}{unit}"

    def find(self, trace: Trace) -> tuple[NDArray[np.bool_], list[Flurry]]:
        """Return which jobs belong to flurries, shape (jobs,), and the flurries by user and time.

        Stretches that share a job are one flurry.
        """
        user, submit = trace["user"], trace["submit"].astype(np.float64)
        rows = np.flatnonzero((user >= 0) & (submit >= 0))
        rows = rows[np.lexsort((submit[rows], user[rows]))]
        user, submit = user[rows], submit[rows]
        # If a stretch of most + 1 consecutive jobs of a user is short enough, remove all of them.
        most = min(self.most, len(rows))
        begins = np.flatnonzero(
            (user[most:] == user[: len(rows) - most])
            & (submit[most:] - submit[: len(rows) - most] < self.within_s)
        )
        burst = _covered(begins, begins + most, len(rows))
        joined = _covered(begins, begins + most - 1, len(rows))  # with the next job of the user
        found = np.zeros(len(trace), bool)
        found[rows[burst]] = True
        first = np.flatnonzero(burst & ~np.append(False, joined)[: len(rows)])
        last = np.flatnonzero(burst & ~joined)
        return found, [
            Flurry(int(user[a]), int(submit[a]), int(submit[b]), int(b - a + 1))
            for a, b in zip(first.tolist(), last.tolist(), strict=True)
        ]


def _covered(first: NDArray[np.intp], last: NDArray[np.intp], length: int) -> NDArray[np.bool_]:
    """Return which of ``length`` places lie in one of the stretches, both ends included."""
    steps = np.bincount(first, minlength=length + 1)
    steps -= np.bincount(last + 1, minlength=length + 1)
    covered: NDArray[np.bool_] = np.cumsum(steps)[:length] > 0
    return covered


@dataclass(frozen=True)
class CleaningRules:
    """What to remove from a trace; by default nothing.

    Attributes
    ----------
    flurries
        Jobs of bursts by a single user.
    larger
        Jobs that request or got more processors than the machine has: ``MaxProcs`` of the header,
        else ``MaxNodes``.
    no_run_time
        Jobs whose run time is 0, negative or unknown.
    no_user
        Jobs whose user is unknown.
    first_days
        Jobs submitted less than this many days after the first submission.
    last_days
        Jobs submitted less than this many days before the last submission, and the last one.
    """

    flurries: FlurryRule | None = None
    larger: bool = False
    no_run_time: bool = False
    no_user: bool = False
    first_days: float | None = None
    last_days: float | None = None

    def __post_init__(self) -> None:
        for name, days in (("first", self.first_days), ("last", self.last_days)):
            if days is not None and not 0 < days < float("inf"):
                raise QuantityError(f"{name} {days:g} days: must be more than 0, for example 7")

    @classmethod
    def every(cls, trace: Trace) -> CleaningRules:
        """Return every rule that a trace has the data for, each with its default."""
        return cls(FlurryRule(), trace.header.processors is not None, True, True, 1, 1)

    def __bool__(self) -> bool:
        return self != CleaningRules()


@dataclass(frozen=True)
class Removed:
    """The jobs that a rule removes, or all rules together.

    Attributes
    ----------
    rule
        Its name, as on the command line.
    what
        The jobs, in words.
    jobs
        Number of jobs.
    users
        Number of users with such jobs.
    job_share
        Share of all jobs.
    work_share
        Share of all processor-seconds: allocated processors (requested where unknown) times run
        time; 0 where there are none.
    """

    rule: str
    what: str
    jobs: int
    users: int
    job_share: float
    work_share: float


@dataclass(frozen=True)
class Cleaned:
    """The outcome of :func:`clean`, or what it would be.

    Attributes
    ----------
    jobs, users
        Numbers before cleaning.
    rules
        What each rule removes. Several may apply to one job.
    together
        What all rules remove together.
    flurries
        The bursts that were found, by user and time.
    cut
        Number of references to removed jobs, which become -1.
    """

    jobs: int
    users: int
    rules: tuple[Removed, ...]
    together: Removed
    flurries: tuple[Flurry, ...] = ()
    cut: int = 0


def clean(trace: Trace, rules: CleaningRules) -> tuple[Trace, Cleaned]:
    """Return a trace without the jobs that the rules remove, and what each rule removed.

    The other jobs keep their order and are unchanged, except for references to removed jobs. The
    origin stays even if the first days are removed; ``hc.window`` moves it.

    Raises
    ------
    TraceError
        If no job is left, or a rule needs the size of the machine and the header lacks it.
    """
    gone, cleaned = judge(trace, rules)
    if gone.all():
        what = "; ".join(f"{rule.jobs:,} {rule.what}" for rule in cleaned.rules)
        raise TraceError(f"{trace.source}: no job is left of {len(trace):,}: {what}")
    part, cut = cut_references(trace, take_jobs(trace, ~gone))
    told = "".join(f"; {rule.what} ({plural(rule.jobs, 'job')})" for rule in cleaned.rules)
    note = f"hpcrowd clean: {cleaned.together.jobs:,} of {plural(len(trace), 'job')} removed{told}"
    part.header = true_header(trace, part, moved=0, note=note)
    return part, replace(cleaned, cut=cut)


def judge(trace: Trace, rules: CleaningRules) -> tuple[NDArray[np.bool_], Cleaned]:
    """Return which jobs the rules remove, shape (jobs,), and what each rule would remove.

    Raises
    ------
    TraceError
        If a rule needs the size of the machine and the header lacks it.
    """
    found: list[tuple[str, str, NDArray[np.bool_]]] = []
    flurries: list[Flurry] = []
    if rules.flurries is not None:
        mask, flurries = rules.flurries.find(trace)
        what = f"in {plural(len(flurries), 'burst')} above {rules.flurries}"
        found.append(("flurries", what, mask))
    if rules.larger:
        found.append(("larger", *_larger(trace)))
    if rules.no_run_time:
        found.append(("no-run-time", "without a run time", trace["run"] <= 0))
    if rules.no_user:
        found.append(("no-user", "without a user", trace["user"] < 0))
    submit = trace["submit"].astype(np.float64)
    known = submit >= 0
    if rules.first_days is not None:
        edge = submit.min(where=known, initial=np.inf) + rules.first_days * DAY
        what = f"in the first {_days(rules.first_days)}"
        found.append(("first", what, known & (submit < edge)))
    if rules.last_days is not None:
        edge = submit.max(where=known, initial=-np.inf) - rules.last_days * DAY
        what = f"in the last {_days(rules.last_days)}"
        found.append(("last", what, known & (submit > edge)))
    gone = np.zeros(len(trace), bool)
    for _, _, mask in found:
        gone |= mask
    work = _work(trace)
    counted = tuple(_removed(trace, work, *each) for each in found)
    together = _removed(trace, work, "together", "together", gone)
    users = len(np.unique(trace["user"][trace["user"] >= 0]))
    return gone, Cleaned(len(trace), users, counted, together, tuple(flurries))


def _larger(trace: Trace) -> tuple[str, NDArray[np.bool_]]:
    processors = trace.header.processors
    if processors is None:
        raise TraceError(
            f"{trace.source}: no MaxProcs in the header, so the size of the machine is unknown; "
            "add a line '; MaxProcs: N'"
        )
    most = np.maximum(trace["requested_processors"], trace["allocated_processors"])
    return f"larger than {plural(processors, 'processor')}", most > processors


def _days(days: float) -> str:
    return "day" if days == 1 else f"{days:g} days"


def _work(trace: Trace) -> NDArray[np.float64]:
    """Return the processor-seconds of each job, 0 where they are unknown."""
    allocated = trace["allocated_processors"].astype(np.float64)
    processors = np.where(allocated > 0, allocated, trace["requested_processors"])
    work: NDArray[np.float64] = np.maximum(processors, 0) * np.maximum(trace["run"], 0)
    return work


def _removed(
    trace: Trace, work: NDArray[np.float64], rule: str, what: str, mask: NDArray[np.bool_]
) -> Removed:
    jobs, total = int(np.count_nonzero(mask)), float(work.sum())
    user = trace["user"][mask]
    return Removed(
        rule=rule,
        what=what,
        jobs=jobs,
        users=len(np.unique(user[user >= 0])),
        job_share=jobs / max(len(trace), 1),
        work_share=float(work[mask].sum()) / total if total else 0.0,
    )
