"""From a run at the present second to the futures that may follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.views.users import behaviour_words
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.broker import broker_of
from hpcrowd.environment.jobs import State
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.schedulers.names import RECORDED
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.scenarios.inspector.subjects.course import LiveCourse, PlayedBack

if TYPE_CHECKING:
    from hpcrowd.agents.learned.model import LearnedModel
    from hpcrowd.analysis.forecast.futures import Asked, Outset
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


def outset_of(course: Course, horizon: int, asked: Sequence[Asked] = ()) -> Outset:
    """Return what the futures of a run from now have in common.

    Parameters
    ----------
    course
        The run.
    horizon
        How far futures go, s.
    asked
        Jobs that one would submit now.

    Raises
    ------
    QuantityError
        If the run has no state to go on from, or a job is larger than the machine.
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
