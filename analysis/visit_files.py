"""The book of visits as a file: ``visits.parquet`` in a folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agents.visits import MEANING, Happening, Visit
from environment.errors import ResultsError


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
            pa.field(name, array.type, metadata={"meaning": MEANING[name]})
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
        found = pq.read_table(path, columns=list(MEANING))
        columns = (found.column(name).to_pylist() for name in MEANING)
        return [Visit(at, user, Happening(what)) for at, user, what in zip(*columns, strict=True)]
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        told = str(error).splitlines()[0]
        raise ResultsError(f"{path}: cannot be read as visits: {told}") from None
