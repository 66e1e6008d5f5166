"""Reactions from plain data, such as an entry of a TOML file::

    { do = "delay", when = "during", periods = [["2d 16h", "2d 20h"]] }
    { do = "renounce", when = "patience", wait = "6h", last = 5, share = 0.3 }
    { do = "switch", to = "backup", when = "signal", file = "carbon.csv", above = 300 }

``do`` is the response and ``when`` the trigger; each has settings of its own, :data:`RESPONSES` and
:data:`TRIGGERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from hpcrowd.environment.errors import QuantityError, first_mistake
from hpcrowd.scenarios.kinds.fields import DAYS, Duration, HoursConfig, Strict, parse_moment

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.reactions import Reaction
    from hpcrowd.agents.behaviours.triggers import Trigger


Moment = Annotated[int | datetime, BeforeValidator(parse_moment)]


class TriggerConfig(Strict):
    """When users react."""

    def trigger(self, folder: Path) -> Trigger:
        """Return the trigger; files are looked for in ``folder``."""
        raise NotImplementedError


class DuringConfig(TriggerConfig):
    """In given periods, or in local hours of the week."""

    periods: tuple[tuple[Moment, Moment], ...] | None = Field(
        None,
        description="pairs from, to: s or durations since the origin such as 2d 16h, or local "
        "dates and times such as 1996-10-14 16:00",
    )
    hours: HoursConfig | None = Field(
        None, description="instead of periods: opens, closes (local time) and days of the week"
    )

    def trigger(self, folder: Path) -> Trigger:
        """Return the trigger."""
        from hpcrowd.agents.behaviours.activity import ActivityWindow
        from hpcrowd.agents.behaviours.triggers import During, WeekHours

        if (self.periods is None) == (self.hours is None):
            raise QuantityError("when 'during': give either periods or hours")
        if self.hours is None:
            return During(self.periods or ())
        days = tuple(DAYS.index(day) for day in self.hours.days)
        return WeekHours(ActivityWindow(self.hours.opens, self.hours.closes, days))


class PatienceConfig(TriggerConfig):
    """While the user's last jobs have waited too long."""

    wait: Duration | None = Field(None, ge=0, description="s; the mean wait is longer than this")
    times: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="instead of wait: waits are longer than this multiple of the run times",
    )
    last: int = Field(5, ge=1, description="jobs that count, those that ended last (unconfirmed)")
    memory: Duration | None = Field(
        None, gt=0, description="s; jobs that ended longer ago do not count; by default all do"
    )

    def trigger(self, folder: Path) -> Trigger:
        """Return the trigger."""
        from hpcrowd.agents.behaviours.triggers import Patience

        return Patience(self.wait, times=self.times, last=self.last, memory=self.memory)


class SignalConfig(TriggerConfig):
    """While a signal over time is above or below a threshold."""

    file: str = Field(description="CSV file with the columns time and value")
    above: float | None = Field(
        None, allow_inf_nan=False, description="the value is larger than this, in its unit"
    )
    below: float | None = Field(
        None, allow_inf_nan=False, description="instead of above: the value is smaller"
    )
    outside: Literal["error", "off"] = Field(
        "error", description="submissions that the signal does not cover: an error, or no reaction"
    )

    def trigger(self, folder: Path) -> Trigger:
        """Return the trigger; reads the file."""
        from hpcrowd.agents.behaviours.triggers import OnSignal
        from hpcrowd.environment.platform.signals import read_signal

        signal = read_signal(folder / self.file)
        return OnSignal(signal, above=self.above, below=self.below, outside=self.outside)


class ResponseConfig(Strict):
    """What users do."""

    share: float = Field(1.0, ge=0, le=1, description="probability that a user reacts at all")
    probability: float = Field(1.0, ge=0, le=1, description="for each job of a user who reacts")
    name: str | None = Field(
        None, description="for the accounts and the draws; by default the response and the trigger"
    )


class DelayConfig(ResponseConfig):
    """Submit when the trigger is over."""

    by: Duration | None = Field(
        None, gt=0, description="s; so much later instead, needed when = patience"
    )


class DegradeConfig(ResponseConfig):
    """Fewer processors for the same time."""

    factor: float = Field(
        0.5, gt=0, lt=1, description="share of the processors that is left (unconfirmed)"
    )


class ReconfigureConfig(DegradeConfig):
    """Fewer processors for longer."""

    efficiency: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="work of a second on one of the fewer processors (unconfirmed)",
    )


class RenounceConfig(ResponseConfig):
    """Do not run it."""


class SwitchConfig(ResponseConfig):
    """Submit to another cluster."""

    to: str = Field(description="name of the cluster")


#: Settings of each response, by its name.
RESPONSES: dict[str, type[ResponseConfig]] = {
    "delay": DelayConfig,
    "degrade": DegradeConfig,
    "reconfigure": ReconfigureConfig,
    "renounce": RenounceConfig,
    "switch": SwitchConfig,
}

#: Settings of each trigger, by its name.
TRIGGERS: dict[str, type[TriggerConfig]] = {
    "during": DuringConfig,
    "patience": PatienceConfig,
    "signal": SignalConfig,
}


def reaction_from(config: Mapping[str, Any], folder: str | Path = ".") -> Reaction:
    """Return the reaction that plain data describes.

    Parameters
    ----------
    config
        ``do``, ``when``, and the settings of both.
    folder
        Where files that it names are, if their paths are relative.

    Raises
    ------
    QuantityError
        One line that says which setting is wrong.
    SignalError
        When a signal cannot be used.
    """
    from hpcrowd.agents.behaviours import responses

    values = dict(config)
    do = _choice(values, "do", RESPONSES)
    when = _choice(values, "when", TRIGGERS)
    response_settings, trigger_settings = RESPONSES[do], TRIGGERS[when]
    known = [*trigger_settings.model_fields, *response_settings.model_fields]
    for key in values:
        if key not in known:
            raise QuantityError(
                f"{key} {values[key]!r}: no setting of do = {do!r}, when = {when!r}; choose "
                + ", ".join(known)
            )
    try:
        trigger = trigger_settings(**_of(values, trigger_settings)).trigger(Path(folder))
        settings = response_settings(**_of(values, response_settings)).model_dump()
    except ValidationError as error:
        raise QuantityError(first_mistake(error)) from None
    make: Any = getattr(responses, do.capitalize())
    reaction: Reaction = make(trigger, **settings)
    return reaction


def _choice(values: dict[str, Any], key: str, known: Mapping[str, Any]) -> str:
    names = ", ".join(known)
    if key not in values:
        raise QuantityError(f"reaction without {key}: choose {names}")
    value = values.pop(key)
    if not isinstance(value, str) or value not in known:
        raise QuantityError(f"{key} {value!r}: not known; choose {names}")
    return value


def _of(values: Mapping[str, Any], settings: type[Strict]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in settings.model_fields}
