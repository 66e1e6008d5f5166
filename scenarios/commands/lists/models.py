"""The command ``hpcrowd models``: list workload models and arrivals, with their sources."""

from __future__ import annotations

from typing import Any

from hpcrowd.analysis.models.model import (
    ARRIVALS,
    MODELS,
    arrival_model,
    job_model,
    keyword_options,
)
from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.terminal import plain_table, print_json, standard_output


def command(as_json: AsJson = False) -> None:
    """List the workload models and the models of arrivals."""
    kinds: dict[str, dict[str, dict[str, Any]]] = {"models": {}, "arrivals": {}}
    for name, kind in MODELS.items():
        part = job_model(name)
        kinds["models"][name] = {
            "title": part.title,
            "source": part.source,
            "arrivals": kind.arrivals,
            "options": sorted(keyword_options(part.fit)),
        }
    for name in ARRIVALS:
        times = arrival_model(name)
        kinds["arrivals"][name] = {"title": times.title, "source": times.source}
    if as_json:
        print_json(kinds)
        return
    console = standard_output()
    for title, ones in kinds.items():
        more = ("arrives by",) if title == "models" else ()
        rows = [
            (name, one["title"], one["source"], *([one["arrivals"]] if more else []))
            for name, one in ones.items()
        ]
        console.print(plain_table(title, "what", "source", *more, rows=rows, words=4, whole=1))
        console.print()
    console.print("fit a model: hpcrowd fit MODEL TRACE -o M.json; then hpcrowd generate M.json")
