"""The decisions of users as a file: ``decisions.parquet`` in a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hpcrowd.agents.behaviours.decisions import COLUMNS, MEANING, WORDS, Decisions
from hpcrowd.agents.populations.openness import VISIT_MEANING, Happening, Visit
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.jobs import Int64s, JobTable

#: Where the file says how many decisions were not kept.
DROPPED = b"dropped"


def word(name: str) -> str:
    """Return the word of a decision or reason in the file: ``gave up`` for ``GAVE_UP``."""
    return name.lower().replace("_", " ")


def write_decisions(decisions: Decisions, path: Path) -> None:
    """Write decisions; column meanings stand in the metadata of each field."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays, fields = [], []
    for name, values in decisions.columns.items():
        if name in WORDS:
            words = [word(one.name) for one in WORDS[name]]
            array = pa.DictionaryArray.from_arrays(pa.array(values), pa.array(words))
        elif name == "name":
            array = pa.DictionaryArray.from_arrays(pa.array(values), pa.array(decisions.names))
        else:
            array = pa.array(values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"meaning": MEANING[name]}))
    schema = pa.schema(fields, metadata={DROPPED: str(decisions.dropped).encode()})
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, compression="zstd")


def read_decisions(path: Path) -> Decisions:
    """Return the decisions in a file of :func:`write_decisions`.

    Raises
    ------
    ResultsError
        When it is no such file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, np.ndarray] = {}
    names: dict[str, int] = {"": 0}
    try:
        found = pq.read_table(path, columns=list(MEANING))
        for name, (code, _) in COLUMNS.items():
            if name in WORDS:
                number = {word(one.name): one.value for one in WORDS[name]}
                values = [number[one] for one in found.column(name).to_pylist()]
            elif name == "name":
                values = [
                    names.setdefault(one, len(names)) for one in found.column(name).to_pylist()
                ]
            else:
                values = found.column(name).to_numpy()
            columns[name] = np.array(values, code)
        dropped = int((found.schema.metadata or {}).get(DROPPED, b"0"))
    except (pa.ArrowInvalid, OSError) as error:
        told = str(error).splitlines()[0]
        raise ResultsError(f"{path}: cannot be read as decisions: {told}") from None
    except KeyError as error:
        raise ResultsError(f"{path}: {error} is not known; run it again") from None
    return Decisions(columns, tuple(names), dropped)


#: The meaning of each column.
COMPONENT_MEANING = {
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
        [
            pa.field(name, pa.int64(), metadata={"meaning": COMPONENT_MEANING[name]})
            for name in columns
        ]
    )
    arrays = [pa.array(values) for values in columns.values()]
    pq.write_table(pa.table(arrays, schema=schema), path, compression="zstd")


def write_visits(visits: Sequence[Visit], path: Path) -> None:
    """Write who came and went; column meanings stand in the metadata of each field."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "at": pa.array([visit.at for visit in visits], pa.int64()),
        "user": pa.array([visit.user for visit in visits], pa.int64()),
        "what": pa.array([visit.what.value for visit in visits]).dictionary_encode(),
    }
    schema = pa.schema(
        [
            pa.field(name, array.type, metadata={"meaning": VISIT_MEANING[name]})
            for name, array in columns.items()
        ]
    )
    pq.write_table(pa.table(list(columns.values()), schema=schema), path, compression="zstd")


def read_visits(path: Path) -> list[Visit]:
    """Return the visits in a file of :func:`write_visits`.

    Raises
    ------
    ResultsError
        When it is no such file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_table(path, columns=list(VISIT_MEANING))
        columns = (found.column(name).to_pylist() for name in VISIT_MEANING)
        return [Visit(at, user, Happening(what)) for at, user, what in zip(*columns, strict=True)]
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        told = str(error).splitlines()[0]
        raise ResultsError(f"{path}: cannot be read as visits: {told}") from None
