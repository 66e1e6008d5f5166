"""Inputs that many processes share: written once, mapped into the memory of each.

A file holds a pickle of anything made of arrays, such as a table of jobs with its sessions, and the
arrays apart from it (pickle protocol 5 with buffers out of band, PEP 574)::

    8 bytes   place of the pickle that comes last, little endian
    arrays    each from a multiple of 64 bytes on
    pickle    of a tuple: places and lengths of the arrays, and the pickle of the rest

Reading maps the file privately: nothing is copied until it is written to, page by page, and what a
run writes is seen by no other. The system keeps one copy of the file in memory for all of them.
"""

from __future__ import annotations

import mmap
import os
import pickle
from pathlib import Path
from typing import Any

from environment.errors import ResultsError
from scenarios.whole_file import land

#: Places of arrays are multiples of this, for fast loops.
ALIGNMENT = 64


def write_shared(value: Any, path: Path) -> None:
    """Write a value for :func:`read_shared` into a file that is whole or absent."""
    buffers: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    places, end = [], 8
    for array in arrays:
        begin = -(-end // ALIGNMENT) * ALIGNMENT
        places.append((begin, array.nbytes))
        end = begin + array.nbytes
    with land(path) as temporary, temporary.open("wb") as file:
        file.write(end.to_bytes(8, "little"))
        for (begin, _), array in zip(places, arrays, strict=True):
            file.write(bytes(begin - file.tell()))
            file.write(array)
        file.write(pickle.dumps((places, rest), protocol=5))
        file.flush()
        os.fsync(file.fileno())


def read_shared(path: Path) -> Any:
    """Return the value in a file; its arrays can be written to, which nobody else sees.

    Only for files that :func:`write_shared` wrote on the user's own behalf: a pickle is a program.

    Raises
    ------
    ResultsError
        When the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: shared inputs cannot be read: {error}") from error
    view = memoryview(mapped)
    places, rest = pickle.loads(view[int.from_bytes(view[:8], "little") :])
    return pickle.loads(rest, buffers=[view[begin : begin + size] for begin, size in places])
