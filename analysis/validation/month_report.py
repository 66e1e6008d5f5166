"""Output of a judgement by the month: rows of tables, plain data, and a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.results import write_csv, write_json, write_origin
from hpcrowd.analysis.validation.chance import NEAR
from hpcrowd.analysis.validation.month import DAILY, REPEATED, STATES, TOTALS, Judgement
from hpcrowd.environment.output.whole import whole_folder

if TYPE_CHECKING:
    from hpcrowd.analysis.curves import Floats
    from hpcrowd.analysis.paired import Estimate

#: Marks of a score that is better, or worse, than that of the weeks before, with confidence.
BETTER, WORSE = "+", "-"

#: Most origins that a table has columns for.
MOST = 6

#: Columns of ``month.csv``.
COLUMNS = ("source", "measure", "origin", "recorded", "mean", "low", "high", "crps")

#: What the tables show.
NOTE = (
    "CRPS: mean over values and origins, as a share of the recorded mean; 0 is perfect. "
    f"{BETTER}: better than '{REPEATED}' beyond the 95 % interval, {WORSE}: worse; only measures "
    "by day have intervals. covered: share of recorded values in the 90 % interval of the draws. "
    "ratio: mean of the draws by the record, median over the origins; in all: the sum over the "
    "origins by that of the record."
)


def measures_of(found: Judgement) -> list[str]:
    """Return the names of the measures, without those of the account."""
    return [name for name in found.record[0] if not name.endswith("_by_state")]


def mark(gain: Estimate) -> str:
    """Return the mark of a difference of scores; empty if the interval has 0."""
    if gain.low is None or gain.high is None:
        return ""
    return BETTER if gain.high < 0 else WORSE if gain.low > 0 else ""


def score_rows(found: Judgement) -> list[list[str]]:
    """Return a row for each source: its name, and CRPS of each measure with a mark."""
    rows = []
    for source in found.sources:
        row = [source]
        for measure in measures_of(found):
            sign = ""
            if measure in DAILY and source != REPEATED:
                sign = mark(found.gain(source, measure))
            row.append(f"{found.score(source, measure):.3f}{sign}")
        rows.append(row)
    return rows


def coverage_rows(found: Judgement) -> list[list[str]]:
    """Return a row for each source: its name, and the coverage of each measure."""
    return [
        [
            source,
            *(
                "" if (share := found.coverage(source, measure)) is None else f"{100 * share:.0f} %"
                for measure in measures_of(found)
            ),
        ]
        for source in found.sources
    ]


def ratio_rows(found: Judgement) -> list[list[str]]:
    """Return a row for each source and total: ratios at the origins, their median, and in all."""
    rows = []
    for source in found.sources:
        for measure in TOTALS:
            ratios = found.ratios(source, measure)
            shown = ratios if len(ratios) <= MOST else (ratios.min(), ratios.max())
            numbers = (*shown, np.median(ratios), found.whole(source, measure))
            rows.append([source, measure.replace("_", " "), *(f"{one:.2f}" for one in numbers)])
    return rows


def chance_lines(found: Judgement) -> list[str]:
    """Return a line for each total: what chance alone does to the median of its ratio."""
    return [
        f"A model that knew the mean {measure.replace('_', ' ')} of the log would have a median "
        f"ratio of {one.low:.2f} to {one.high:.2f} (90 %), within {NEAR:g} of 1 in "
        f"{100 * one.near:.0f} %, if its months came in any order."
        for measure, one in found.chance.items()
    ]


def account_rows(found: Judgement) -> list[list[str]]:
    """Return the account of the record, then of each source: what its jobs and hours come from.

    Means over origins and draws, a day: jobs and processor-hours by what users were at the origin;
    then active users, sessions of each, jobs in a session, and processor-hours of a job.
    """

    def row(name: str, of: list[dict[str, Floats]]) -> list[str]:
        means = {
            measure: np.mean([np.atleast_2d(one[measure]).mean(axis=0) for one in of], axis=0)
            for measure in ("jobs_by_state", "hours_by_state", *DAILY)
        }
        load, jobs, users, sessions = (float(means[measure].mean()) for measure in DAILY)
        parts = (users, sessions / max(users, 1e-9), jobs / max(sessions, 1e-9),
                 load / max(jobs, 1e-9))  # fmt: skip
        return [
            name,
            *(f"{one:.1f}" for one in means["jobs_by_state"]),
            *(f"{one:.0f}" for one in means["hours_by_state"]),
            *(f"{one:.2f}" for one in parts),
        ]

    drawn = {name: [one[name] for one in found.drawn] for name in found.sources}
    return [row("record", found.record), *(row(name, of) for name, of in drawn.items())]


#: Headings of the account.
ACCOUNT = (
    "a day", *(f"jobs of {name}" for name in STATES), *(f"hours of {name}" for name in STATES),
    "users", "sessions of each", "jobs in each", "hours of each",
)  # fmt: skip


def headings(found: Judgement) -> list[str]:
    """Return the headings of the rows of scores and coverages."""
    return ["source", *(name.replace("_", " ") for name in measures_of(found))]


def ratio_headings(found: Judgement) -> list[str]:
    """Return the headings of the rows of ratios."""
    origins = [f"{found.clock.local(one):%d %b %Y}" for one in found.origins]
    if len(origins) > MOST:
        origins = [f"lowest of {len(origins)} origins", "highest"]
    return ["source", "ratio of", *origins, "median", "in all"]


def plain(found: Judgement) -> dict[str, Any]:
    """Return the judgement as plain data, fit for JSON."""

    def of(source: str, measure: str) -> dict[str, Any]:
        row: dict[str, Any] = {
            "crps": found.score(source, measure),
            "coverage_90": found.coverage(source, measure),
        }
        if measure in TOTALS:
            ratios = found.ratios(source, measure)
            row |= {
                "ratios": ratios.tolist(), "ratio_median": float(np.median(ratios)),
                "ratio_in_all": found.whole(source, measure),
            }  # fmt: skip
        if measure in DAILY and source != REPEATED:
            gain = found.gain(source, measure)
            row["less_weeks_before"] = {
                "mean": gain.mean, "low": gain.low, "high": gain.high, "days": gain.count,
            }  # fmt: skip
        return row

    return {
        "settings": found.settings,
        "clock_note": found.clock.note,
        "origins": [found.clock.local(one).isoformat() for one in found.origins],
        "account": [dict(zip(ACCOUNT, row, strict=True)) for row in account_rows(found)],
        "chance": {measure: one._asdict() for measure, one in found.chance.items()},
        "recorded": [
            {name: values.tolist() for name, values in one.items()} for one in found.record
        ],
        "sources": {
            source: {measure: of(source, measure) for measure in measures_of(found)}
            for source in found.sources
        },
    }


def csv_rows(found: Judgement) -> list[tuple[Any, ...]]:
    """Return a row for each source, measure and origin, means over the values of the measure."""
    rows = []
    for source in found.sources:
        for measure in measures_of(found):
            scores = found.scores(source, measure)
            for place, record in enumerate(found.record):
                members = found.drawn[place][source][measure].mean(axis=1)
                low, high = np.quantile(members, (0.05, 0.95))
                numbers = (
                    record[measure].mean(), members.mean(), low, high, scores[place].mean(),
                )  # fmt: skip
                begins = found.clock.local(found.origins[place]).isoformat()
                rows.append((source, measure, begins, *(f"{one:.6g}" for one in numbers)))
    return rows


def write(
    found: Mapping[str, Judgement], folder: str | os.PathLike[str], sources: Mapping[str, Any]
) -> None:
    """Write the data to a folder that appears only when complete; of several logs, one in it each.

    Parameters
    ----------
    found, folder
        The judgements by log, and the folder.
    sources
        Where the trace of each log comes from, fit for JSON.
    """
    with whole_folder(folder) as whole:
        for name, each in found.items():
            place = whole if len(found) == 1 else whole / name
            place.mkdir(exist_ok=True)
            write_json(plain(each), place / "month.json")
            write_csv(place / "month.csv", COLUMNS, csv_rows(each))
            write_origin(place, each.settings, trace=sources[name])
