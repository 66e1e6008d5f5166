"""Futures of a run from the present second, and what they say of the cluster and waiting jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.views.users import behaviour_words
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.jobs import UNKNOWN, State
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.names import RECORDED
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.scenarios.inspector.panels.cluster import QUEUE_SHOWN
from hpcrowd.scenarios.inspector.subjects.course import LiveCourse, PlayedBack

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.forecast.answers import Answers, JobAnswer
    from hpcrowd.analysis.forecast.futures import Asked as AskedJob
    from hpcrowd.analysis.forecast.futures import Future, Outset
    from hpcrowd.scenarios.inspector.panels.exchange import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course


#: What users do in futures, unless those of the run are rigid or learned.
USERS = "think-time"

_FOLDER = "open its trace or scenario instead"


def why_not(course: Course) -> str:
    """Return why no future of a run can be simulated from now, in one line; empty if some can."""
    moment = course.moment()
    if len(moment.clusters) > 1:
        return f"The run has {plural(len(moment.clusters), 'cluster')}: forecasts are of one."
    if isinstance(course, LiveCourse):
        model = course.model
        if broker_of(model) is not None:
            return "The run is of a grid, whose broker keeps jobs: forecasts are of one cluster."
        engine = model.cluster.engine
        if engine.scheduler is None:
            return (
                "The schedule is the recorded one, which says nothing of what comes: choose a "
                "scheduler in the settings."
            )
        if engine.up <= 0:
            return "No processor is up: go to a second at which some are."
    elif isinstance(course, PlayedBack):
        if course.run.configuration.get("scheduler") in (None, RECORDED):
            return "The schedule is the recorded one, which says nothing of what comes."
        if course.scheduler_name is None:
            return (
                "The folder does not say how many processors were up, or which scheduler ran: "
                f"{_FOLDER}."
            )
        if course.run.configuration.get("machine") is not None:
            return f"The folder does not say which nodes jobs ran on: {_FOLDER}."
    if not moment.submitted.any():
        return "No job has been submitted yet: go to a later second."
    return ""


def users_of(course: Course) -> tuple[str, LearnedModel | None]:
    """Return what users do in futures, and the model of learned users."""
    setting: Any = None
    if isinstance(course, LiveCourse):
        setting = getattr(course.scenario, "users", None)
        found = {behaviour_words(one.behaviour) for one in course.moment().users.values()}
        replays = getattr(course.scenario, "kind", "replay") == "replay"
    else:
        assert isinstance(course, PlayedBack)
        setting, found, replays = course.run.configuration.get("users"), set(), False
    said = setting if isinstance(setting, str) else ""
    # Of a replay the behaviours count, which may have been changed by hand.
    if found == {"rigid"} or (said == "rigid" and not replays):
        return "rigid", None
    learned = said.partition(":")[0] == "learned"
    if learned and (not replays or found == {"learned"}):
        from hpcrowd.agents.learned.model import LearnedModel

        return "learned", LearnedModel.named(said)
    if found == {"learned"}:  # by hand: only the model that is shipped is offered
        from hpcrowd.agents.learned.model import LearnedModel

        return "learned", LearnedModel.shipped()
    return USERS, None


def outset_of(course: Course, horizon: int, asked: Sequence[AskedJob] = ()) -> Outset:
    """Return what the futures of a run from now have in common; ``horizon`` in s.

    A QuantityError says that the run has no state to go on from, or that a job that one would
    submit is larger than the machine.
    """
    from hpcrowd.analysis.forecast.futures import Outset

    if reason := why_not(course):
        raise QuantityError(reason)
    users, model = users_of(course)
    more: dict[str, Any] = {}
    if isinstance(course, LiveCourse):
        simulation, scenario = course.model, course.scenario
        state = ClusterState.of_simulation(simulation, source=course.label)
        cluster = simulation.cluster
        scheduler: Any = getattr(scenario, "scheduler", cluster.scheduler)
        timeline = cluster.engine.timeline
        if timeline is not None and timeline.reviews.switches and not adaptive(cluster.scheduler):
            scheduler = str(cluster.engine.scheduler)
        more = {
            "overrun": cluster.overrun,
            "estimates": getattr(scenario, "estimates", "requested"),
        }
        if cluster.engine.scheduler is not None and cluster.engine.scheduler.nodes:
            site = getattr(scenario, "site", None)
            more["machine"] = None if site is None else site()
    else:
        assert isinstance(course, PlayedBack)
        run = course.run
        state = ClusterState.of(
            run.jobs, course.now, run.clock, run.processors, simulated=True, source=course.label
        )
        scheduler = course.scheduler_name
        given = run.configuration
        for name in ("overrun", "estimates"):
            if isinstance(given.get(name), str):
                more[name] = given[name]
        if more.get("overrun") == "given":  # the header of the input is not among the results
            more["overrun"] = "kill" if (run.jobs.state == State.KILLED).any() else "keep"
    for one in asked:
        if one.processors > state.processors:
            raise QuantityError(
                f"a job of {plural(one.processors, 'processor')}: the machine has "
                f"{state.processors:,}; ask for that many at most"
            )
    return Outset(state, horizon, scheduler, users, asked=tuple(asked), model=model, **more)


def adaptive(scheduler: str) -> bool:
    """Return whether a scheduler switches between policies by itself."""
    return scheduler.partition(":")[0] == "adaptive"


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

    There are shares of the pairs in which the ``second`` ends first, the ``first`` does, and of the
    others (``open``: equal, or both beyond the horizon); and ``difference``, bounds of second minus
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
