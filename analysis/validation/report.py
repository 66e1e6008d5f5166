"""Output of a validation: on the terminal, as rows, as plain data, and as a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcrowd.analysis.html import figure_of, html_page, rows_table
from hpcrowd.analysis.pictures.plots import COLOURS, TITLE, figure_png, new_figure, tidy
from hpcrowd.analysis.results import write_csv, write_json, write_origin
from hpcrowd.analysis.validation.across import (
    LEVEL,
    RANK_HEADING,
    Across,
    plain_across,
    rank_rows,
)
from hpcrowd.analysis.validation.models import POOLED, SIMILAR
from hpcrowd.analysis.validation.validation import (
    FORECASTS,
    RANKED,
    Score,
    Validation,
)
from hpcrowd.environment.output.whole import whole_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Titles of the measures.
TITLES = {name: name.replace("_", " ") for name in RANKED} | {"inter_arrival": "inter-arrival"}

#: Heading of the table of models.
HEADING = ("model", *TITLES.values(), "simulated jobs", "mean rank")

#: Measures side by side in a table, by its title.
TABLES = {
    "Forecasts: CRPS of the pause in decades; stays: squared error of the probability; means over "
    "users, 0 is perfect": tuple(FORECASTS),
    "Simulated days: distance from the recorded ones, 0 to 1": (
        "think_time", "session_length", "inter_arrival", "weekly_profile", "load_by_hour",
    ),
    "Simulated days: jobs and sessions, natural logarithm of simulated by recorded; waits and "
    "queue, distance; dependence, difference of correlations": (
        "jobs", "sessions", "waits", "queue", "dependence",
    ),
}  # fmt: skip

#: Names of scores and distances, with their units.
UNITS = {
    "crps": "CRPS, decades",
    "brier": "squared error",
    "ks": "Kolmogorov-Smirnov distance",
    "tv": "total variation distance",
    "ratio": "natural logarithm of the ratio",
    "correlation": "difference of correlations",
}


class Floor(NamedTuple):
    """A reference for scores, see :attr:`Validation.floors`; a line in the picture."""

    name: str  #: name in tables
    meaning: str
    colour: str
    dashes: tuple[int, tuple[int, int]]


#: All references by key.
FLOORS = {
    "hindsight": Floor(
        "(hindsight)", "the user's pauses after each origin", COLOURS["vermilion"], (0, (4, 2))
    ),
    "days before": Floor("(days before)", "recorded days before each origin", "black", (0, (4, 3))),
}

#: Panels side by side in the picture.
ACROSS = 4

#: Mark of a score that is not distinguishable from the best.
TIED = "="


def text(score: Score | None, measure: str, digits: int = 3, *, interval: bool = True) -> str:
    """Return a score, its interval if wanted, and :data:`TIED` as printed; empty for None."""
    if score is None:
        return ""
    found = score.statistics[RANKED[measure]]
    mark = TIED if score.rank is not None and score.tied else ""
    numbers = [f"{number:.{digits}f}" for number in (found.value, found.low, found.high)]
    return f"{numbers[0]}{mark}" + (f" ({numbers[1]}-{numbers[2]})" if interval else "")


def all_scores(found: Validation) -> dict[str, dict[str, Score]]:
    """Return the scores by name: models, best mean rank first, then the references."""
    floors = {FLOORS[name].name: scores for name, scores in found.floors.items()}
    return {name: found.scores[name] for name in found.order} | floors


def score_rows(
    found: Validation,
    measures: Iterable[str] = RANKED,
    digits: int = 2,
    *,
    intervals: bool = True,
) -> list[list[str]]:
    """Return the table rows of :func:`all_scores`, with jobs and mean rank at the end."""
    return [
        [
            name,
            *(
                text(scores.get(measure), measure, digits, interval=intervals)
                for measure in measures
            ),
            f"{100 * found.volume[name]:.0f} %" if name in found.scores else "",
            f"{found.mean_rank(name):.1f}" if name in found.scores else "",
        ]
        for name, scores in all_scores(found).items()
    ]


def headline(found: Validation) -> list[str]:
    """Return lines that describe the origins, and what is before and after each."""
    clock = found.clock
    lines = []
    for n in (one.counts for one in found.origins):
        since, until = (clock.local(n[name]) for name in ("since_s", "until_s"))
        lines.append(
            f"origin {since:%d %b %Y %H:%M}: fitted to {n['jobs_first']:,} jobs of "
            f"{n['users_first']:,} users before; until {until:%d %b %Y} "
            f"{n['jobs_second']:,} jobs of {n['users_second']:,} users, "
            f"{n['users_second_not_seen_in_first']:,} of them new"
        )
    if clock.note:
        lines.append(clock.note)
    return lines


def notes(found: Validation) -> list[str]:
    """Return remarks for the reader of the tables."""
    asked = ", ".join(f"{count:,} of {TITLES[kind]}" for kind, count in found.asked.items())
    share = found.settings["confidence"]
    lines = [
        f"Intervals, where shown: {share:.0%}, by resampling users, of queue and dependence weeks. "
        f"{TIED} marks the best, or those not distinguishable from it. Forecasts: {asked}.",
        f"{POOLED}: pauses of all users together; {SIMILAR}: the same, after similar response "
        "times. rigid: the user's own gaps between submissions, whatever the responses. "
        "(hindsight): adjusted, with the pauses of the time after the origin. (days before): the "
        "recorded days before each origin, as many as those after it. Users who are new get the "
        "parameters of all.",
    ]
    circular = [name for name, model in found.models.items() if model.circular]
    if found.settings["pauses"] == "recorded" and circular:
        lines.append(
            f"Circular: in the simulated part {', '.join(circular)} take pauses or windows from "
            "the part they are compared with; for a fair test leave out --pauses recorded."
        )
    return lines


def plain(found: Validation) -> dict[str, Any]:
    """Return the whole validation as plain data, fit for JSON."""

    def measures(scores: dict[str, Score]) -> dict[str, Any]:
        return {
            measure: {
                **{name: each.plain() for name, each in score.statistics.items()},
                **({} if score.rank is None else {"rank": score.rank, "tied": bool(score.tied)}),
                **({} if score.behind is None else {"behind_best": score.behind.plain()}),
            }
            for measure, score in scores.items()
        }

    clock = found.clock
    return {
        "settings": found.settings,
        "clock_note": clock.note,
        "origins": [
            {
                "local": clock.local(one.counts["since_s"]).isoformat(),
                **one.counts,
                "think_time_lines": one.lines,
            }
            for one in found.origins
        ],
        "forecasts": found.asked,
        "ranked_by": RANKED,
        "models": [
            {
                "name": name,
                "mean_rank": found.mean_rank(name),
                "jobs_per_recorded_job": found.volume[name],
                "circular": found.settings["pauses"] == "recorded" and found.models[name].circular,
                "measures": measures(found.scores[name]),
            }
            for name in found.order
        ],
        "floors": {name: measures(scores) for name, scores in found.floors.items()},
    }


#: Columns of ``validation.csv``.
COLUMNS = ("model", "measure", "statistic", "value", "low", "high", "rank", "tied")


def csv_rows(found: Validation) -> list[tuple[Any, ...]]:
    """Return a row for each model, measure and statistic, with the columns :data:`COLUMNS`."""
    rows = []
    for name, scores in all_scores(found).items():
        for measure, score in scores.items():
            for statistic, each in score.statistics.items():
                numbers = [f"{number:.6g}" for number in (each.value, each.low, each.high)]
                ranked = statistic == RANKED[measure] and score.rank is not None
                tail = (score.rank, int(score.tied)) if ranked else ("", "")
                rows.append((name, measure, statistic, *numbers, *tail))
    return rows


def write(found: Validation, folder: str | os.PathLike[str], title: str, source: Any) -> None:
    """Write data, table, picture and page to a folder that appears only when complete.

    The title is the name of the trace; the source is where it comes from, fit for JSON.
    """
    picture = figure_png(draw(found, title))
    with whole_folder(folder) as place:
        write_json(plain(found), place / "validation.json")
        write_csv(place / "validation.csv", COLUMNS, csv_rows(found))
        (place / "validation.png").write_bytes(picture)
        (place / "report.html").write_text(_page(found, title, picture), encoding="utf-8")
        write_origin(place, found.settings, trace=source)


#: What the columns of the table over several logs mean.
ACROSS_NOTE = (
    "better: better than each other model; worse: worse than the best one. Both with confidence "
    f"(p < {LEVEL:g}), corrected for the number of measures and logs. The other columns: mean rank "
    "over the logs, 1 is best."
)


def write_across(found: Across, folder: str | os.PathLike[str], sources: dict[str, Any]) -> None:
    """Write the results of several logs to a folder that appears only when complete.

    Each log has a folder in it, and a source: where its trace comes from, fit for JSON.
    """
    with whole_folder(folder) as place:
        for name, each in found.logs.items():
            write(each, place / name, name, sources[name])
        write_json(plain_across(found), place / "across.json")
        write_csv(place / "across.csv", (*RANK_HEADING, *RANKED), rank_rows(found))


def _page(found: Validation, title: str, picture: bytes) -> str:
    """Return the table and the picture as a page."""
    table = rows_table(
        HEADING,
        score_rows(found),
        caption="; ".join(f"{TITLES[name]}: {UNITS[kind]}" for name, kind in RANKED.items())
        + "; 0 is perfect everywhere.",
    )
    shown = figure_of(picture, "Scores and distances of all models with intervals")
    return html_page(f"Validation: {title}", [*headline(found), *notes(found)], [table, shown])


def draw(found: Validation, title: str) -> Figure:
    """Return a picture with a panel for each measure; the title is the name of the trace.

    Models are in the order of their mean rank, the best at the top. Filled dots: the best, or not
    distinguishable from it.
    """
    count = len(found.order)
    rows = -(-len(RANKED) // ACROSS)
    height = 2.1 + rows * (0.75 + 0.27 * count)
    figure = new_figure(
        15,
        height,
        f"Validation: {title}",
        f"Smaller is better. Bars: {found.settings['confidence']:.0%} interval, by resampling. "
        "Filled dots: the best, or "
        "not distinguishable from it",
    )
    grid = figure.add_gridspec(
        rows,
        ACROSS,
        left=0.135,
        right=0.985,
        bottom=0.95 / height,
        top=1 - 0.95 / height,
        hspace=0.75 / (0.75 + 0.27 * count) * 0.9,
        wspace=0.08,
    )
    for number, measure in enumerate(RANKED):
        axes = figure.add_subplot(grid[number // ACROSS, number % ACROSS])
        _panel(axes, found, measure, named=number % ACROSS == 0)
    from matplotlib.lines import Line2D

    figure.legend(
        [Line2D([], [], color=one.colour, linestyle=one.dashes) for one in FLOORS.values()],
        [one.meaning for one in FLOORS.values()],
        loc="lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def _panel(axes: Axes, found: Validation, measure: str, *, named: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    tidy(axes)
    statistic, names = RANKED[measure], found.order
    axes.set_title(f"{TITLES[measure]} ({UNITS[statistic]})", **TITLE)
    for place, name in enumerate(names):
        score = found.scores[name].get(measure)
        if score is None:
            axes.text(0.98, place, "no answer", fontsize=8, va="center", color="#777777",
                      ha="right", transform=axes.get_yaxis_transform())  # fmt: skip
            continue
        value = score.statistics[statistic]
        axes.plot([value.low, value.high], [place, place], color=COLOURS["blue"], linewidth=1.6)
        face = COLOURS["blue"] if score.tied else "white"
        axes.plot(
            [value.value], [place], "o", markersize=6, color=COLOURS["blue"], markerfacecolor=face
        )
    for name, floor in FLOORS.items():
        if measure in found.floors[name]:
            at = found.floors[name][measure].statistics[statistic].value
            axes.axvline(at, color=floor.colour, linewidth=1, linestyle=floor.dashes)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, prune="upper"))
    axes.set_yticks(range(len(names)), names if named else [""] * len(names), fontsize=9)
