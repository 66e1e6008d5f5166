"""The command ``hpcrowd behaviours``: what behaviours there are and what each is made of.

The tables of the documentation say the same, since they are made from :func:`presets`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.terminal import print_json, standard_output

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.declared import Parameter


@dataclass(frozen=True)
class Preset:
    """A behaviour with a name.

    Attributes
    ----------
    name
        What users give.
    does
        A few words.
    when, think, window
        Names of its parts.
    waits
        Whether who is absent puts off its thinking too.
    source
        Where the model comes from.
    parameters
        What may be changed.
    """

    name: str
    does: str
    when: str
    think: str
    window: str
    waits: bool
    source: str
    parameters: list[Parameter]

    @property
    def wire(self) -> dict[str, Any]:
        """All of it, fit for JSON."""
        parameters = [
            {
                "name": one.name,
                "meaning": one.meaning,
                "unit": one.unit,
                "default": one.default_words,
                "source": one.source,
            }
            for one in self.parameters
        ]
        return {**vars(self), "parameters": parameters}


def presets() -> list[Preset]:
    """Return every preset with its parts and parameters, as the code declares them."""
    from hpcrowd.agents.presets import PRESETS

    return [
        Preset(
            name=name,
            does=preset.does,
            when=preset.when,
            think=str(preset.think),
            window=str(preset.window),
            waits=preset.waits,
            source=preset.source,
            parameters=preset.parameters(),
        )
        for name, preset in PRESETS.items()
    ]


def behaviours_command(*, as_json: bool) -> None:
    """Print the presets as a table, or with their parameters as JSON."""
    found = presets()
    if as_json:
        print_json({"behaviours": [preset.wire for preset in found]})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("behaviour", no_wrap=True)
    table.add_column("when x think x window", no_wrap=True)
    table.add_column("what users keep")
    for preset in found:
        parts = f"{preset.when} x {preset.think} x {preset.window}"
        table.add_row(preset.name, parts, preset.does)
    console = standard_output()
    console.print(table)
    console.print(
        "\nOther parts, and several behaviours in one population: a TOML file, --users FILE.toml.",
        highlight=False,
    )
