"""What reading a log repaired, dropped or assumed, in words, one line each.

Commands, reports and pages take the lines from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpcrowd.environment.quantities import plural


def counted(repaired: Mapping[str, int], dropped: Mapping[str, int]) -> list[str]:
    """Return a line for each reason why jobs were dropped or repaired, dropped ones first.

    Parameters
    ----------
    repaired, dropped
        Number of jobs by reason.
    """
    return [
        f"{plural(count, 'job')} {what}: {reason}"
        for what, reasons in (("dropped", dropped), ("repaired", repaired))
        for reason, count in reasons.items()
    ]


def not_read(columns: Iterable[str]) -> list[str]:
    """Return a line that names the columns of a log that are not read; none without any."""
    named = ", ".join(columns)
    return [f"columns not read: {named}"] if named else []


def assumed(size: str = "", clock: str = "") -> list[str]:
    """Return a line for each assumption about what the log does not give.

    Parameters
    ----------
    size
        Note on the size of the machine, see
        :class:`~hpcrowd.environment.traces.machine_size.MachineSize`; empty if it was given.
    clock
        Note on start and time zone, see :attr:`hpcrowd.environment.clock.Clock.note`; empty if
        they are known.
    """
    return [
        *([f"{size}; set it with --processors"] if size else []),
        *([clock] if clock else []),
    ]
