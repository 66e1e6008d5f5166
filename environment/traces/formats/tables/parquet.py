"""Tables in Parquet: the columns that are needed, batch by batch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, override

from hpcrowd.environment.errors import TraceError
from hpcrowd.environment.limits.inputs import Unreadable, room
from hpcrowd.environment.traces.formats.tables.values import Columns

#: The first and last bytes of a Parquet file.
MAGIC = b"PAR1"

#: Rows that are unpacked at a time.
BATCH = 2**16

#: Bytes of a value in a column, at least.
VALUE = 8


class ParquetTable(Columns):
    """The columns of a Parquet file.

    Parameters
    ----------
    file
        The file, open or as Arrow's buffer.
    source
        Its name in messages.
    wanted
        The columns to read; all unless given. Others are not unpacked.

    Attributes
    ----------
    names
        All columns of the file.
    metadata
        The metadata of the file.

    Raises
    ------
    TraceError
        If it is damaged, has no rows, or is too large for the memory.
    """

    def __init__(self, file: Any, source: str, wanted: Collection[str] | None = None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            whole = pq.ParquetFile(file, pre_buffer=False)
            schema = whole.schema_arrow
            for kind in schema.types:
                getattr(kind, "tz", None)  # decodes time zones
            places = [
                place for place, name in enumerate(schema.names) if wanted is None or name in wanted
            ]
            self.rows = int(whole.metadata.num_rows)
            room()(self.rows * len(places) * VALUE)
            kept = [schema.names[place] for place in places]
            pieces: list[list[Any]] = [[] for _ in kept]
            for batch in whole.iter_batches(BATCH, columns=kept, use_threads=False):
                for piece, name in zip(pieces, kept, strict=True):
                    batch.column(name).validate(full=True)
                    piece.append(_plain(batch.column(name)))
                    piece[-1].validate(full=True)  # dictionaries are not looked into before
            columns = {
                name: pa.chunked_array(piece, None if piece else pa.null()).combine_chunks()
                for name, piece in zip(kept, pieces, strict=True)
            }
            if self.rows < 0 or any(len(column) != self.rows for column in columns.values()):
                raise ValueError("not as many rows as it says")
        except Unreadable as error:
            raise TraceError(f"{source}: {error.strerror}") from None
        except (
            pa.ArrowException, OSError, MemoryError, KeyError, ValueError, UnicodeDecodeError
        ) as error:  # fmt: skip
            text = " ".join(str(error).split())[:160]
            raise TraceError(f"{source}: the Parquet file is damaged ({text})") from None
        if not self.rows:
            raise TraceError(f"{source}: contains no jobs")
        super().__init__(columns, source)
        self.names = list(schema.names)
        self.metadata: dict[bytes, bytes] = schema.metadata or {}

    @override
    def words(self, name: str) -> list[str]:
        """Return a column as text, with its blanks; shape (rows,)."""
        return list((self.columns[name] if self.is_text(name) else self.text(name)).to_pylist())

    @override
    def __len__(self) -> int:
        return self.rows


def _plain(values: Any) -> Any:
    """Return a column without dictionaries, and text without nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return pc.fill_null(values.cast(pa.large_string()), "")
    return values
