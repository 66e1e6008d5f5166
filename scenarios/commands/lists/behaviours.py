"""The command ``hpcrowd behaviours``: list the behaviours and their parts.

The descriptions come from :data:`hpcrowd.agents.presets.PRESETS` and their parts, and from the
registries of reactions and triggers, as in the tables of the documentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.terminal import plain_table, print_json, standard_output

if TYPE_CHECKING:
    from hpcrowd.agents.presets import Preset


def described(name: str, preset: Preset) -> dict[str, Any]:
    """Return the description of a named behaviour, fit for JSON."""
    parameters = [
        {
            "name": one.name,
            "meaning": one.meaning,
            "unit": one.unit,
            "default": one.default_words,
            "source": one.source,
        }
        for one in preset.parameters()
    ]
    return {
        "name": name,
        "does": preset.does,
        "when": preset.when,
        "think": preset.think,
        "window": preset.window,
        "waits": preset.waits,
        "source": preset.source,
        "parameters": parameters,
    }


def reactions() -> dict[str, dict[str, str]]:
    """Return what reactions and their triggers do, by ``reactions`` and ``triggers``, by name."""
    from hpcrowd.agents.behaviours.parts import RESPONSES, TRIGGERS, first_line

    return {
        "reactions": {name: first_line(part) for name, part in RESPONSES.items()},
        "triggers": {
            name: " ".join(first_line(form) for form in forms) for name, forms in TRIGGERS.items()
        },
    }


def command(as_json: AsJson = False) -> None:
    """List the behaviours of users and the parts that each is made of."""
    from hpcrowd.agents.presets import PRESETS

    found = reactions()
    if as_json:
        wire = [described(name, preset) for name, preset in PRESETS.items()]
        print_json({"behaviours": wire, **found})
        return
    columns = ("behaviour", "when x think x window", "what users keep")
    rows = [
        (name, f"{preset.when} x {preset.think} x {preset.window}", preset.does)
        for name, preset in PRESETS.items()
    ]
    console = standard_output()
    console.print(plain_table(*columns, rows=rows, words=3, whole=2))
    for title, key in (("reaction (do)", "reactions"), ("trigger (when)", "triggers")):
        what = "what it does" if key == "reactions" else "when"
        console.print()
        console.print(plain_table(title, what, rows=found[key].items(), words=2))
    console.print(
        "\nA TOML file combines other parts, and several behaviours in one population: "
        "--users FILE.toml."
    )
