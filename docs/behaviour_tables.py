"""The generated parts of the pages about behaviours and populations; see ``generate.py``."""

from __future__ import annotations

import csv
import inspect
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from markdown_tables import first_line, table

BEHAVIOURS = Path(__file__).resolve().parent / "behaviours"

#: Behaviours that share the page of another one.
SHARED_PAGES = {"generative": "shmueli-feitelson"}


def page_of(behaviour: str) -> str:
    """Return the name of the page of a behaviour."""
    return f"{SHARED_PAGES.get(behaviour, behaviour)}.md"


def presets_table() -> str:
    """Return the named behaviours with their parts and sources."""
    from hpcrowd.agents.presets import PRESETS

    rows = []
    for name, preset in PRESETS.items():
        link = f"[`{name}`]({page_of(name)})"
        rows.append((link, preset.when, preset.think, preset.window, preset.does, preset.source))
    return table(("behaviour", "when", "think", "window", "users keep", "source"), rows)


def choices_table() -> str:
    """Return the named behaviours and what users keep, in short."""
    from hpcrowd.agents.presets import PRESETS

    rows = [
        (f"[`{name}`](../behaviours/{page_of(name)})", preset.does)
        for name, preset in PRESETS.items()
    ]
    return table(("behaviour", "users keep"), rows)


def parameters_table(name: str) -> str:
    """Return the parameters of a named behaviour."""
    from hpcrowd.agents.presets import PRESETS

    rows = [
        (f"`{each.name}`", each.meaning, each.unit, each.default_words, each.source)
        for each in PRESETS[name].parameters()
    ]
    return table(("parameter", "meaning", "unit", "default", "source"), rows)


#: Columns of measured tables: name, title, what one unit is worth, digits.
MEASURED = (
    ("wait_mean_s", "mean wait, min", 60, 0),
    ("makespan_s", "makespan, days", 86_400, 0),
    ("lateness_mean_s", "mean lateness, days", 86_400, 1),
    ("profile_distance", "distance of weekly profiles", 1, 2),
    ("unevenness", "unevenness of the week", 1, 2),
    ("activity_p50", "activity length, p50", 1, 2),
    ("activity_p90", "activity length, p90", 1, 2),
)


def measurements() -> dict[tuple[str, str], list[dict[str, str]]]:
    """Return the rows of ``measured.csv`` by trace and behaviour, one for each seed."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    with (BEHAVIOURS / "measured.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["trace"], row["users"]), []).append(row)
    return found


def measured_table(first: str, which: dict[str, list[dict[str, str]]]) -> str:
    """Return measures by what the first column names; means over seeds +- standard deviation."""
    rows = []
    for name, runs in which.items():
        cells = [f"`{name}`" if first == "behaviour" else name]
        for column, _, worth, digits in MEASURED:
            values = [float(run[column]) / worth for run in runs]
            cell = f"{fmean(values) + 0.0:,.{digits}f}"
            cells.append(f"{cell} ± {stdev(values):.{digits}f}" if len(values) > 1 else cell)
        rows.append(tuple(cells))
    return table((first, *(title for _, title, *_ in MEASURED)), rows)


def measured_tables() -> str:
    """Return the measures of all behaviours, a table for each trace."""
    by_trace: dict[str, dict[str, list[dict[str, str]]]] = {}
    for (trace, users), runs in measurements().items():
        by_trace.setdefault(trace, {})[users] = runs
    return "\n".join(
        f"### {trace}\n\n{measured_table('behaviour', which)}" for trace, which in by_trace.items()
    )


def measured_of(name: str) -> str:
    """Return the measures of one behaviour by trace."""
    found = {trace: runs for (trace, users), runs in measurements().items() if users == name}
    return measured_table("trace", found)


def windows_table() -> str:
    """Return the distances of weekly profiles of behaviours without and with fitted windows."""
    found = measurements()
    traces = list(dict.fromkeys(trace for trace, _ in found))
    rows = []
    for users in dict.fromkeys(users for _, users in found):
        far = [[float(run["profile_distance"]) for run in found[each, users]] for each in traces]
        rows.append((f"`{users}`", *(f"{fmean(values):.2f}" for values in far)))
    return table(("behaviour", *traces), rows)


def population_tables() -> str:
    """Return every field of a file that describes a population, table by table."""
    from hpcrowd.scenarios.kinds.population_files import PopulationConfig

    parts = []
    left: list[tuple[str, Any]] = [("the head of the file", PopulationConfig)]
    while left:
        name, model = left.pop(0)
        rows = []
        for each, field in model.model_fields.items():
            if field.exclude or not field.description:
                continue  # not for a file
            inner = [kind for kind in _classes(field.annotation) if hasattr(kind, "model_fields")]
            kind, place = "table", f"`{each}`"
            if not inner:
                kind = _kind(field)
            elif get_origin(field.annotation) is tuple:
                kind, place = "list of tables", f"`[[{each}]]`"
            elif get_origin(field.annotation) is dict:
                kind, place = "table of tables", f"`[{each}.NAME]`"
            left += [(place, model) for model in inner]
            rows.append((f"`{each}`", kind, _default_of(field), field.description or ""))
        title = f"### In {name}\n\n{first_line(model.__doc__)}\n\n"
        parts.append(title + table(("field", "type", "default", "meaning"), rows))
    return "\n".join(parts)


def _classes(annotation: Any) -> list[type]:
    if inspect.isclass(annotation):
        return [annotation]
    return [each for inner in get_args(annotation) for each in _classes(inner)]


def _is_read(metadata: Iterable[Any], annotation: Any) -> bool:
    """Return whether a value may be a text that is read, such as a duration."""
    inner = getattr(annotation, "__metadata__", ())
    if any(type(each).__name__ == "BeforeValidator" for each in (*metadata, *inner)):
        return True
    return get_origin(annotation) in (Union, UnionType) and any(
        _is_read((), each) for each in get_args(annotation)
    )


def _kind(field: Any) -> str:
    """Return what a field takes, in words."""
    words = {int: "integer", float: "number", bool: "true or false", str: "text", dict: "table"}
    if _is_read(field.metadata, field.annotation):
        return "s or duration"
    if get_origin(field.annotation) is tuple:
        inner = get_args(field.annotation)[0]
        return (
            "list of days"
            if get_origin(inner) is Literal
            else f"list of {words.get(inner, 'table')}s"
        )
    found = [words[each] for each in _classes(field.annotation) if each in words]
    return found[0] if found else "text"


def _default_of(field: Any) -> str:
    if field.is_required():
        return "required"
    if field.default in (None, (), {}):
        return ""
    if isinstance(field.default, tuple):
        return f"`[{', '.join(json.dumps(each) for each in field.default)}]`"
    return f"`{json.dumps(field.default)}`"


def noticed_table() -> str:
    """Return what learned users notice."""
    from hpcrowd.agents.learned.features import FEATURES

    rows = [(f"`{one.name}`", one.meaning, one.unit) for one in FEATURES]
    return table(("feature", "meaning", "unit"), rows)


def places_of_behaviours() -> dict[str, Callable[[], str]]:
    """Return the places on the pages of single behaviours."""
    from hpcrowd.agents.presets import PRESETS

    made: dict[str, Callable[[], str]] = {"features_learned": noticed_table}
    replayed = {users for _, users in measurements()}
    for name, preset in PRESETS.items():
        word = name.replace("-", "_")
        if name in replayed:
            made[f"measured_{word}"] = partial(measured_of, name)
            if preset.parameters():
                made[f"parameters_{word}"] = partial(parameters_table, name)
    return made
