"""Components of jobs as a file: ``components.parquet`` in a folder of results of a grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from environment.jobs import Int64s, JobTable

#: The meaning of each column.
MEANING = {
    "number": "job number of the component, as in jobs.parquet",
    "first": "job number of the first component of its job",
    "processors": "processors of all components of the job",
}


def write_components(jobs: JobTable, first: Int64s, path: Path) -> None:
    """Write which rows are components of one job; column meanings stand in each field's metadata.

    Parameters
    ----------
    jobs
        The table.
    first
        Row of the first component of each row's job, shape (jobs,).
    path
        The file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = np.bincount(first, minlength=len(jobs))
    width = np.zeros(len(jobs), np.int64)
    np.add.at(width, first, jobs.processors)
    rows = np.flatnonzero(count[first] > 1)
    columns = {
        "number": jobs.number[rows],
        "first": jobs.number[first[rows]],
        "processors": width[first[rows]],
    }
    schema = pa.schema(
        [pa.field(name, pa.int64(), metadata={"meaning": MEANING[name]}) for name in columns]
    )
    arrays = [pa.array(values) for values in columns.values()]
    pq.write_table(pa.table(arrays, schema=schema), path, compression="zstd")
