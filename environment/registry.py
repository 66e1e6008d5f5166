"""Registries: things by name, of which only those that are used are imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, cast, override


def imported(place: str) -> Any:
    """Return what is at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


class Registry[T](MutableMapping[str, T]):
    """Things by name, in the order of lists. Each is imported when it is first looked up.

    Parameters
    ----------
    entries
        By name: the thing itself, or ``module:attribute``, where it is.
    """

    def __init__(self, entries: Mapping[str, str | T]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> T:
        found = self._entries[name]
        if isinstance(found, str):
            found = self._entries[name] = cast("T", imported(found))
        return found

    def __setitem__(self, name: str, thing: str | T) -> None:
        self._entries[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
