"""Zakay and Feitelson 2015: what is measured of each simulation, and of the recorded log.

A simulation is reduced to an :class:`Outcome` as soon as it has ended, so that a study of many
seeds and large logs fits into memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.curves import Floats, activity_lengths
from analysis.profiles import weekly_profile
from analysis.run import Run
from environment.clock import DAY, HOUR, Clock
from environment.jobs import UNKNOWN, Int64s

#: When windows open in the distribution model, s after local midnight (section VII-B).
OPENINGS = (7 * HOUR + HOUR // 2, 17 * HOUR + HOUR // 2)

#: How far a user's own hours may lie from those, s (section VII-B: RAND).
SHIFT = HOUR


@dataclass(frozen=True)
class Outcome:
    """What a simulation, or the recorded log, was like.

    Attributes
    ----------
    seed
        Of the simulation; -1 for the record.
    wait_mean_s
        Mean wait of the jobs that ran.
    lateness_mean_s
        Mean of simulated minus recorded submission.
    profile
        Share of submissions in each local hour of the week, shape (168,).
    slot_share
        Share of submissions within an hour of 7:30 or 17:30 local time, when windows open in the
        distribution model.
    after_last_share
        Share of submissions after the last recorded submission of their user.
    activity_s
        Activity length of each user, last minus first submission, by user number, shape (users,).
    queue
        Share of time with 0, 1, ... jobs waiting, from the first to the last recorded submission.
    """

    seed: int
    wait_mean_s: float | None
    lateness_mean_s: float
    profile: Floats
    slot_share: float
    after_last_share: float
    activity_s: Int64s
    queue: Floats

    @property
    def queue_mean(self) -> float:
        """Mean number of jobs waiting."""
        return float(self.queue @ np.arange(len(self.queue)))


def outcome_of(run: Run, seed: int) -> Outcome:
    """Return what a simulation was like."""
    return _measure(run, run.jobs.submit, run.jobs.start, seed)


def recorded_outcome(run: Run) -> Outcome:
    """Return what the log was like that a run replays."""
    return _measure(run, run.jobs.recorded_submit, run.jobs.recorded_start, -1)


def _measure(run: Run, submit: Int64s, start: Int64s, seed: int) -> Outcome:
    jobs = run.jobs
    recorded = jobs.recorded_submit
    known = submit != UNKNOWN
    ran = known & (start != UNKNOWN)
    wait = (start - submit)[ran]
    users, user = np.unique(jobs.user, return_inverse=True)
    last = np.full(len(users), np.iinfo(np.int64).min)
    np.maximum.at(last, user, recorded)
    return Outcome(
        seed=seed,
        wait_mean_s=float(wait.mean()) if len(wait) else None,
        lateness_mean_s=float((submit - recorded)[known].mean()) if known.any() else 0.0,
        profile=weekly_profile(submit, run.clock),
        slot_share=slot_share(submit[known], run.clock),
        after_last_share=float((submit > last[user]).mean()),
        activity_s=activity_lengths(jobs.user, submit),
        queue=queue_shares(submit[ran], start[ran], int(recorded.min()), int(recorded.max())),
    )


def slot_share(submit: Int64s, clock: Clock) -> float:
    """Return the share of submissions within an hour of an opening (section VII-B)."""
    of_day = clock.second_of_week(submit) % DAY
    inside = np.zeros(len(submit), bool)
    for opening in OPENINGS:
        inside |= (of_day >= opening - SHIFT) & (of_day < opening + SHIFT)
    return float(inside.mean()) if len(submit) else 0.0


def queue_shares(submit: Int64s, start: Int64s, begin: int, until: int) -> Floats:
    """Return the share of time with 0, 1, 2, ... jobs in the queue.

    Parameters
    ----------
    submit, start
        s, of jobs that ran, shape (jobs,).
    begin, until
        s; the time that counts. Where it is empty, no job is waiting.
    """
    if until <= begin or not len(submit):
        return np.ones(1)
    times = np.concatenate([submit, start])
    steps = np.repeat(np.array([1, -1]), len(submit))
    order = np.argsort(times, kind="stable")  # at one second submissions come first
    level = np.concatenate([[0], np.cumsum(steps[order])])
    edges = np.clip(np.concatenate([[begin], times[order], [until]]), begin, until)
    shares: Floats = np.bincount(level, weights=np.diff(edges)) / (until - begin)
    return shares


def sample_distance(a: Int64s, b: Int64s) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples: how far their CDFs are apart."""
    a, b = np.sort(a), np.sort(b)
    at = np.concatenate([a, b])
    below_a = np.searchsorted(a, at, side="right") / max(len(a), 1)
    below_b = np.searchsorted(b, at, side="right") / max(len(b), 1)
    return float(np.abs(below_a - below_b).max(initial=0))


def share_distance(a: Floats, b: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of two distributions on 0, 1, 2, ..."""
    length = max(len(a), len(b))
    return float(np.abs(np.cumsum(padded(a, length)) - np.cumsum(padded(b, length))).max())


def padded(shares: Floats, length: int) -> Floats:
    """Return shares with zeros up to a length."""
    full = np.zeros(length)
    full[: len(shares)] = shares
    return full


def mean_shares(many: list[Floats]) -> Floats:
    """Return the mean of distributions on 0, 1, 2, ... of different lengths."""
    length = max(len(shares) for shares in many)
    mean: Floats = np.mean([padded(shares, length) for shares in many], axis=0)
    return mean
