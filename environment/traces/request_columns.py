"""What jobs ask of a machine of nodes, as columns of a trace.

The inverse of :func:`hpcrowd.environment.traces.requests.requests_of`, by the columns of
:data:`~hpcrowd.environment.traces.requests.REQUEST_COLUMNS`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.jobs import UNKNOWN, Int64s
from hpcrowd.environment.machine.requests import WORDS, Ask, Requests
from hpcrowd.environment.traces.requests import REQUEST_COLUMNS


def request_columns(requests: Requests, submit: Int64s) -> dict[str, NDArray[np.object_]]:
    """Return columns for :attr:`~hpcrowd.environment.traces.trace.Trace.extra`, shape (jobs,).

    Columns in which no job has a text are left out. The partition is the queue of a job if it asks
    for one only, so only several ones are in a column.

    Parameters
    ----------
    requests
        What the jobs ask for.
    submit
        s; the submission of each job, from which its begin counts.
    """
    columns: dict[str, list[str]] = {}
    for ask in requests.asked():
        numbers = requests[ask]
        if ask is Ask.PARTITIONS:
            texts = [text if "," in text else "" for text in requests.texts(ask)]
        elif ask in WORDS:
            texts = requests.texts(ask)
        elif ask is Ask.EXCLUSIVE:
            texts = ["yes" if number == 1 else "" for number in numbers.tolist()]
        else:
            known = numbers != UNKNOWN
            if ask is Ask.BEGIN:
                numbers = np.maximum(numbers - submit, 0)
            texts = np.where(known, numbers.astype(np.str_), "").tolist()
        columns[REQUEST_COLUMNS[ask]] = texts
    return {name: np.array(texts, np.object_) for name, texts in columns.items() if any(texts)}
