"""The generated parts of the page about populations; see ``generate.py``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from markdown_tables import table


def settings_table() -> str:
    """Return the options of ``hpcrowd resample`` with their defaults."""
    from hpcrowd.scenarios.kinds.populations.resample import ResampleConfig

    rows = []
    for name, field in ResampleConfig.settings().items():
        plain = name not in ("consequences", "pool")
        default = "" if field.default is None or not plain else f"`{field.default}`"
        rows.append((f"`{name}`", default, field.description or ""))
    return table(("setting", "default", "meaning"), rows)


def users_table() -> str:
    """Return the activities of users while they are there."""
    from hpcrowd.scenarios.kinds.populations.resample import DOING

    return table(("`--users`", "users"), [(f"`{name}`", text) for name, text in DOING.items()])


def consequences_table() -> str:
    """Return the consequences of satisfaction."""
    from hpcrowd.agents.populations.openness import Consequences

    return _attributes(Consequences)


def rules_table() -> str:
    """Return the rules for users in a pool."""
    from hpcrowd.agents.populations.openness import PoolRules

    return _attributes(PoolRules)


def accounts_table() -> str:
    """Return the fields of a population in ``summary.json``."""
    from hpcrowd.analysis.accounts.population import ACCOUNTS

    rows = [(f"`{name}`", meaning) for name, meaning in ACCOUNTS.items()]
    return table(("key", "meaning"), rows)


def visit_columns_table() -> str:
    """Return the columns of ``visits.parquet``."""
    from hpcrowd.agents.populations.openness import VISIT_MEANING as MEANING

    return _columns(MEANING)


def decision_columns_table() -> str:
    """Return the columns of ``decisions.parquet``."""
    from hpcrowd.agents.behaviours.decisions import MEANING

    return _columns(MEANING)


def _columns(meanings: dict[str, str]) -> str:
    """Return columns with unit and meaning, which are one text, ``unit; meaning``."""
    rows = []
    for name, text in meanings.items():
        unit, _, meaning = text.partition("; ")
        rows.append((f"`{name}`", unit if meaning else "", meaning or text))
    return table(("column", "unit", "meaning"), rows)


def _attributes(kind: Any) -> str:
    """Return the fields of a dataclass with their defaults and what its docstring says of them."""
    text = inspect.cleandoc(kind.__doc__)
    body = text.split("Attributes\n----------\n")[1].split("\n\nRaises")[0]
    found = re.findall(r"^(\w+)\n((?: {4}.*(?:\n|$))+)", body, re.MULTILINE)
    said = {
        name: re.sub(r":\w+:`", "`", " ".join(lines.split()).replace("``", "`"))
        for name, lines in found
    }
    rows = [(f"`{one.name}`", f"`{one.default}`", said[one.name]) for one in fields(kind)]
    return table(("name", "default", "meaning"), rows)


def places_of_populations() -> dict[str, Callable[[], str]]:
    """Return what fills the marked places, by name."""
    return {
        "resample_settings": settings_table,
        "resample_users": users_table,
        "resample_consequences": consequences_table,
        "resample_rules": rules_table,
        "population_accounts": accounts_table,
        "visit_columns": visit_columns_table,
        "decision_columns": decision_columns_table,
    }
