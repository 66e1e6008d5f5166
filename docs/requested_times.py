"""Compare the model of users' estimates with real requests: table and picture of its page.

    python docs/requested_times.py FOLDER

reads the traces from FOLDER and writes ``docs/guides/requested-times.csv``, ``-replays.csv`` and
``docs/pictures/requested-times-kth.png``; then run ``docs/generate.py``. It takes half a minute.
``tests/environment/traces/test_requested.py`` measures again on KTH-SP2 and fails when the tables
are behind.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "guides" / "requested-times.csv"
REPLAYS = ROOT / "docs" / "guides" / "requested-times-replays.csv"
PICTURE = ROOT / "docs" / "pictures" / "requested-times-kth.png"

#: Logs with requested times, by their short names.
TRACES = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-DS": "SDSC-DS-2004-2.1-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "LANL-CM5": "LANL-CM5-1994-4.1-cln.swf.gz",
    "CEA-Curie": "CEA-Curie-2011-2.1-cln.swf.gz",
}

#: Seeds that the mean is taken over.
SEEDS = range(10)

#: What the model gets from a log, in the order of the table.
KNOWN = ("longest", "its share", "20 popular")


#: Replays of the first log with rigid users and EASY: settings by the scheduler's estimates.
CASES = {
    "requested times as recorded": {},
    "run times, exactly": {"estimates": "exact"},
    "model fitted to the log": {"requested": "tsafrir:fitted+all"},
    "model that knows the longest, 60 h": {"requested": "tsafrir:60h+all"},
}


class RequestScores(NamedTuple):
    """How two sets of requested times differ.

    Attributes
    ----------
    distinct, distinct_other
        Different requests.
    popular_share, popular_share_other
        Share of jobs with one of the twenty most popular requests of their own set.
    in_common
        Requests that are among the twenty most popular ones of both.
    total_variation
        Share of jobs whose request would have to change to get the other distribution, 0 to 1.
    ks
        Largest difference of the cumulative distributions (Kolmogorov and Smirnov), 0 to 1.
    """

    distinct: int
    distinct_other: int
    popular_share: float
    popular_share_other: float
    in_common: int
    total_variation: float
    ks: float


def compare_requests(requested: Any, other: Any) -> RequestScores:
    """Compare two sets of requested times (s, at least one each); the sets may differ in size."""
    from hpcrowd.environment.traces.request_model import POPULAR, most_popular

    both, places = np.unique(np.concatenate([requested, other]), return_inverse=True)
    first = np.bincount(places[: len(requested)], minlength=len(both)) / len(requested)
    second = np.bincount(places[len(requested) :], minlength=len(both)) / len(other)
    times, counts = most_popular(requested, POPULAR)
    times_other, counts_other = most_popular(other, POPULAR)
    return RequestScores(
        distinct=int(np.count_nonzero(first)),
        distinct_other=int(np.count_nonzero(second)),
        popular_share=int(counts.sum()) / len(requested),
        popular_share_other=int(counts_other.sum()) / len(other),
        in_common=len(np.intersect1d(times, times_other)),
        total_variation=float(np.abs(first - second).sum() / 2),
        ks=float(np.abs(np.cumsum(first - second)).max()),
    )


def requests(trace: Any) -> Any:
    """Return the requested times of a trace, s: of the jobs that have one."""
    found = trace["requested_time"]
    return found[found > 0].astype(np.int64)


def models(requested: Any) -> dict[str, Any]:
    """Return models that know more and more of the requests."""
    from hpcrowd.traces import RequestModel

    longest = RequestModel.fit(requested, 0).longest
    share = float((requested >= longest).mean())
    made = (
        RequestModel(longest),
        RequestModel(longest, {longest: share}),
        RequestModel.fit(requested),
    )
    return dict(zip(KNOWN, made, strict=True))


def generated(model: Any, jobs: int, seed: int) -> Any:
    """Return requests of a model, s, the shortest first."""
    from hpcrowd import Streams

    return np.repeat(*model.histogram(jobs, Streams(seed).generator("requested time")))


def rows(name: str, trace: Any) -> Iterator[dict[str, Any]]:
    """Yield the scores of each model, and those of the log's second half against the first."""

    requested = requests(trace)
    half = len(requested) // 2
    cases = {"first half": [(requested[half:], requested[:half])]}
    for known, model in models(requested).items():
        cases[known] = [(requested, generated(model, len(requested), seed)) for seed in SEEDS]
    for case, pairs in cases.items():
        scores = [compare_requests(*pair) for pair in pairs]
        means = {key: np.mean([getattr(s, key) for s in scores]) for key in scores[0]._fields}
        yield {"trace": name, "known": case} | {key: f"{v:.5g}" for key, v in means.items()}


def replays(trace: Any) -> Iterator[dict[str, Any]]:
    """Yield mean wait and slowdown of replays, those with a model for each seed."""
    from hpcrowd.scenarios.kinds.replay import replay

    for case, choices in CASES.items():
        for seed in SEEDS if "requested" in choices else SEEDS[:1]:
            found = replay(trace, users="rigid", seed=seed, **choices).metrics
            keys = ("wait_mean_s", "bounded_slowdown_mean")
            yield {"case": case, "seed": str(seed)} | {key: f"{found[key]:.6g}" for key in keys}


def write_table(path: Path, found: list[dict[str, Any]]) -> None:
    """Write rows."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def write_tables(folder: Path) -> None:
    """Score the models on every trace, and replay the first."""
    from hpcrowd import read_swf

    traces = {name: read_swf(folder / file) for name, file in TRACES.items()}
    write_table(TABLE, [row for name, trace in traces.items() for row in rows(name, trace)])
    write_table(REPLAYS, list(replays(next(iter(traces.values())))))


def requests_table() -> str:
    """Return the table for the page."""
    from markdown_tables import table

    head = ("log", "what the model knows", "different requests", "share of the 20 most popular",
            "popular in common", "total variation", "KS")  # fmt: skip
    cells = []
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            recorded, own = float(row["popular_share"]), float(row["popular_share_other"])
            cells.append((
                row["trace"], row["known"],
                f"{float(row['distinct_other']):.0f} of {float(row['distinct']):.0f}",
                f"{100 * own:.0f} of {100 * recorded:.0f} %",
                f"{float(row['in_common']):.1f}".removesuffix(".0"),
                f"{float(row['total_variation']):.2f}", f"{float(row['ks']):.2f}",
            ))  # fmt: skip
    return table(head, cells)


def replays_table() -> str:
    """Return the table of replays for the page."""
    from markdown_tables import table

    found: dict[str, list[tuple[float, float]]] = {}
    with REPLAYS.open(newline="") as file:
        for row in csv.DictReader(file):
            pair = float(row["wait_mean_s"]), float(row["bounded_slowdown_mean"])
            found.setdefault(row["case"], []).append(pair)
    cells = []
    for case, pairs in found.items():
        shown = []
        for values, digits in zip(zip(*pairs, strict=True), (0, 1), strict=True):
            spread = f" (sd {np.std(values, ddof=1):,.{digits}f})" if len(values) > 1 else ""
            shown.append(f"{np.mean(values):,.{digits}f}{spread}")
        cells.append((case, *shown))
    return table(("the scheduler believes", "mean wait, s", "mean bounded slowdown"), cells)


def draw(requested: Any, title: str) -> Any:
    """Return the picture: distributions recorded and generated, and sizes by popularity."""
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, TITLE, new_figure, tidy

    figure = new_figure(12, 4.6, title, f"{len(requested):,} jobs; model: one seed")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    figure.subplots_adjust(left=0.055, right=0.985, bottom=0.12, top=0.8, wspace=0.16)
    lines = [("recorded", requested, "grey", 3.2)]
    looks = zip(("orange", "green", "blue"), (1.3, 1.3, 1.5), strict=True)
    for (known, model), (colour, width) in zip(models(requested).items(), looks, strict=True):
        label = {"its share": "longest and its share"}.get(known, known)
        lines.append((f"model: {label}", generated(model, len(requested), 0), colour, width))
    for label, values, colour, width in lines:
        times, counts = np.unique(values, return_counts=True)
        style: dict[str, Any] = {"color": COLOURS[colour], "linewidth": width, "label": label}
        left.step(times, np.cumsum(counts) / len(values), where="post", **style)
        right.plot(np.arange(1, len(counts) + 1), np.sort(counts)[::-1] / len(values), **style)
    ticks = {60: "1 min", 300: "5 min", 900: "15 min", 3600: "1 h", 14400: "4 h", 43200: "12 h",
             216000: "60 h"}  # fmt: skip
    for axes in (left, right):
        tidy(axes)
        axes.set_xscale("log")
    left.set_xlim(30, 300_000)
    left.xaxis.set_major_locator(FixedLocator(list(ticks)))
    left.xaxis.set_minor_locator(NullLocator())
    left.set_xticklabels(list(ticks.values()))
    left.set_ylim(0, 1)
    left.yaxis.set_major_formatter(PercentFormatter(1.0))
    left.set_xlabel("requested time", fontsize=8.5)
    left.set_title("Share of jobs that asked for so long or less", **TITLE)
    left.legend(**LEGEND, loc="upper left")
    right.set_yscale("log")
    right.yaxis.set_major_locator(FixedLocator([0.0001, 0.001, 0.01, 0.1]))
    right.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    right.xaxis.set_major_formatter("{x:g}")
    right.set_xlabel("rank of the request, the most popular first", fontsize=8.5)
    right.set_title("Share of jobs by popularity", **TITLE)
    return figure


def write_picture(folder: Path) -> None:
    """Draw the picture of the first trace."""
    from hpcrowd import read_swf
    from hpcrowd.analysis.pictures.plots import figure_png

    name, file = next(iter(TRACES.items()))
    figure = draw(requests(read_swf(folder / file)), f"Requested times on {name}")
    PICTURE.write_bytes(figure_png(figure))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/requested_times.py FOLDER")
    write_tables(Path(sys.argv[1]))
    write_picture(Path(sys.argv[1]))
