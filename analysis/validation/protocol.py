"""What is fixed before a log is looked at: logs, origins, draws and intervals."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import MOST_RUNS


@dataclass(frozen=True)
class Protocol:
    """How models of users are compared; the defaults are in ``protocol.toml``.

    Attributes
    ----------
    origins
        Shares of the submissions before each origin, ascending, each between 0 and 1.
    days
        Days after an origin that models foresee.
    seeds
        Simulations of each model from each origin.
    scheduler
        The policy behind simulated queues and waits.
    draws
        Draws of each forecast.
    per_user
        Most forecasts of each kind by user and origin.
    resamples
        Resamples for intervals.
    design, check
        Logs that models were designed on, and those that check them.

    Raises
    ------
    QuantityError
        If a number is out of range.
    """

    origins: tuple[float, ...]
    days: int
    seeds: int
    scheduler: str
    draws: int
    per_user: int
    resamples: int
    design: tuple[str, ...] = ()
    check: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.origins or not all(0 < share < 1 for share in self.origins):
            raise QuantityError(
                f"origins {', '.join(f'{share:g}' for share in self.origins) or 'none'}: shares of "
                "the submissions before each origin, between 0 and 1"
            )
        for name in ("days", "seeds", "draws", "per_user", "resamples"):
            if not 1 <= getattr(self, name) <= MOST_RUNS:
                raise QuantityError(
                    f"{name} {getattr(self, name)}: must be between 1 and {MOST_RUNS:,}"
                )

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, fit for JSON."""
        return {
            one.name: list(value) if isinstance(value := getattr(self, one.name), tuple) else value
            for one in fields(self)
        }


@cache
def protocol() -> Protocol:
    """Return what was fixed for the studies of this project."""
    text = files("hpcrowd.analysis.validation").joinpath("protocol.toml").read_text("utf-8")
    found = tomllib.loads(text)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return Protocol(**values)
