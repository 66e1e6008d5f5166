"""The command ``hpcrowd behaviours``: list the behaviours and their parts.

The descriptions come from :data:`hpcrowd.agents.presets.PRESETS` and their parts, as in the tables
of the documentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.terminal import plain_table, print_json, standard_output

if TYPE_CHECKING:
    from hpcrowd.agents.generative.shmueli import SiteModel
    from hpcrowd.agents.presets import Recipe


def described(name: str, preset: Recipe | SiteModel) -> dict[str, Any]:
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


def command(as_json: AsJson = False) -> None:
    """List the behaviours of users and the parts that each is made of."""
    from hpcrowd.agents.presets import PRESETS

    if as_json:
        wire = [described(name, preset) for name, preset in PRESETS.items()]
        print_json({"behaviours": wire})
        return
    table = plain_table("behaviour", "when x think x window", "what users keep", words=3, whole=2)
    for name, preset in PRESETS.items():
        parts = f"{preset.when} x {preset.think} x {preset.window}"
        table.add_row(name, parts, preset.does)
    console = standard_output()
    console.print(table)
    console.print(
        "\nA TOML file combines other parts, and several behaviours in one population: "
        "--users FILE.toml."
    )
