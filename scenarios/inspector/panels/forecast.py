"""The forecast: what futures from the present second say of the cluster and of waiting jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.environment.clock import DAY
from hpcrowd.environment.jobs import UNKNOWN
from hpcrowd.scenarios.inspector.panels.cluster import QUEUE_SHOWN
from hpcrowd.scenarios.inspector.subjects.outset import outset_of, users_of, why_not

if TYPE_CHECKING:
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.forecast.answers import Answers, JobAnswer
    from hpcrowd.analysis.forecast.futures import Future, Outset
    from hpcrowd.scenarios.inspector.panels.asked import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course

#: Numbers of futures after which the page shows what they say, while it waits for more.
SHOWN_AFTER = (20, 50, 100)

#: Seed of all futures of the page: the same view shows the same numbers.
SEED = 0


def forecast_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return whether there is a forecast of a run from now, and what it rests on."""
    why, moment = why_not(course), course.moment()
    return {
        "why": why,
        "running": int(moment.running.sum()),
        "waiting": int(moment.waiting.sum()),
        "users": "" if why else users_of(course)[0],
        "size": moment.size,
    }


def forecast(course: Course, message: Mapping[str, Any]) -> Iterator[int | dict[str, Any]]:
    """Simulate futures from the present second of a run.

    Parameters
    ----------
    course
        The run; it stays where it is.
    message
        The request: ``futures``, how many; ``days``, how far; ``jobs``, none, one or two
        alternatives that one would submit now, each with ``count``, ``processors``, ``requested``
        (s); ``user``, whose jobs they are like, or None.

    Yields
    ------
    int or dict
        The number of futures so far, after each; at the end, and after :data:`SHOWN_AFTER`, what
        they say: ``at``, ``until``, ``futures``, ``users``, ``submissions`` in words,
        ``scheduler``; ``jobs`` that wait and ``total`` of them; ``asked`` alternatives and
        ``versus``, how the second compares with the first; ``edges`` and ``fans`` with five bounds
        each, and the time ``before``.

    Raises
    ------
    QuantityError
        If the run has no state to go on from, or a job is larger than the machine.
    """
    from hpcrowd.analysis.forecast.answers import answers_of
    from hpcrowd.analysis.forecast.futures import Asked as AskedJob

    user = UNKNOWN if message.get("user") is None else int(message["user"])
    wanted = [
        AskedJob(one["processors"], one["requested"], user=user, count=one["count"])
        for one in message["jobs"]
    ]
    sets = [[one] for one in wanted] or [[]]
    outsets = [outset_of(course, int(message["days"]) * DAY, one) for one in sets]
    found: list[list[Future]] = [[] for _ in outsets]
    done, last = 0, int(message["futures"])
    for number in range(last):  # pair by pair
        for futures, outset in zip(found, outsets, strict=True):
            futures.append(outset.simulate(number, SEED))
            done += 1
            yield done
        if number + 1 == last or number + 1 in SHOWN_AFTER:
            answers = [answers_of(*one) for one in zip(outsets, found, strict=True)]
            yield {
                **_answers_data(answers[0]),
                "asked": [_job_data(one.jobs[-1]) for one in answers] if wanted else [],
                "versus": versus(outsets, found) if len(outsets) > 1 else None,
            }


def _answers_data(answers: Answers) -> dict[str, Any]:
    """Return what futures say of the cluster and of the jobs that wait."""
    waiting = [one for one in answers.jobs if one.number is not None]
    size = answers.processors
    scale = {"load": size}  # processors, as in the other pictures of the page
    return {
        "at": answers.now,
        "until": answers.until,
        "futures": answers.futures,
        "users": answers.users,
        "submissions": answers.submissions.words,
        "scheduler": answers.scheduler,
        "size": size,
        "jobs": [_job_data(one) for one in waiting[:QUEUE_SHOWN]],
        "total": len(waiting),
        "edges": answers.edges,
        "fans": {
            name: [row * scale.get(name, 1) for row in fan.bounds]
            for name, fan in answers.fans.items()
        },
        "before": {
            "edges": answers.edges_before,
            **{name: fan.before * scale.get(name, 1) for name, fan in answers.fans.items()},
        },
    }


def _job_data(one: JobAnswer) -> dict[str, Any]:
    """Return the answer on a job; a bound beyond the horizon is None."""
    return {
        "job": one.number,
        "user": one.user,
        "processors": one.processors,
        "requested": one.requested,
        "count": one.count,
        "start": one.start.tolist(),
        "end": None if one.end is None else one.end.tolist(),
        "within": one.within,
        "reason": one.reason,
        "held": one.held,
    }


def versus(outsets: Sequence[Outset], futures: Sequence[Sequence[Future]]) -> dict[str, Any]:
    """Return how the second alternative compares with the first, future by future.

    Futures of the same number are alike but for the jobs that one would submit. What does not end
    within the horizon is later than what does; of two that do not, nobody knows.

    Returns
    -------
    dict
        Shares of the pairs in which the ``second`` ends first, the ``first`` does, and of the
        others (``open``: equal, or both beyond the horizon); ``difference``, bounds of second minus
        first, s, over the pairs in which both end; None without one.
    """
    from hpcrowd.analysis.forecast.answers import starts_of
    from hpcrowd.analysis.forecast.bounds import over_futures

    ends: list[Floats] = [
        starts_of(outset, some)[1][-1] for outset, some in zip(outsets, futures, strict=True)
    ]
    one, two = ends
    both = np.isfinite(one) & np.isfinite(two)
    return {
        "second": float((two < one).mean()),
        "first": float((one < two).mean()),
        "open": float((one == two).mean()),
        "difference": over_futures((two - one)[both][:, None])[:, 0].tolist()
        if both.any()
        else None,
    }
