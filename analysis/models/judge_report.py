"""A judgement as one HTML file: features, distances and pictures, trace beside generated."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from analysis.features.catalogue import GROUPS
from analysis.features.distance import VARIABLES
from analysis.features.feature import Feature, Value
from analysis.features.pictures import PICTURES
from analysis.features.text import format_value
from analysis.models.judge import Judgement, Spread, generated
from analysis.plots import figure_png
from analysis.report import Picture, figure_of, html_page, table_of
from analysis.results import versions

#: Generated workloads that stand beside the trace in pictures.
SHOWN = 2


def format_spread(feature: Feature, found: Spread | None) -> tuple[str, str]:
    """Return mean and standard deviation of a feature for people; empty where there is none."""
    if found is None:
        return "", ""
    spread = "" if found.sd is None else format_value(feature, Value(found.sd))
    return format_value(feature, Value(found.mean)), spread


def within(trace: float | None, found: Spread | None) -> str:
    """Return whether the trace lies among the replications, for people; empty if unknown."""
    if trace is None or found is None or found.count < 2:
        return ""
    return "inside" if found.least <= trace <= found.most else "outside"


def judgement_html(judgement: Judgement, *, again: str = "") -> str:
    """Return the report as one HTML file without scripts, which loads nothing.

    Parameters
    ----------
    judgement
        What was found.
    again
        Command that makes the same again.
    """
    model, trace = judgement.model, judgement.trace.workload
    shown = [generated(model, trace, one.seed) for one in judgement.replications[:SHOWN]]
    workloads = [trace, *shown]
    count = len(judgement.replications)
    lead = [
        f"Model {model.name} with arrivals {model.arrivals.name}: {count} generated workloads of "
        f"{len(trace):,} jobs beside {trace.name}. Inside: the trace lies between the smallest and "
        "the largest of them.",
        *model.notes,
    ]
    parts = ["<h2>Distances of distributions</h2>", _distances(judgement)]
    for group in GROUPS:
        parts.append(f"<h2>{escape(group.title)}</h2>")
        for picture in PICTURES.values():
            if picture.group == group.name:
                png = figure_png(picture.draw(workloads))
                parts.append(figure_of(Picture(png, picture.caption)))
        parts.append(_features(judgement, group.features))
    told = ", ".join(f"{name} {text}" for name, text in versions().items())
    parts.append(f"<p class='quiet'>Versions: {escape(told)}.</p>")
    if again:
        parts.append(f"<p class='quiet'>Again: <code>{escape(again)}</code></p>")
    return html_page(f"{model.name} beside {trace.name}", lead, parts)


def _features(judgement: Judgement, features: Iterable[Feature]) -> str:
    rows = []
    for one in features:
        value, found = judgement.trace[one.name], judgement.spread(one.name)
        mean, sd = format_spread(one, found)
        mean = mean or f"not available: {judgement.reason(one.name)}"
        cells = (format_value(one, value), mean, sd, within(value.number, found))
        rows.append((one.title, cells, one.definition))
    return table_of(("trace", "generated, mean", "spread", "trace is"), rows, "definition")


def _distances(judgement: Judgement) -> str:
    rows = []
    for name, variable in VARIABLES.items():
        ks, moved = judgement.ks(name), judgement.wasserstein(name)
        cells = (
            "not available" if ks is None else f"{ks.mean:.3f}",
            "" if ks is None or ks.sd is None else f"{ks.sd:.3f}",
            "" if moved is None else f"{100 * moved.mean:.1f} %",
        )
        rows.append((variable.title, cells, variable.unit))
    return table_of(("KS, mean", "spread", "Wasserstein over the trace's mean"), rows, "unit")
