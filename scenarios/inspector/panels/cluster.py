"""The cluster over time: processors in use, the queue, submissions, jobs that wait, power."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.energy.account import KILO
from hpcrowd.analysis.pictures.power import (
    bins_of,
    power_columns,
    power_picture,
    signal_bins,
    signals_of,
)
from hpcrowd.analysis.views.load import (
    lateness_now,
    lateness_words,
    load_edges,
    load_table,
    queue_table,
    submissions_table,
)
from hpcrowd.environment.clock import moment as local_moment
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import UNKNOWN, name_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcrowd.analysis.energy.account import EnergyAccount
    from hpcrowd.environment.jobs import Int64s
    from hpcrowd.scenarios.inspector.panels.exchange import Asked
    from hpcrowd.scenarios.inspector.subjects.course import Course


#: Waiting jobs that the page shows; a file has all.
QUEUE_SHOWN = 200


def load_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return the load over the time that the page shows."""
    moment = course.moment()
    frame = load_table(moment, asked.window(moment.now), until=asked.last)
    frame = frame[: max(1, int((frame["begin_s"] < moment.now).sum()))]  # it is at least an hour
    clusters = {
        name: frame[f"in_use_{name}"].to_numpy().round(2)
        for name in moment.clusters
        if f"in_use_{name}" in frame
    }
    return {
        "edges": np.append(
            frame["begin_s"].to_numpy(),
            min(frame["end_s"].iloc[-1], max(moment.now, frame["begin_s"].iloc[-1] + 1)),
        ),
        "in_use": frame["processors_in_use"].to_numpy().round(2),
        "up": frame["processors_up"].to_numpy(),
        "size": frame["processors"].to_numpy(),
        "waiting": frame["jobs_waiting"].to_numpy().round(2),
        "asked": frame["processors_asked"].to_numpy().round(2),
        "clusters": clusters or None,
        "used_now": int(moment.jobs.processors[moment.running].sum()),
        "size_now": moment.size,
        "up_now": moment.up,
        "waiting_now": int(moment.waiting.sum()),
        "asked_now": int(moment.jobs.processors[moment.waiting].sum()),
    }


def submissions_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return submissions, recorded and simulated, over the time that the page shows."""
    moment = course.moment()
    frame = submissions_table(moment, asked.window(moment.now), until=asked.last)
    late = lateness_now(moment)
    return {
        "times": frame["time_s"].to_numpy(),
        "recorded": frame["recorded"].to_numpy(),
        "simulated": frame["simulated"].to_numpy(dtype=float, na_value=np.nan),
        "has_record": late.mean is not None,
        "words": lateness_words(late),
    }


def queue_with_reasons(course: Course, most: int | None) -> pd.DataFrame:
    """Return the jobs that wait, ``most`` or all of them, with the reason of each in words."""
    frame = queue_table(course.moment(), most)
    reasons = course.reasons(frame["row"].tolist())
    return frame.assign(reason=[reasons.get(row, "") for row in frame["row"].tolist()])


#: Columns of the queue on the page, and those of :func:`queue_with_reasons`.
QUEUE_COLUMNS = {
    "job": "job", "user": "user", "processors": "processors", "cluster": "cluster",
    "queue": "queue", "requested": "requested_time_s", "waited": "waited_s",
    "submitted": "submitted_s", "reason": "reason",
}  # fmt: skip


def queue_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return the first jobs of the queue, each with its reason."""
    moment = course.moment()
    frame = queue_with_reasons(course, QUEUE_SHOWN)
    jobs = moment.jobs
    queues = jobs.queue[frame["row"].to_numpy(dtype=np.int64)]
    names = [
        "" if number == UNKNOWN else name_of(jobs.names, "queue", number)
        for number in queues.tolist()
    ]
    if any(names):
        frame = frame.assign(queue=names)
    columns = {key: frame[name] for key, name in QUEUE_COLUMNS.items() if name in frame}
    cells = zip(*(column.tolist() for column in columns.values()), strict=True)
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    return {"total": len(moment.queue), "rows": rows}


def _edges(course: Course, asked: Asked, account: EnergyAccount) -> Int64s:
    """Return the bins of the load that the page shows, as far as the account goes."""
    moment = course.moment()
    edges = load_edges(moment, asked.window(moment.now), until=asked.last)
    return bins_of(account, edges)


def power_panel(course: Course, asked: Asked) -> dict[str, Any]:
    """Return power and signals over the time that the page shows; nothing where it is unknown."""
    account = course.energy_account()
    if account is None:
        return {"edges": [], "power": [], "now": None, "signals": []}
    edges = _edges(course, asked, account)
    rough = signal_bins(edges)
    return {
        "edges": edges,
        "power": (account.curve.mean(edges[:-1], edges[1:]) / KILO).round(3),
        "now": round(float(account.curve.values[-1]) / KILO, 3),
        "signals": [
            {
                "name": one.name,
                "words": one.words,
                "unit": one.unit,
                "edges": rough,
                "values": one.steps.mean(rough[:-1], rough[1:]).round(4),
            }
            for one in signals_of(account)
        ],
    }


def power_table(course: Course, asked: Asked) -> pd.DataFrame:
    """Return the power over the time that the page shows, as a table."""
    import pandas as pd

    account = course.energy_account()
    if account is None:
        return pd.DataFrame(columns=["begin_s", "end_s", "power_kw", "wasted_kw"])
    return pd.DataFrame(power_columns(account, _edges(course, asked, account)))


def picture_of_power(course: Course, asked: Asked) -> Figure:
    """Return a picture of the power over the time that the page shows.

    Raises
    ------
    QuantityError
        When the power is not known.
    """
    account = course.energy_account()
    if account is None:
        raise QuantityError(
            "save power: the power of this run is not known; give its scenario a description of "
            "power, see --power of hpcrowd replay"
        )
    when = local_moment(course.moment().clock, course.now)
    edges = _edges(course, asked, account)
    return power_picture(account, edges, course.moment().clock, f"Power: {course.label}", when)
