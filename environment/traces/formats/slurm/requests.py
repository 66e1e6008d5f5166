"""Columns of a trace with what jobs asked of a machine, from submit lines and the accounting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.header import decode
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.traces.formats.slurm.submit_lines import IN_SUBMIT_LINES
from hpcrowd.environment.traces.formats.slurm.table import Rows
from hpcrowd.environment.traces.formats.slurm.values import parse_requested_memory

#: Columns that the accounting has itself; it knows better than a submit line.
IN_ACCOUNTING = ("qos", "reservation", "constraints")

Texts = NDArray[np.object_]


def request_columns(
    rows: Rows, row: Int64s, apart: Sequence[int], lines: Sequence[Mapping[str, str]],
    which: Int64s, queue: str,
) -> dict[str, Texts]:  # fmt: skip
    """Return the columns that submit lines have, and those that an older version has.

    Parameters
    ----------
    rows
        The rows of the accounting.
    row
        The row of each job, shape (jobs,).
    apart
        Heterogeneous jobs; as their parts ask for different things, nothing is said of them.
    lines
        What submit lines ask for, by the names of columns.
    which
        The submit line of each job, shape (jobs,).
    queue
        The column of the accounting that is the queue.
    """
    told: dict[str, Texts] = {}
    for name in IN_SUBMIT_LINES:
        texts = [line.get(name, "") for line in lines]
        if any(texts) and not (name in IN_ACCOUNTING and name in rows.words):
            told[name] = np.array(texts, np.object_)[which]
    listed = told.pop("partitions", None)
    if "partition" in rows.words and (listed is not None or queue == "qos"):
        names = _words(rows, "partition", row)
        found = names if queue == "qos" else np.full(len(row), "", np.object_)
        if listed is not None:  # the accounting names the one that it ran in
            pairs = zip(listed.tolist(), names.tolist(), strict=True)
            among = ["," in texts and name in texts.split(",") for texts, name in pairs]
            found = np.where(among, listed, found)
        told["partitions"] = found
    if queue == "qos" and "qos" in rows.words:
        told["qos"] = _words(rows, "qos", row)
    if "reqmem" in rows.words and "memory_per_node" not in told:
        codes, words = rows.words["reqmem"]
        sizes = [parse_requested_memory(word) for word in words]
        texts = [str(max(int(np.ceil(one.kilobytes / 1024)), 0)) if one.of == "n" else ""
                 for one in sizes]  # fmt: skip
        if any(texts):
            told["memory_per_node"] = np.array(texts, np.object_)[codes[row]]
    for column in told.values():
        column[list(apart)] = ""
    return told


def _words(rows: Rows, column: str, row: Int64s) -> Texts:
    """Return a column of words, shape (jobs,)."""
    codes, words = rows.words[column]
    found: NDArray[Any] = np.array([decode(word) for word in words], np.object_)[codes[row]]
    return found
