"""The decisions of users as a file: ``decisions.parquet`` in a folder of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from agents.decision_words import Decisions
from agents.decisions import COLUMNS, MEANING, WORDS
from environment.errors import ResultsError

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
