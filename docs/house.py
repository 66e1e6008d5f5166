"""The heart and its parts: which files are whose, and the picture of what imports what.

``generate.py`` writes ``docs/pictures/house.svg`` from here; ``tests/house/test_house.py`` checks
that nothing imports against the order of the parts but what is listed here. For the lines of each:
``python docs/house.py``.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("environment", "agents", "analysis", "scenarios")

#: Beginnings of the paths of each part's files, in an order in which few parts import later ones;
#: the longest beginning decides. All other files are the heart's.
PARTS = {
    "heart": """
        environment/ agents/ analysis/ scenarios/ environment/traces/formats/swf
        environment/traces/formats/registry environment/traces/formats/common/base
        environment/traces/formats/common/files
        environment/traces/formats/common/names environment/traces/formats/common/site_columns
        environment/traces/requested_times agents/populations/population
        agents/populations/mixture analysis/html analysis/pictures/plots
        analysis/pictures/shown
        """,
    "policies": """
        environment/schedulers/policies/
        environment/engine/kernel/accounts environment/engine/kernel/believed
        environment/engine/kernel/formula environment/engine/kernel/gains
        environment/engine/kernel/ordered environment/engine/kernel/plan
        environment/engine/kernel/profile environment/engine/kernel/scored
        environment/engine/passes/site
        environment/engine/passes/formula environment/engine/passes/ordered
        environment/engine/passes/planned environment/engine/passes/priority
        environment/engine/passes/symbols
        """,
    "predictors": """
        environment/schedulers/predictors/ analysis/prediction
        scenarios/commands/models/predict
        """,
    "machines of nodes": """
        environment/machine/ environment/schedulers/on_nodes/ environment/schedulers/slurm/
        environment/engine/passes/slurm/ environment/engine/passes/nodes
        environment/engine/kernel/nodes/ analysis/accounts/nodes
        analysis/accounts/not_simulated
        environment/traces/requests scenarios/commands/look/machine scenarios/kinds/parts/machine
        """,
    "holds": """
        environment/holds/ analysis/accounts/holds
        scenarios/kinds/parts/holds
        """,
    "jobs given up": """
        environment/parts/given_up analysis/accounts/given_up scenarios/kinds/parts/given_up
        agents/patience/ analysis/patience/
        """,
    "platform": """
        environment/platform/ environment/schedulers/policies/adaptive
        analysis/accounts/platform analysis/pictures/platform_marks
        scenarios/kinds/platform_files scenarios/kinds/parts/platform
        """,
    "formats": """
        environment/traces/formats/ environment/traces/archive/ environment/traces/cleaning
        environment/traces/request environment/traces/window scenarios/trace_files
        scenarios/commands/traces/c scenarios/commands/traces/fetch scenarios/commands/traces/window
        """,
    "reactions": """
        agents/behaviours/reactions agents/behaviours/triggers agents/behaviours/patience
        scenarios/kinds/part_files scenarios/kinds/parts/reactions
        agents/behaviours/on_nodes agents/behaviours/cut analysis/accounts/reactions
        """,
    "power": """
        environment/power/ environment/signals/
        agents/behaviours/energy/ analysis/energy/
        scenarios/kinds/power_files scenarios/kinds/parts/power
        """,
    "other users": "agents/learned/ agents/generative/",
    "features": "analysis/features/ scenarios/commands/traces/stats",
    "models": """
        analysis/models/ scenarios/commands/models/fit scenarios/commands/models/generate
        scenarios/commands/models/judge scenarios/commands/lists/models
        """,
    "populations": """
        agents/populations/ analysis/accounts/population
        scenarios/kinds/populat scenarios/kinds/parts/population
        scenarios/commands/simulate/populate scenarios/commands/simulate/resample
        """,
    "grids": """
        environment/grid/ analysis/accounts/grid scenarios/kinds/grid
        scenarios/commands/simulate/grid
        """,
    "pictures and reports": """
        analysis/comparison/ analysis/report/ analysis/pictures/ analysis/paired
        scenarios/commands/look/compare scenarios/commands/look/gantt scenarios/commands/look/report
        """,
    "sweeps": "scenarios/sweeps/ scenarios/commands/simulate/sweep",
    "forecasts": """
        analysis/forecast/ analysis/pictures/fan environment/state/ scenarios/forecasts/
        scenarios/commands/simulate/forecast
        """,
    "validation": """
        analysis/validation/ analysis/patience/judge scenarios/commands/models/validate
        """,
    "calibration": """
        analysis/calibration/ scenarios/calibration/ scenarios/commands/models/calibrate
        """,
    "what-ifs": """
        scenarios/whatif/ scenarios/learning scenarios/demo scenarios/commands/simulate/demo
        scenarios/commands/simulate/what_if
        """,
    "the page": """
        analysis/views/ scenarios/inspector/ scenarios/commands/look/inspect
        scenarios/commands/look/explain
        """,
    "studies": """
        scenarios/studies/ scenarios/commands/papers/reproduce
        scenarios/commands/models/events
        """,
}

_PLACES = sorted(
    ((place, name) for name, places in PARTS.items() for place in places.split()),
    key=lambda one: -len(one[0]),
)


#: Parts that import what comes later: to be turned round, and never more.
AGAINST_THE_ORDER = {
    "platform -> power",
    "reactions -> power",
}


def part_of(path: str) -> str:
    """Return the part to which a file of a floor belongs."""
    return next(name for place, name in _PLACES if path.startswith(place))


def imports() -> Iterator[tuple[str, str]]:
    """Yield each file and each file that it imports, at its top or later."""
    files = {
        str(path.relative_to(ROOT)): path
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*.py")
    }
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hpcrowd."):
                place = str(node.module).removeprefix("hpcrowd.").replace(".", "/")
                for one in {f"{place}/{alias.name}.py" for alias in node.names} | {f"{place}.py"}:
                    if one in files:
                        yield name, one


def against_the_order() -> list[str]:
    """Return the pairs of parts of which the first imports the second, which comes later."""
    order = list(PARTS)
    pairs = {(part_of(one), part_of(other)) for one, other in imports()}
    return sorted(
        f"{one} -> {other}" for one, other in pairs if order.index(one) < order.index(other)
    )


def picture() -> str:
    """Return the picture as SVG: a row for each part, with a square for each that it imports."""
    order, side, left, top = list(PARTS), 22, 150, 130
    pairs = {(part_of(one), part_of(other)) for one, other in imports()}
    end = len(order) * side
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + end + 10} {top + end + 10}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{left + end + 10}" height="{top + end + 10}" fill="#fff"/>',
    ]
    for place, name in enumerate(order):
        at = place * side
        x, y = left + at + side / 2, top + at + side / 2
        found += [
            f'<text x="{left - 8}" y="{y + 4.5}" text-anchor="end">{name}</text>',
            f'<text transform="translate({x + 4.5} {top - 8}) rotate(-90)">{name}</text>',
            f'<path d="M{left} {top + at}h{end}M{left + at} {top}v{end}" stroke="#ddd"/>',
            f'<rect x="{left + at}" y="{top + at}" width="{side}" height="{side}" fill="#ddd"/>',
        ]
    for one, other in sorted(pairs):
        row, column = order.index(one), order.index(other)
        if row != column:
            colour = "#1f77b4" if column < row else "#d62728"
            found.append(
                f'<rect x="{left + column * side + 4}" y="{top + row * side + 4}" '
                f'width="{side - 8}" height="{side - 8}" fill="{colour}">'
                f"<title>{one} imports {other}</title></rect>"
            )
    return "\n".join([*found, "</svg>\n"])


if __name__ == "__main__":
    lines: Counter[str] = Counter()
    for floor in FLOORS:
        for path in (ROOT / floor).rglob("*.py"):
            lines[part_of(str(path.relative_to(ROOT)))] += path.read_text().count("\n")
    for name in PARTS:
        print(f"{lines[name]:7,} {name}")
