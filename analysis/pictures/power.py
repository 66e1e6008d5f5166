"""The power of a machine over time, what of it brought no result, carbon intensity and price.

The functions take an account of energy, so that they serve a finished run and one in progress.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis import curves
from hpcrowd.analysis.energy.account import KILO, PARTS, WASTED, Blocks, EnergyAccount
from hpcrowd.analysis.energy.part import over_time_of
from hpcrowd.analysis.pictures import plots
from hpcrowd.analysis.pictures.over_time import TIME_BINS, Columns, local_times
from hpcrowd.environment.clock import DAY, HOUR, Clock, moment
from hpcrowd.environment.jobs import Int64s
from hpcrowd.environment.signals.steps import Steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcrowd.analysis.run import Run


#: Height of the power, and of each signal below it, inches.
HIGH, LOW = 3.3, 1.25

#: Inches above the panels, between them, and below.
HEAD, GAP, FOOT = 0.85, 0.42, 0.68

#: Widest bins that show the course of a day, s; wider ones of signals are whole days.
SHOWS_DAYS = 3 * HOUR


#: What :func:`wasted_of` is, in words.
WASTE = "idle nodes, and jobs without a result"


@dataclass(frozen=True)
class Signal:
    """A signal of an account, for pictures."""

    name: str  #: in a table, with its unit
    words: str  #: for people
    unit: str
    steps: Steps  #: its values over time


def power_text(kw: float) -> str:
    """Return a power in a readable unit.

    Examples
    --------
    >>> power_text(0.25), power_text(46.541), power_text(12_345)
    ('0.250 kW', '46.54 kW', '12.35 MW')
    """
    value, unit = (kw / KILO, "MW") if abs(kw) >= 10_000 else (kw, "kW")
    return f"{value:,.{3 if abs(value) < 1 else 2 if abs(value) < 100 else 0}f} {unit}"


def signals_of(account: EnergyAccount) -> list[Signal]:
    """Return the signals that an account knows: carbon intensity, price of energy."""
    found, rates = [], account.rates
    if rates.carbon is not None:
        found.append(Signal("carbon_g_per_kwh", "Carbon intensity", "g/kWh", rates.carbon))
    if rates.price is not None:
        currency = "" if account.tariff is None else account.tariff.currency
        found.append(Signal("price_per_kwh", "Price of energy", f"{currency}/kWh", rates.price))
    return found


def wasted_of(account: EnergyAccount) -> Steps:
    """Return the power that brought no result over time, cooling included, W."""
    blocks = account.blocks
    wasted = np.isin(blocks.part, [list(PARTS).index(name) for name in WASTED])
    columns = {name: values[wasted] for name, values in vars(blocks).items()}
    return replace(account, blocks=Blocks(**columns), there=account.rest).curve


def bins_of(account: EnergyAccount, edges: Int64s) -> Int64s:
    """Return the edges of bins, s, within the time of an account; at least one bin."""
    found: Int64s = np.unique(np.clip(edges, account.begin, account.end))
    if len(found) > 1:
        return found
    return (
        np.array([account.end - 1, account.end]) if found[0] == account.end else found[0] + [0, 1]
    )


def signal_bins(edges: Int64s) -> Int64s:
    """Return the edges of bins for signals: if others are wider than hours, whole days.

    Carbon intensity and prices have the rhythm of days, of which bins of half days show stripes.
    """
    first, last = int(edges[0]), int(edges[-1])
    if np.diff(edges).max() <= SHOWS_DAYS:
        return edges
    days = curves.time_edges(first, last, min(TIME_BINS, -(-(last - first) // DAY)))
    found: Int64s = np.unique(np.clip(days, first, last))
    return found


def power_columns(account: EnergyAccount, edges: Int64s) -> Columns:
    """Return power and signals, averaged over bins within the time of an account; edges in s.

    The columns are ``begin_s``, ``end_s``, ``power_kw``, ``wasted_kw`` of it, and what is known of
    ``carbon_g_per_kwh`` and ``price_per_kwh``, each of shape (bins,).
    """
    begin, end = edges[:-1], edges[1:]
    return {
        "begin_s": begin,
        "end_s": end,
        "power_kw": account.curve.mean(begin, end) / KILO,
        "wasted_kw": wasted_of(account).mean(begin, end) / KILO,
        **{one.name: one.steps.mean(begin, end) for one in signals_of(account)},
    }


def highest_between(curve: Steps, first: int, last: int) -> tuple[float, int]:
    """Return the highest power between two seconds, W, and the second in which it is reached."""
    places = np.flatnonzero((curve.edges[1:] > first) & (curve.edges[:-1] < last))
    place = places[int(curve.values[places].argmax())]
    return float(curve.values[place]), max(first, int(curve.edges[place]))


def power_picture(
    account: EnergyAccount,
    edges: Int64s,
    clock: Clock,
    title: str,
    subtitle: str = "",
    *,
    width: float = 12.0,
) -> Figure:
    """Return a picture of power over time; the highest and the mean of the time are marked.

    Edges of the bins in s, within the time of the account; width in inches.
    """
    signals, columns = signals_of(account), power_columns(account, edges)
    heights = (HIGH, *[LOW] * len(signals))
    height = HEAD + sum(heights) + GAP * len(signals) + FOOT
    figure = plots.new_figure(width, height, title, subtitle)
    panels = plots.panels(
        figure, len(heights), 1, bottom=FOOT / height, top=1 - HEAD / height,
        hspace=GAP * len(heights) / sum(heights), height_ratios=heights,
    )  # fmt: skip
    rough = signal_bins(edges)
    _draw_power(panels[0], account, edges, columns, clock)
    for axes, one in zip(panels[1:], signals, strict=True):
        over = "" if rough is edges else f", {_averaged(rough)}"
        plots.tidy(axes, f"{one.words}, {one.unit}{over}")
        values = one.steps.mean(rough[:-1], rough[1:])
        axes.stairs(values, rough, baseline=None, color="#444444", linewidth=1.1)
        axes.set_ylim(min(0.0, 1.08 * float(values.min())), max(1.08 * float(values.max()), 1e-9))
    for place, axes in enumerate(panels):
        plots.label_hours(
            axes, clock, int(edges[0]), int(edges[-1]), named=place == len(signals),
            most=int(1.08 * width),
        )  # fmt: skip
    plots.legend_at_right(figure, panels[0], 3)
    return figure


def _averaged(edges: Int64s) -> str:
    """Return the averaging interval in words; the first bin may be shorter than the others."""
    return plots.averaged(edges[1:] if len(edges) > 2 else edges)


def _draw_power(
    axes: Axes, account: EnergyAccount, edges: Int64s, columns: Columns, clock: Clock
) -> None:
    first, last = int(edges[0]), int(edges[-1])
    plots.tidy(axes, f"Power of the machine, kW, {_averaged(edges)}")
    power, wasted = columns["power_kw"], columns["wasted_kw"]
    fill: dict[str, Any] = {"fill": True, "linewidth": 0}
    axes.stairs(power, edges, color=plots.COLOURS["sky"], label="jobs with a result", **fill)
    axes.stairs(wasted, edges, color=plots.COLOURS["orange"], label=WASTE, **fill)
    axes.stairs(power, edges, baseline=None, color=plots.COLOURS["blue"], linewidth=0.8)
    mean = float(account.curve.mean(first, last)) / KILO
    dashes: Any = (0, (4, 3))
    axes.axhline(
        mean, color="black", linewidth=0.9, linestyle=dashes, label=f"mean {power_text(mean)}"
    )
    watts, at = highest_between(account.curve, first, last)
    axes.plot([at], [watts / KILO], "v", color=plots.COLOURS["vermilion"], markersize=5)
    right = at > (first + last) / 2
    axes.annotate(
        f"highest {power_text(watts / KILO)}, {moment(clock, at)}", (at, watts / KILO),
        xytext=(-7 if right else 7, 2), textcoords="offset points", fontsize=8,
        ha="right" if right else "left", va="bottom",
    )  # fmt: skip
    axes.set_ylim(0, 1.14 * max(watts / KILO, 1e-9))


def _edges_of(account: EnergyAccount) -> Int64s:
    return bins_of(account, curves.time_edges(account.begin, account.end, TIME_BINS))


def power_over_time(run: Run) -> Figure:
    """Return a picture of the power of a whole run, which has an account of energy."""
    account = over_time_of(run.parts)
    assert account is not None
    return power_picture(account, _edges_of(account), run.clock, "Power", plots.run_name(run))


def power_data(run: Run) -> Columns:
    """Return the data of :func:`power_over_time`, see :func:`power_columns`."""
    account = over_time_of(run.parts)
    assert account is not None
    columns = power_columns(account, _edges_of(account))
    begin = columns["begin_s"]
    return {"begin_s": begin, "begin_local_time": local_times(run, begin), **columns}


def write_power(run: Run, folder: str | Path) -> list[Path]:
    """Write :func:`power_over_time` as ``power.png`` into an existing folder; return the paths.

    A run without an account of energy has no such picture.
    """
    if over_time_of(run.parts) is None:
        return []
    path = Path(folder) / "power.png"
    path.write_bytes(plots.figure_png(power_over_time(run)))
    return [path]
