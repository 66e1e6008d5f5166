"""The command ``hpcrowd behaviours``: what behaviours there are and what each is made of.

The tables of the documentation say the same, since they are made from :func:`presets`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hpcrowd.scenarios.commands.options import AsJson
from hpcrowd.scenarios.kinds.replay import BEHAVIOURS
from hpcrowd.scenarios.terminal import print_json, standard_output

if TYPE_CHECKING:
    from hpcrowd.agents.presets import Recipe


#: Where each preset comes from.
SOURCES = {
    "rigid": "Madon et al. 2024, Definition 8",
    "think-time": "Madon et al. 2024, section 4.2",
    "think-time-windows": "the same; windows: own, for the loss told in section 7.3.2",
    "adjusted": "Zakay and Feitelson 2015, section VII-A",
    "distribution": "Zakay and Feitelson 2015, section VII-B",
    "fluid": "Zakay and Feitelson 2015, section VII-C",
    "linear": "Schlagkamp, JSSPP 2015 (abstract only)",
    "linear-windows": "the same; windows: own",
    "shmueli-feitelson": "Shmueli and Feitelson 2007 and 2009, as STARS has it",
    "generative": "the same; days of presence: own",
}

#: In place of a part that decides which recorded work comes next.
MADE_UP = "made up"

#: What numbers are called that could not be found where they are said to come from.
UNCONFIRMED = "unconfirmed"

#: Sources of numbers.
DEFINITION = "Zakay and Feitelson 2015, Definition 1"
ZAKAY = "Zakay and Feitelson 2015, section VII-B"
DYNAMIC = f"{UNCONFIRMED}; told of Schlagkamp, JSSPP 2015"


@dataclass(frozen=True)
class Parameter:
    """A number that a behaviour is given.

    Attributes
    ----------
    name
        As in the file of a population, or in Python.
    meaning, unit
        In words; the unit is empty for a share or a probability.
    default
        What it is unless given.
    source
        Where the default comes from.
    """

    name: str
    meaning: str
    unit: str
    default: str
    source: str


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


def presets() -> list[Preset]:
    """Return every preset with its parts and parameters."""
    from hpcrowd.agents.presets import PRESETS, Recipe

    found = []
    for name, maker in PRESETS.items():
        parts: dict[str, Any]
        if isinstance(maker, Recipe):
            parts = {part: str(getattr(maker, part)) for part in ("when", "think", "window")}
            parts |= {"waits": maker.waits, "parameters": parameters(maker)}
        else:
            parts = {"when": MADE_UP, "think": "continuation", "window": "shifts"}
            parts |= {"waits": False, "parameters": [*_law(), *_shifts()]}
        found.append(Preset(name=name, does=BEHAVIOURS[name], source=SOURCES[name], **parts))
    return found


def parameters(recipe: Recipe) -> list[Parameter]:
    """Return the parameters of the parts of a recipe, with the defaults that the code has."""
    from hpcrowd.agents.behaviours.profiles import PRIOR
    from hpcrowd.agents.behaviours.think import LONGEST_BREAK, LinearThink
    from hpcrowd.agents.work.sessions import ARRIVAL_THRESHOLD

    found = []
    if recipe.when != "recorded":
        found.append(
            _seconds(
                "--sessions",
                "longest gap between submissions inside a session",
                ARRIVAL_THRESHOLD,
                DEFINITION,
            )
        )
    if recipe.think == "linear":
        line = LinearThink()
        fitted = "fitted to the trace; {:g} in a line that is given without it"
        slope, intercept = fitted.format(line.slope), fitted.format(line.intercept)
        found += [
            Parameter("line.slope", "think time per response time", "s/s", slope, DYNAMIC),
            Parameter(
                "line.intercept", "think time after an immediate response", "s", intercept, DYNAMIC
            ),
            _seconds(
                "line.cut", "recorded think times from this on stay as they are", line.cut, DYNAMIC
            ),
        ]
    if recipe.think == "continuation":
        found += _law()
        breaks = "breaks are shorter (in Python only)"
        found.append(_seconds("longest_break", breaks, LONGEST_BREAK, ZAKAY))
    if recipe.window == "shifts":
        found += _shifts()
    if recipe.window == "fitted":
        weight = "starts that weigh as much as the profile of all users"
        found.append(Parameter("prior", weight, "starts", f"{PRIOR:g}", "chosen here"))
    return found


def _law() -> list[Parameter]:
    from hpcrowd.agents.behaviours.think import ContinuationLaw

    law = ContinuationLaw()
    limit, decline = f"{law.limit:g}", f"{law.decline:g}"
    return [
        Parameter(
            "law.limit", "probability to go on after an immediate response", "", limit, ZAKAY
        ),
        Parameter(
            "law.decline", "how fast it falls with the response time", "1/min", decline, ZAKAY
        ),
    ]


def _shifts() -> list[Parameter]:
    from hpcrowd.agents.behaviours.activity import Shifts

    shifts = Shifts()
    rows = (
        ("opens", "when the day begins", "s after midnight", f"{shifts.opens} (7:30)"),
        ("closes", "when it ends and the night begins", "s after midnight",
         f"{shifts.closes} (17:30)"),
        ("shift", "a user's hours are moved by up to this", "s", f"{shifts.shift} (1 h)"),
        ("day_share", "share of users who work by day", "", f"{shifts.day_share:g}"),
        ("weekday_share", "share of users who work from Monday to Friday", "",
         f"{shifts.weekday_share:g}"),
    )  # fmt: skip
    return [Parameter(f"shifts.{name}", what, unit, default, ZAKAY)
            for name, what, unit, default in rows]  # fmt: skip


def _seconds(name: str, meaning: str, value: int, source: str) -> Parameter:
    return Parameter(name, meaning, "s", f"{value} ({value // 3600} h)", source)


def behaviours_command(*, as_json: bool) -> None:
    """Print the presets as a table, or with their parameters as JSON."""
    found = presets()
    if as_json:
        wire: dict[str, Any] = {"behaviours": [asdict(preset) for preset in found]}
        print_json(wire)
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


def command(as_json: AsJson = False) -> None:
    """List the behaviours that users may have, and the parts that each is made of."""

    behaviours_command(as_json=as_json)
