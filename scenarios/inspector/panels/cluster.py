"""The cluster over time: processors in use, the queue, submissions, the jobs that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.views.load import (
    lateness_now,
    lateness_words,
    load_table,
    queue_table,
    submissions_table,
)
from hpcrowd.environment.jobs import UNKNOWN, name_of

if TYPE_CHECKING:
    import pandas as pd

    from hpcrowd.scenarios.inspector.panels.asked import Asked
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
    """Return the jobs that wait with the reason of each, in words.

    Parameters
    ----------
    course
        The run.
    most
        Most jobs; None for all.
    """
    frame = queue_table(course.moment(), most)
    reasons = course.reasons(frame["row"].tolist())
    return frame.assign(reason=[reasons.get(row, "") for row in frame["row"].tolist()])


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
    shown = any(names)
    columns = {name: frame[name].tolist() for name in frame}
    rows = []
    for place, queue in enumerate(names):
        row = {name: column[place] for name, column in columns.items()}
        rows.append(
            {
                "job": row["job"],
                "user": row["user"],
                "processors": row["processors"],
                **({"cluster": row["cluster"]} if "cluster" in row else {}),
                **({"queue": queue} if shown else {}),
                "requested": row["requested_time_s"],
                "waited": row["waited_s"],
                "submitted": row["submitted_s"],
                "reason": row["reason"],
            }
        )
    return {"total": len(moment.queue), "rows": rows}
