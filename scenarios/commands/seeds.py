"""``hpcrowd replay --seeds``: the same run with several seeds, and the ranges of its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.commands.options import COUNTS
from hpcrowd.scenarios.terminal import (
    plain_table,
    print_json,
    simulation_progress,
    standard_output,
    status,
)

if TYPE_CHECKING:
    from hpcrowd.environment.traces.trace import Trace
    from hpcrowd.scenarios.kinds.replay import ReplayConfig

#: What ranges have: the median, the lowest and the highest value.
RANGE = ("median", "lowest", "highest")


def ranges_of(found: Sequence[Any]) -> Any:
    """Return the ranges of the numbers in summaries, which otherwise stay as they are.

    Values that are no numbers are those of the first summary.
    """
    if all(isinstance(one, Mapping) for one in found):
        names = dict.fromkeys(name for one in found for name in one)
        return {name: ranges_of([one.get(name) for one in found]) for name in names}
    known = [one for one in found if one is not None]
    if known and all(isinstance(one, int | float) for one in known):
        return dict(zip(RANGE, (median(known), min(known), max(known)), strict=True))
    return found[0]


def tell_ranges(
    config: ReplayConfig, read: Callable[[], Trace], seeds: int, *, as_json: bool
) -> None:
    """Replay a trace with several seeds, from that of the settings on, and print the ranges."""
    from hpcrowd.analysis.metrics import METRICS, format_metric
    from hpcrowd.analysis.run import headline

    status.doing("reading")
    trace, summaries, lines = read(), [], list[str]()
    for number in range(seeds):
        again = config.model_copy(update={"seed": config.seed + number})
        with simulation_progress(len(trace)) as progress:
            run = again.run(trace, progress, None)
        summaries.append(run.summary())
        lines = lines or headline(run)
    same = ("configuration", "clock", "recorded")
    keep = {name: summaries[0][name] for name in same if name in summaries[0]}
    found = ranges_of(summaries) | keep | {"seeds": seeds}
    if as_json:
        print_json(found)
        return
    console = standard_output()
    for line in lines:
        console.print(line, soft_wrap=True)
    console.print(f"this was seed {config.seed}; ranges over {seeds} seeds, from there on:")
    recorded = keep.get("recorded", {})
    table = plain_table("metric", *RANGE, *(["recorded"] if recorded else []))
    for metric in METRICS:
        of = found.get(metric.name)
        if of is None or (metric.name.startswith(COUNTS) and not of["highest"]):
            continue
        cells = [format_metric(metric.name, of[name]) for name in RANGE]
        known = recorded.get(metric.name)
        beside = [] if known is None else [format_metric(metric.name, known)]
        table.add_row(metric.words, *cells, *beside)
    console.print(table)
    for machine in found.get("machines", {}).values():
        waits = plain_table("mean wait in partition", *RANGE)
        for name, partition in machine["partitions"].items():
            if (of := partition["wait_mean_s"]) is not None:
                waits.add_row(name, *(format_metric("wait_mean_s", of[one]) for one in RANGE))
        console.print()
        console.print(waits)
