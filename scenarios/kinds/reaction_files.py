"""Reactions from plain data, such as an entry of a TOML file::

    { do = "delay", when = "during", periods = [["2d 16h", "2d 20h"]] }
    { do = "renounce", when = "patience", wait = "6h", last = 5, share = 0.3 }
    { do = "switch", to = "backup", when = "signal", file = "carbon.csv", above = 300 }

``do`` is the response and ``when`` the trigger, by the names of
:mod:`hpcrowd.agents.behaviours.parts`; each has settings of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError, create_model

from hpcrowd.agents.behaviours.declared import first_line, parameters_of
from hpcrowd.agents.behaviours.parts import RESPONSES, TRIGGERS
from hpcrowd.environment.errors import QuantityError, first_mistake
from hpcrowd.scenarios.kinds.fields import Strict
from hpcrowd.scenarios.kinds.part_settings import optional, settings_model, values_of

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.reactions import Reaction
    from hpcrowd.agents.behaviours.triggers import Trigger


def trigger_settings(when: str) -> type[Strict]:
    """Return the settings of a trigger; of one with several forms those of all, none needed."""
    forms = TRIGGERS[when]
    if len(forms) == 1:
        return settings_model(forms[0])
    settings: Any = {one.name: optional(one) for form in forms for one in parameters_of(form)}
    return create_model(
        f"{when.capitalize()}Config", __base__=Strict, __doc__=first_line(forms[0]), **settings
    )


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
    values = dict(config)
    do = _choice(values, "do", RESPONSES)
    when = _choice(values, "when", TRIGGERS)
    response = RESPONSES[do]
    of_trigger, of_response = trigger_settings(when), settings_model(response)
    known = [*of_trigger.model_fields, *of_response.model_fields]
    for key in values:
        if key not in known:
            raise QuantityError(
                f"{key} {values[key]!r}: no setting of do = {do!r}, when = {when!r}; choose "
                + ", ".join(known)
            )
    try:
        trigger = _trigger(when, of_trigger(**_of(values, of_trigger)), Path(folder))
        settings = of_response(**_of(values, of_response))
    except ValidationError as error:
        raise QuantityError(first_mistake(error)) from None
    return response(trigger, **values_of(response, settings, Path(folder)))


def _trigger(when: str, settings: Strict, folder: Path) -> Trigger:
    """Return the trigger in the form whose settings are given."""
    forms = TRIGGERS[when]
    if len(forms) > 1:
        names = {form: [one.name for one in parameters_of(form)] for form in forms}
        given = settings.model_dump(exclude_none=True)
        forms = [form for form in forms if set(names[form]) & set(given)]
        if len(forms) != 1:
            every = " or ".join(name for mine in names.values() for name in mine)
            raise QuantityError(f"when {when!r}: give either {every}")
    return forms[0](**values_of(forms[0], settings, folder))


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
