"""A learned model of users: a forest of pauses, as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcrowd.agents.learned.features import NAMES
from hpcrowd.agents.learned.trees import HOURS, Choices, Forest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.output.guard import LEARNED_MARK
from hpcrowd.environment.output.whole import whole_file

if TYPE_CHECKING:
    from hpcrowd.agents.learned.kernel import Memory, PauseForest

Floats = NDArray[np.float64]

#: Version of the form of files; it changes with features and arrays.
VERSION = 1

#: Key of what a file says about itself in the metadata of its Parquet table.
ABOUT = LEARNED_MARK

#: File of the model that comes with hpcrowd.
SHIPPED = "model.parquet"

#: Arrays of a forest of pauses, and their types, in a file and in memory.
ARRAYS = {
    "root": np.int32, "feature": np.int16, "threshold": np.float32, "child": np.int32,
    "size": np.int32, "members": np.int32, "pause": np.int32, "released": np.int32,
    "lift": np.float32, "common": np.float32,
}  # fmt: skip

#: Those of a forest of choices; in a file their names begin with :data:`PREFIX`.
OF_CHOICES = {
    "root": np.int32, "feature": np.int16, "threshold": np.float32, "child": np.int32,
    "waits": np.float32, "again": np.float32,
}  # fmt: skip

#: See :data:`OF_CHOICES`.
PREFIX = "choices_"

#: Numbers of a forest of pauses, and their types.
NUMBERS = {"prior": float, "own": float, "pull": float, "absence": int}


@dataclass(frozen=True)
class LearnedModel:
    """A model of users' pauses, learned from records.

    Attributes
    ----------
    forest
        The forest of pauses.
    choices
        The forest of choices: to wait or not, and to submit the same again or something else.
    provenance
        The logs, versions and settings that it was fitted with, fit for JSON.
    """

    forest: Forest
    choices: Choices
    provenance: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _room(self) -> tuple[Int64s, Floats, Floats]:
        from hpcrowd.agents.learned.kernel import LATEST

        most = len(self.forest.root) * int(self.forest.size.max()) + LATEST
        return np.zeros(most, np.int64), np.zeros(most), np.zeros(most)

    @cached_property
    def _drawn(self) -> PauseForest:
        from hpcrowd.agents.learned.kernel import PauseForest

        return PauseForest(self.forest)

    def pauses(self, features: Floats, memory: Memory, wall: int) -> tuple[Int64s, Floats]:
        """Return all pauses that a user may draw, s, and the weight of each.

        Parameters
        ----------
        features, memory
            What it notices and remembers, see :mod:`hpcrowd.agents.learned.kernel`.
        wall
            Local time of the release, s since a Monday, 00:00.
        """
        pauses, weights, active = self._room
        count = self._drawn.all_pauses(pauses, weights, active, features, memory, wall)
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
        arrays = {
            **{name: getattr(self.forest, name) for name in ARRAYS},
            **{PREFIX + name: getattr(self.choices, name) for name in OF_CHOICES},
        }
        table = pa.table({name: pa.array([array]) for name, array in arrays.items()})
        table = table.replace_schema_metadata({ABOUT: json.dumps(about)})
        with whole_file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

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
        try:
            arrays = {name: table[name][0].values.to_numpy() for name in ARRAYS}
            numbers = {name: kind(about[name]) for name, kind in NUMBERS.items()}
            choices = {name: table[PREFIX + name][0].values.to_numpy() for name in OF_CHOICES}
            found = cls(
                made_forest(**arrays, **numbers), made_choices(**choices), about["provenance"]
            )
            found.check()
        except (KeyError, ValueError, TypeError, AttributeError):
            raise QuantityError(
                f"learned model {path}: damaged; make it again with hpcrowd fit learned"
            ) from None
        return found

    def check(self) -> None:
        """Check that trees lead from their roots to leaves with examples, as compiled code assumes.

        Raises
        ------
        ValueError
            If they do not.
        """
        forest = self.forest
        good = len(forest.common) == HOURS and forest.prior > 0 and forest.own > 0
        for trees in (forest, self.choices):
            count, inner = len(trees.feature), trees.feature >= 0
            arrays = trees._asdict()
            good &= all(
                len(arrays[name]) == count
                for name in ("threshold", "child", "size", "waits", "again")
                if name in arrays
            )
            good &= len(trees.root) > 0 and bool(_within(trees.root, count))
            good &= bool((trees.feature < len(NAMES)).all())
            # Children come later, so every way down ends.
            good &= bool((trees.child[inner] > np.flatnonzero(inner)).all())
            good &= _within(trees.child[inner], count - 1)
        first, size = (each[forest.feature < 0] for each in (forest.child, forest.size))
        good &= bool(((first >= 0) & (size > 0) & (first + size <= len(forest.members))).all())
        good &= _within(forest.members, len(forest.pause))
        good &= len(forest.pause) == len(forest.released) == len(forest.lift)
        if not good:
            raise ValueError("trees are damaged")

    @classmethod
    def named(cls, text: str) -> LearnedModel:
        """Return the model of ``learned:FILE``, or of ``learned`` the one that is shipped."""
        _, _, file = text.partition(":")
        return cls.load(Path(file)) if file else cls.shipped()

    @classmethod
    @cache
    def shipped(cls) -> LearnedModel:
        """Return the model that comes with hpcrowd."""
        with as_file(files("hpcrowd.agents.learned").joinpath(SHIPPED)) as path:
            return cls.load(path)


def made_forest(**parts: Any) -> Forest:
    """Return a forest of pauses with arrays of the types that it is used with."""
    found: dict[str, Any] = {name: kind(parts[name]) for name, kind in NUMBERS.items()}
    return Forest(**(found | _arrays(ARRAYS, parts)))


def made_choices(**parts: Any) -> Choices:
    """Return a forest of choices with arrays of the types that it is used with."""
    return Choices(**_arrays(OF_CHOICES, parts))


def _arrays(kinds: Mapping[str, type], parts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    return {name: np.asarray(parts[name]).astype(kind) for name, kind in kinds.items()}


def _within(values: NDArray[Any], count: int) -> bool:
    return bool(((values >= 0) & (values < count)).all())
