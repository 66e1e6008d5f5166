"""Host lists of the nodes that jobs run on, such as ``n[1-4,7]``, as names: bounded, each once."""

from __future__ import annotations

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.machine.hostlists import expand

#: Most names of all lists of a file: ten jobs on each of a million nodes. A short list can have
#: thousands of names (our choice).
MOST_PLACES = 10_000_000


class NodeLists:
    """The lists of one file; equal ones are the same tuple."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self._names = 0

    def names(self, text: str) -> tuple[str, ...]:
        """Return the names in a list.

        Raises
        ------
        QuantityError
            If it is not a host list, or all lists together have too many names.
        """
        found = self._known.get(text)
        if found is None:
            found = tuple(expand(text))
            self._names += len(found)
            if self._names > MOST_PLACES:
                raise QuantityError(
                    f"host list {text!r}: with the lists before, more than {MOST_PLACES:,} names; "
                    "leave out jobs"
                )
            self._known[text] = found
        return found
