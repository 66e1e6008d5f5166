"""The settings of a run, which count when it begins anew."""

from __future__ import annotations

from collections.abc import Callable

import solara

from hpcrowd.scenarios.inspector.desk import Desk
from hpcrowd.scenarios.inspector.settings import Control


@solara.component
def SettingsPart(desk: Desk, place: int) -> None:
    """What may be set of the run at a place.

    Parameters
    ----------
    desk
        Of the page.
    place
        0 for the first run, 1 for the second.
    """
    _ = desk.tick.value
    seat = desk.sitting.seats[place]
    controls = seat.subject.controls
    given, set_given = solara.use_state(dict(seat.given))
    label = seat.subject.name if seat.course is None else seat.course.label

    def change(name: str, text: str) -> None:
        set_given({**given, name: text})

    with solara.Details(f"{'AB'[place]}: {label}", expand=False):
        if not controls:
            solara.Text("A finished run: it is played back as it was.")
            return
        with solara.Row(gap="10px", style={"flex-wrap": "wrap", "align-items": "center"}):
            for control in controls:
                _Field(control, given.get(control.name, control.value), change)
            solara.Button(
                "Apply and begin anew",
                on_click=lambda: desk.reset(place, given),
                small=True,
                disabled=bool(desk.busy.value) or desk.playing.value,
                classes=[f"hpcrowd-apply-{'ab'[place]}"],
            )


@solara.component
def _Field(control: Control, value: str, change: Callable[[str, str], None]) -> None:
    """One setting."""

    def on_value(text: str) -> None:
        change(control.name, text)

    if control.choices:
        choices = list(dict.fromkeys((control.value, *control.choices)))
        solara.Select(
            control.label, choices, value=value, on_value=on_value, dense=True,
            style="max-width: 210px",
        )  # fmt: skip
    else:
        solara.InputText(
            control.label, value=value, on_value=on_value, dense=True, style="max-width: 110px"
        )
