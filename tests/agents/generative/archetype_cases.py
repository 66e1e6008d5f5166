"""Habits of people in offices without chance, for exact stories."""

from hpcrowd.populations import LogNormal, Office


def fixed(seconds: int) -> LogNormal:
    """A time without chance."""
    return LogNormal(max(seconds, 1), 0.0, seconds, seconds)


#: An office that opens at 8 for everybody, where work begins at once and requests are exact.
PLAIN_OFFICE = Office(shift=0, settle=fixed(0), factor=(1.0, 1.0))
