"""The dependency graph of one user as a picture, and as text for Graphviz."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpcrowd.analysis.pictures.plots import COLOURS
from hpcrowd.environment.clock import DAY, Clock
from hpcrowd.environment.quantities import format_duration, plural

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.figure import Figure


#: Most sessions per row that are legible.
READABLE = 40

#: Most sessions per row that are legible with their numbers.
LABELLED = 12

#: Most rows of a picture.
MOST_ROWS = 8

BAR, WAIT = COLOURS["blue"], COLOURS["vermilion"]


def generate_dot(graph: nx.DiGraph[int]) -> str:
    """Return the graph in DOT: sessions with their jobs, edges with think times."""
    name = graph.name.replace('"', r"\"")
    lines = [f'digraph "user {name}" {{', "  rankdir=LR; node [shape=box];"]
    for session, data in graph.nodes(data=True):
        length = format_duration(data["end"] - data["start"])
        lines.append(
            f'  {session} [label="session {session}\\n{plural(len(data["jobs"]), "job")}, '
            f'{plural(len(data["batches"]), "batch")}\\n{length}"];'
        )
    for before, after, data in graph.edges(data=True):
        lines.append(f'  {before} -> {after} [label="{format_duration(data["think_time"])}"];')
    return "\n".join([*lines, "}"]) + "\n"


def draw_graph(graph: nx.DiGraph[int], clock: Clock | None = None) -> Figure:
    """Return a picture of the graph: sessions as bars over time, think times as lines.

    Overlapping sessions are drawn above each other. Many sessions are split over several rows;
    above :data:`READABLE` sessions the numbers are left out.
    """
    from matplotlib.figure import Figure

    clock = clock or Clock()
    nodes = graph.nodes
    lane_of = _lanes(graph)
    lanes = max(2, 1 + max(lane_of.values(), default=0))
    few = len(graph) <= READABLE
    rows = min(MOST_ROWS, max(1, math.ceil(len(graph) / (LABELLED if few else READABLE))))
    origin = min((nodes[session]["start"] for session in graph), default=0)
    span = max((nodes[session]["end"] for session in graph), default=1) - origin
    width = max(span, 1) / DAY / rows
    figure = Figure(
        figsize=(11, min(14, 1 + rows * (0.5 + (0.5 if few else 0.3) * lanes))),
        layout="constrained",
    )
    for row, axes in enumerate(figure.subplots(rows, 1, squeeze=False)[:, 0]):
        for before, after in graph.edges:
            axes.plot(
                [(nodes[before]["end"] - origin) / DAY, (nodes[after]["start"] - origin) / DAY],
                [lane_of[before], lane_of[after]],
                color=WAIT,
                linewidth=1.2,
                alpha=0.8,
                zorder=1,
            )
        lengths = [nodes[session]["end"] - nodes[session]["start"] for session in lane_of]
        axes.barh(
            list(lane_of.values()),
            [max(length / DAY, width / 1000) for length in lengths],
            left=[(nodes[session]["start"] - origin) / DAY for session in lane_of],
            height=0.6,
            color=BAR,
            alpha=0.75,
            zorder=2,
        )
        for session, lane in lane_of.items() if few else ():
            axes.annotate(
                f"{session} ({len(nodes[session]['jobs'])})",
                ((nodes[session]["start"] - origin) / DAY, lane + 0.32),
                fontsize=7,
                rotation=35,
                clip_on=True,
            )
        axes.set_xlim((row - 0.005) * width, (row + 1.005) * width)
        axes.set_ylim(-0.5, lanes + (0.1 if few else -0.2))
        axes.set_yticks([])
        for side in ("left", "right", "top"):
            axes.spines[side].set_visible(False)
    zone = "nominal time" if clock.nominal else clock.zone
    axes.set_xlabel(f"days since {clock.local(origin):%a %d %b %Y %H:%M} ({zone})")
    bars = "bars, number (jobs)" if few else "bars"
    figure.suptitle(
        f"User {graph.name}: {len(graph)} sessions ({bars}); lines: think times before "
        "sessions that wait",
        fontsize=10,
    )
    return figure


def _lanes(graph: nx.DiGraph[int]) -> dict[int, int]:
    """Return the lane of each session."""
    nodes = graph.nodes
    order = sorted(graph, key=lambda number: int(nodes[number]["start"]))
    spans = ((nodes[session]["start"], nodes[session]["end"]) for session in order)
    return dict(zip(order, lanes_of(spans), strict=True))


def lanes_of(spans: Iterable[tuple[int, int]]) -> list[int]:
    """Return the lowest lane for each span in which nothing overlaps it; spans are by begin."""
    free: list[int] = []
    found = []
    for begin, end in spans:
        lane = next((place for place, until in enumerate(free) if until <= begin), len(free))
        free[lane : lane + 1] = [end]
        found.append(lane)
    return found
