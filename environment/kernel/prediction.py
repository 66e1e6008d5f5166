"""Predictions of run times, compiled: of jobs that have arrived, and along a recorded trace."""

from __future__ import annotations

from math import floor

from environment.kernel import history, last_two, nearest
from environment.kernel.experience import (
    NONE,
    REQUESTED_TIME,
    START,
    SUBMITTED,
    Experience,
    learn,
    meet,
)
from environment.kernel.places import (
    COMPLETED,
    END,
    ESTIMATE,
    EXPECTED_END,
    QUEUE_HEAD,
    QUEUE_TAIL,
    STATE,
    SUBMIT,
    compiled,
    released,
)
from environment.stops import FOREVER

# Models.
LAST_TWO, NEAREST, HISTORY = range(3)

_last_two, _nearest, _history = last_two.estimate, nearest.estimate, history.estimate


@compiled
def predict(model, memory, settings, table, row):
    """Return what a model predicts of a job that has arrived: s, rounded half up, at least 1."""
    requested = table[REQUESTED_TIME, row]
    if model == LAST_TWO:
        value = _last_two(memory, settings, requested, row)
    elif model == NEAREST:
        value = _nearest(memory, settings, requested, row)
    else:
        value = _history(memory, settings, requested, row)
    return max(floor(value + 0.5), 1)


# What Python calls takes the arrays of an experience as a plain tuple: numba looks at a named one
# for two microseconds at every call.


@compiled
def predict_all(model, arrays, settings, table, rows, predicted):
    """Fill in the predictions of jobs; return the first that has not arrived, or NONE."""
    memory = Experience(*arrays)
    for place in range(len(rows)):
        if memory.jobs[rows[place], SUBMITTED] == NONE:
            return rows[place]
        predicted[place] = predict(model, memory, settings, table, rows[place])
    return NONE


@compiled
def meet_all(arrays, table, rows):
    """Take in jobs that have arrived."""
    memory = Experience(*arrays)
    for place in range(len(rows)):
        meet(memory, table, rows[place])


@compiled
def learn_all(arrays, table, rows, now):
    """Take in that jobs have ended now."""
    memory = Experience(*arrays)
    for place in range(len(rows)):
        learn(memory, rows[place], now - table[START, rows[place]])


@compiled
def foretell(foresight, jobs, s, queue, ended):
    """Let a predictor hear what ended and arrived since the last pass, and fill in estimates.

    As ``environment.engine.Engine._predict``. ``foresight`` is its model, arrays and settings.
    """
    model, arrays, settings = foresight
    memory = Experience(*arrays)
    end, next_end = s[EXPECTED_END], 0
    tail, first = s[QUEUE_TAIL], s[QUEUE_HEAD]
    while next_end < end or first < tail:
        now = jobs[END, ended[0, next_end]] if next_end < end else FOREVER
        if first < tail:
            now = min(now, jobs[SUBMIT, queue[0, first]])
        while next_end < end and jobs[END, ended[0, next_end]] == now:
            job = ended[0, next_end]
            if jobs[STATE, job] == COMPLETED:
                learn(memory, job, now - jobs[START, job])
            next_end += 1
        last = first
        while last < tail and jobs[SUBMIT, queue[0, last]] == now:
            meet(memory, jobs, queue[0, last])
            last += 1
        for place in range(first, last):
            job = queue[0, place]
            jobs[ESTIMATE, job] = predict(model, memory, settings, jobs, job)
        first = last


@released
def follow(model, arrays, settings, table, time, row, kind, predicted):
    """Go through events and fill in what is predicted of each job at its arrival, s."""
    at = 0
    while at < len(time):
        until = at + 1
        while until < len(time) and time[until] == time[at] and kind[until] == kind[at]:
            until += 1
        rows = row[at:until]
        if kind[at] == 0:
            learn_all(arrays, table, rows, time[at])
        else:
            meet_all(arrays, table, rows)
            memory = Experience(*arrays)
            for job in rows:
                predicted[job] = predict(model, memory, settings, table, job)
        at = until
