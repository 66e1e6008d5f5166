"""A learned model of users: a forest of pauses, as a file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.learned.features import NAMES
from hpcrowd.agents.learned.kernel import Forest, all_pauses
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s

Floats = NDArray[np.float64]

#: Version of the form of files; it changes with features and arrays.
VERSION = 1

#: Key of what a file says about itself in the metadata of its Parquet table.
ABOUT = b"hpcrowd learned model"

#: Arrays of a forest, and their types in a file.
ARRAYS = {
    "root": np.int32, "feature": np.int16, "threshold": np.float32, "child": np.int32,
    "size": np.int32, "members": np.int32, "pause": np.int32, "released": np.int32,
    "lift": np.float32, "common": np.float32,
}  # fmt: skip

#: Numbers of a forest, and their types.
NUMBERS = {"prior": float, "pull": float, "absence": int}


@dataclass(frozen=True)
class LearnedModel:
    """A model of users' pauses, learned from records.

    Attributes
    ----------
    forest
        The forest.
    provenance
        The logs, versions and settings that it was fitted with, fit for JSON.
    """

    forest: Forest
    provenance: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _room(self) -> tuple[Int64s, Floats]:
        most = len(self.forest.root) * int(self.forest.size.max())
        return np.zeros(most, np.int64), np.zeros(most)

    def pauses(self, features: Floats, memory: Floats, wall: int) -> tuple[Int64s, Floats]:
        """Return all pauses that a user may draw, s, and the weight of each.

        Parameters
        ----------
        features, memory
            What it notices and remembers, see :mod:`hpcrowd.agents.learned.kernel`.
        wall
            Local time of the release, s since a Monday, 00:00.
        """
        pauses, weights = self._room
        count = all_pauses(pauses, weights, self.forest, features, memory, wall)
        return pauses[:count], weights[:count]

    def save(self, path: Path) -> None:
        """Write it to a file, which is complete or absent."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = {
            "version": VERSION,
            "features": list(NAMES),
            **{name: getattr(self.forest, name) for name in NUMBERS},
            "provenance": self.provenance,
        }
        table = pa.table(
            {
                name: pa.array([getattr(self.forest, name).astype(kind)])
                for name, kind in ARRAYS.items()
            }
        ).replace_schema_metadata({ABOUT: json.dumps(about)})
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> LearnedModel:
        """Read it from a file.

        Raises
        ------
        QuantityError
            In one line, if it is not such a file, or of another version.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
        except FileNotFoundError:
            raise QuantityError(f"learned model {path}: no such file") from None
        except (OSError, pa.ArrowException) as error:
            raise QuantityError(
                f"learned model {path}: cannot be read: {str(error).splitlines()[0]}; make it "
                "with hpcrowd fit learned"
            ) from None
        about = json.loads((table.schema.metadata or {}).get(ABOUT, b"{}"))
        if about.get("version") != VERSION or about.get("features") != list(NAMES):
            raise QuantityError(
                f"learned model {path}: version {about.get('version', 'unknown')}, but this "
                f"hpcrowd reads version {VERSION}; make it again with hpcrowd fit learned"
            )
        arrays = {name: table[name][0].values.to_numpy() for name in ARRAYS}
        numbers = {name: kind(about[name]) for name, kind in NUMBERS.items()}
        return cls(made_forest(**arrays, **numbers), about["provenance"])

    def with_pull(self, pull: float) -> LearnedModel:
        """Return it with another pull of the user's own rhythm."""
        return replace(self, forest=self.forest._replace(pull=pull))


def made_forest(**parts: Any) -> Forest:
    """Return a forest with arrays of the types that it is used with."""
    arrays = {name: np.ascontiguousarray(parts[name], _used(ARRAYS[name])) for name in ARRAYS}
    return Forest(**arrays, **{name: kind(parts[name]) for name, kind in NUMBERS.items()})


def _used(kind: type) -> type:
    return np.int64 if np.issubdtype(kind, np.integer) else np.float64
