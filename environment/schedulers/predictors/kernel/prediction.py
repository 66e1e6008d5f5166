"""Predictions of run times, compiled: of jobs that have arrived, and along a recorded trace."""

from __future__ import annotations

from math import floor

from hpcrowd.environment.engine.kernel.places import compiled, released
from hpcrowd.environment.schedulers.predictors.kernel import history, last_two, nearest
from hpcrowd.environment.schedulers.predictors.kernel.experience import (
    NONE,
    REQUESTED_TIME,
    START,
    SUBMITTED,
    Experience,
    learn,
    meet,
)

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
