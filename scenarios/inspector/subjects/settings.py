"""The settings that the page offers, and their permitted values.

A setting comes from a browser, so it is accepted only if it is one of the choices that the page
offers, or a plain number: names of files cannot come in this way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hpcrowd.agents.populations.openness import FORMULA_NAMES
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.grid.policies import GRID_POLICIES
from hpcrowd.environment.schedulers.names import POOL_SCHEDULERS, RECORDED
from hpcrowd.scenarios.kinds.populations.resample import DOING, NONE

#: Schedulers that the page offers: none of them needs a file.
OFFERED_SCHEDULERS = (*POOL_SCHEDULERS, "easy:backfill=sjbf", RECORDED)

#: A number, or a multiple of the recorded value.
MULTIPLE = re.compile(r"\d{1,9}(\.\d{1,6})?x?")

#: The largest seed that the page takes.
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Control:
    """A setting of a scenario that the page offers.

    Attributes
    ----------
    name
        Name of the setting in a scenario file.
    label
        Its name on the page.
    choices
        Permitted values; empty for a number or a multiple.
    value
        Its value in the scenario.
    """

    name: str
    label: str
    choices: tuple[str, ...] = ()
    value: str = ""

    def check(self, text: str) -> str:
        """Return a value from a browser if it is permitted.

        Raises
        ------
        QuantityError
            When it is not one of the choices, or not a number.
        """
        if text == self.value or text in self.choices:
            return text
        if self.choices:
            raise QuantityError(f"{self.name} {text[:40]!r}: not offered; choose one of the list")
        if self.name == "seed":
            if not text.isascii() or not text.isdigit() or int(text[:12]) > LARGEST_SEED:
                raise QuantityError(
                    f"seed {text[:40]!r}: must be a whole number from 0 to {LARGEST_SEED}"
                )
        elif not MULTIPLE.fullmatch(text):
            raise QuantityError(
                f"{self.name} {text[:40]!r}: must be a number such as 200, or a multiple such as 2x"
            )
        return text


def _behaviours() -> tuple[str, ...]:
    from hpcrowd.agents.presets import PRESETS

    return tuple(PRESETS)


def controls_of(values: Mapping[str, Any]) -> tuple[Control, ...]:
    """Return the settings of a scenario that the page offers.

    Parameters
    ----------
    values
        The completed settings of the scenario; tables among them cannot be set here.
    """
    users = _behaviours()
    offered = (
        Control("users", "Users", tuple(DOING) if values.get("kind") == "resample" else users),
        Control("population", "How many users"),
        Control("satisfaction", "Satisfaction", (NONE, *FORMULA_NAMES)),
        Control("scheduler", "Scheduler", OFFERED_SCHEDULERS),
        Control("broker", "Broker", tuple(GRID_POLICIES)),
        Control("processors", "Processors"),
        Control("speed", "Speed"),
        Control("seed", "Seed"),
    )
    found = []
    for control in offered:
        value = values.get(control.name)
        if isinstance(value, str | int | float):
            found.append(replace(control, value=str(value)))
    return tuple(found)


def settings_of(controls: tuple[Control, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the changes of a reader, checked, as settings of a scenario.

    Raises
    ------
    QuantityError
        When a setting is not offered, or not with this value.
    """
    known = {control.name: control for control in controls}
    settings: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            raise QuantityError(
                f"{name[:40]!r}: no such setting here; there are {', '.join(known)}"
            )
        value = known[name].check(text)
        if value != known[name].value:
            settings[name] = int(value) if name == "seed" else value
    return settings
