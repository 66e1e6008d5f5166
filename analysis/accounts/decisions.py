"""The log of decisions of a run: its file, and which kinds were most frequent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

import numpy as np

from hpcrowd.agents.behaviours.decisions import COLUMNS, MEANING, WORDS, Decisions
from hpcrowd.analysis.parts import RunPart, RunParts, Shown, read_table, write_table
from hpcrowd.environment.errors import ResultsError
from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.quantities import plural

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run  # circle: for its type only

#: Most kinds of decisions that are listed.
MOST_DECISIONS = 20

#: Metadata key of the number of decisions that were not kept.
DROPPED = b"dropped"


class LoggedDecisions(RunPart):
    """Decisions of users with their reasons, if they were logged."""

    name, file, title = "decisions", "decisions", "Decisions of users"

    @override
    def lines(self, configuration: Mapping[str, Any]) -> list[str]:
        lost = self.rows.dropped
        return [f"log full: {plural(lost, 'later decision')} not kept"] if lost else []

    @override
    def reported(self, run: Run) -> list[Shown]:
        caption = (
            f"{plural(len(self.rows), 'decision')}; the {MOST_DECISIONS} most frequent kinds at "
            "most. hpcrowd explain shows the decisions of one user in words."
        )
        return [Shown(("what", "why", "decisions"), decision_rows(self.rows), caption, words=2)]

    @override
    def write(self, jobs: JobTable, place: Path) -> None:
        write_decisions(self.rows, place / "decisions.parquet")

    @override
    @classmethod
    def read_rows(cls, path: Path, jobs: JobTable) -> Decisions:
        return read_decisions(path)


def decisions_of(parts: RunParts) -> Decisions | None:
    """Return the decisions of users in a run; None if they were not logged."""
    return parts["decisions"].rows if "decisions" in parts else None


def word(name: str) -> str:
    """Return the name of a decision or reason in the file: ``gave up`` for ``GAVE_UP``."""
    return name.lower().replace("_", " ")


def write_decisions(decisions: Decisions, path: Path) -> None:
    """Write the log of decisions."""
    import pyarrow as pa

    columns = dict(decisions.columns)
    for name, words in WORDS.items():
        columns[name] = pa.DictionaryArray.from_arrays(
            pa.array(columns[name]), pa.array([word(one.name) for one in words])
        )
    columns["name"] = pa.DictionaryArray.from_arrays(
        pa.array(columns["name"]), pa.array(decisions.names)
    )
    write_table(columns, MEANING, path, {DROPPED: str(decisions.dropped).encode()})


def read_decisions(path: Path) -> Decisions:
    """Return the decisions in a file of :func:`write_decisions`.

    Raises
    ------
    ResultsError
        When it is not such a file.
    """
    columns: dict[str, np.ndarray] = {}
    names: dict[str, int] = {"": 0}
    found = read_table("decisions", path, list(MEANING))
    try:
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
    except KeyError as error:
        raise ResultsError(f"{path}: {error} is not known; run it again") from None
    dropped = int((found.schema.metadata or {}).get(DROPPED, b"0"))
    return Decisions(columns, tuple(names), dropped)


def decision_rows(decisions: Decisions) -> list[tuple[str, str, str]]:
    """Return (what, why, how often) of users' decisions, the most frequent first."""
    columns = decisions.columns
    pairs = Counter(zip(columns["what"].tolist(), columns["why"].tolist(), strict=True))
    rows = [
        (word(WORDS["what"](what).name), word(WORDS["why"](why).name), f"{count:,}")
        for (what, why), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    ]
    return rows[:MOST_DECISIONS]
