"""The keys of a description of a machine, a table for each of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markdown_tables import first_line, table

#: The parts, and how their tables begin in TOML.
PARTS = {
    "NodeType": "[[nodes]]", "Partition": "[[partitions]]", "Qos": "[[qos]]",
    "Account": "[[accounts]]", "Limits": "limits", "Reservation": "[[reservations]]",
    "PrioritySettings": "[priority]", "SchedulingSettings": "[scheduling]",
}  # fmt: skip


def machine_tables() -> str:
    """Return the keys of all parts, from their models."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    from hpcrowd.environment.machine import model

    for name, head in PARTS.items():
        part = getattr(model, name)
        about = first_line(part.__doc__)
        rows = [
            (f"`{key}`", _default(field), field.description or "")
            for key, field in part.model_fields.items()
        ]
        yield f"### `{head}`\n\n{about}\n\n{table(('key', 'default', 'meaning'), rows)}"


def _default(field: Any) -> str:
    from hpcrowd.environment.machine.files.toml_text import value_text
    from hpcrowd.environment.machine.units import written

    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    shown = "" if value is None else value_text(written(field, value)).strip('"')
    return f"`{shown}`" if shown not in ("", "[]", "{}") else ""
