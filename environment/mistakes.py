"""Mistakes in a configuration, told in one line."""

from __future__ import annotations

from pydantic import ValidationError

from environment.errors import HpcrowdError


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake that pydantic found: where, value, rule."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    place = ""
    for part in first["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    if isinstance(cause, HpcrowdError):
        return f"{place}: {cause}" if len(first["loc"]) > 1 else str(cause)
    rule = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return f"{place}: no such setting; see the reference for what there is"
    if first["type"] == "union_tag_invalid":
        name, given = first["ctx"]["discriminator"].strip("'"), first["ctx"]["tag"]
        known = first["ctx"]["expected_tags"].replace("'", "")
        return f"{place}.{name} {given!r}: not known; choose {known}"
    if first["type"] == "missing":
        return f"{place}: missing; it has no default"
    return f"{place} {first['input']!r}: {rule}" if place else rule
