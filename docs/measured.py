"""Measure the behaviours on real traces, and draw the pictures of their pages.

    python docs/measured.py FOLDER

reads the traces from FOLDER and writes ``docs/behaviours/measured.csv`` and
``docs/pictures/*.png``; then run ``docs/generate.py``. It takes about two minutes.
``tests/house/test_behaviour_pages.py`` measures again on KTH-SP2 and fails when the table is
behind.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "behaviours" / "measured.csv"
PICTURES_FOLDER = ROOT / "docs" / "pictures"

#: Traces of the table, by their short names.
TRACES = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "LANL-CM5": "LANL-CM5-1994-4.1-cln.swf.gz",
}

#: Seeds of behaviours that draw.
SEEDS = range(5)

#: Significant digits that are kept.
DIGITS = 6


class Picture(NamedTuple):
    """A picture: a function of ``docs/behaviour_pictures.py`` and the runs that it shows."""

    draw: str
    title: str
    runs: dict[str, dict[str, str]]  #: settings of a replay, by the name in the legend


def sizes(users: str) -> dict[str, dict[str, str]]:
    """Return replays on half the machine, the recorded one and twice of it."""
    return {
        "half the processors": {"users": users, "processors": "0.5x"},
        "as recorded": {"users": users},
        "twice the processors": {"users": users, "processors": "2x"},
    }


def named(*users: str) -> dict[str, dict[str, str]]:
    """Return replays that differ in their users."""
    return {name: {"users": name} for name in users}


#: Pictures by the name of their file, all of the first trace.
PICTURES = {
    "rigid": Picture("machines", "Rigid users submit as recorded, whatever the machine",
                     sizes("rigid")),
    "think-time": Picture("machines", "Users who keep think times submit when they have answers",
                          sizes("think-time")),
    "think-time-windows": Picture("weeks", "The weekly rhythm, with and without activity windows",
                                  named("think-time", "think-time-windows")),
    "activity-windows": Picture("active_time", "Active time: a pause in the evening ends in the "
                                "morning", named("rigid")),
    "adjusted": Picture("weeks", "Adjusted: day and night, week and weekend are lost",
                        named("adjusted")),
    "distribution": Picture("law_and_weeks", "Distribution: hours by lot",
                            named("distribution")),
    "fluid": Picture("weeks_and_activity", "Fluid: the rhythm stays, some users take longer",
                     named("fluid")),
    "linear": Picture("line", "Think times against response times", named("rigid")),
    "linear-windows": Picture("weeks", "Think times by a line, with and without activity windows",
                              named("linear", "linear-windows")),
    "learned": Picture("weeks", "Learned: the rhythm is drawn with the pauses",
                       named("adjusted", "learned")),
}  # fmt: skip


def rows(trace: Any, name: str, seeds: range = SEEDS) -> Iterator[dict[str, Any]]:
    """Yield the measures of each preset on a trace; those that draw with each seed.

    Users who make up their work have no record to compare with; they have a page of their own.
    """
    from hpcrowd.agents.presets import PRESETS, Recipe
    from hpcrowd.analysis.comparison.numbers import measure
    from hpcrowd.scenarios.kinds.replay import replay

    for users, maker in PRESETS.items():
        if not isinstance(maker, Recipe):
            continue
        first = None
        for seed in seeds:
            found = measure(replay(trace, users=users, seed=seed))
            if found == first:
                break  # nothing is drawn
            first = first or found
            values = {key: f"{value:.{DIGITS}g}" for key, value in found._asdict().items()}
            yield {"trace": name, "users": users, "seed": str(seed), **values}


def write_table(folder: Path) -> None:
    """Measure every preset on every trace."""
    from hpcrowd.environment.traces.formats.swf import read_swf

    found = [row for name, file in TRACES.items() for row in rows(read_swf(folder / file), name)]
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def read_table() -> list[dict[str, str]]:
    """Return the rows of the table."""
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def write_pictures(folder: Path, names: list[str] | None = None) -> None:
    """Draw the pictures, all or those named."""
    import behaviour_pictures

    from hpcrowd.analysis.pictures.plots import figure_png
    from hpcrowd.environment.traces.formats.swf import read_swf
    from hpcrowd.scenarios.kinds.replay import replay

    trace = read_swf(folder / next(iter(TRACES.values())))
    PICTURES_FOLDER.mkdir(exist_ok=True)
    for name in names or list(PICTURES):
        picture = PICTURES[name]
        runs = {label: replay(trace, **settings) for label, settings in picture.runs.items()}
        figure = getattr(behaviour_pictures, picture.draw)(runs, picture.title)
        (PICTURES_FOLDER / f"{name}.png").write_bytes(figure_png(figure))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if len(sys.argv) < 2:
        sys.exit("usage: python docs/measured.py FOLDER [PICTURE ...]")
    if not sys.argv[2:]:
        write_table(Path(sys.argv[1]))
    write_pictures(Path(sys.argv[1]), sys.argv[2:])
