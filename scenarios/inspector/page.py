"""The page: a bar to advance the runs, and three parts to look at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import solara

from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.clock import moment as moment_words
from hpcrowd.scenarios.inspector.desk import OPEN, PACES, SUBJECTS, Desk, held
from hpcrowd.scenarios.inspector.parts import ClusterPart, Saved, UserPart, UsersPart
from hpcrowd.scenarios.inspector.settings import Control

#: The style sheet of the page.
STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")

#: Names of the parts of the page.
TAB_NAMES = {"cluster": "Cluster", "users": "Users", "user": "One user"}

#: Names of the spans.
SPAN_NAMES = {1: "1 day", 7: "7 days", 28: "28 days", 0: "whole run"}


@solara.component
def Page() -> None:
    """The page of ``hpcrowd inspect``."""
    router = solara.use_router()
    desk = solara.use_memo(lambda: Desk(SUBJECTS, router.search), [])

    def live() -> Any:
        OPEN.add(desk)
        desk.open()
        return desk.close

    solara.use_effect(live, [])
    solara.Style(STYLE)
    solara.Title("hpcrowd: " + ", ".join(subject.name for subject in SUBJECTS))
    with solara.Column(gap="0px", style={"min-width": "720px"}):
        Bar(desk)
        if desk.message.value:
            _error(desk.message.value)
        Parts(desk)
        Saved(desk)


@solara.component
def Bar(desk: Desk) -> None:
    """The bar with the time and the buttons."""
    _ = desk.tick.value
    sitting = desk.sitting
    busy, playing = bool(desk.busy.value), desk.playing.value
    idle = not busy and not playing and bool(sitting.courses)
    # Tests and scripts wait for the next number.
    with solara.Div(classes=["hpcrowd-bar", f"hpcrowd-done-{desk.done.value}"]):
        with solara.Row(gap="8px", style={"align-items": "center", "flex-wrap": "wrap"}):
            solara.Text(_time(desk), classes=["hpcrowd-time"])
            if playing or busy:
                solara.Button("Pause", on_click=desk.pause, color="primary", small=True)
            else:
                solara.Button(
                    "Run", on_click=desk.play, color="primary", small=True,
                    disabled=not idle or sitting.over,
                )  # fmt: skip
            for name, seconds in (("Hour", HOUR), ("Day", DAY)):
                solara.Button(
                    name, on_click=lambda seconds=seconds: desk.advance(seconds), small=True,
                    disabled=not idle or sitting.over,
                )  # fmt: skip
            user = desk.user.value
            solara.Button(
                "Next event" if user is None else f"Next event of user {sitting.who(user)}",
                on_click=desk.advance_to_event, small=True,
                disabled=not idle or user is None or sitting.over,
            )  # fmt: skip
            solara.Button("Reset", on_click=desk.begin_anew, small=True, disabled=busy or playing)
            solara.Select(
                "Pace", list(PACES), value=desk.pace, dense=True, style="max-width: 110px"
            )
            if len(sitting.seats) == 1:
                solara.Button("Second run", on_click=desk.add_second, small=True, disabled=not idle)
            else:
                solara.Button(
                    "One run", on_click=desk.remove_second, small=True, disabled=busy or playing
                )
            solara.HTML(
                tag="a",
                unsafe_innerHTML="Link to this view",
                classes=["hpcrowd-small"],
                attributes={"href": "?" + desk.query(), "id": "hpcrowd-link"},
            )
        with solara.Row(gap="16px", style={"align-items": "center"}):
            Choice("part", desk.tab.value, TAB_NAMES, desk.tab.set)
            if desk.tab.value == "cluster":
                Choice("span", desk.span.value, SPAN_NAMES, desk.span.set)


@solara.component
def Choice(name: str, value: Any, names: Mapping[Any, str], on_value: Callable[[Any], Any]) -> None:
    """Buttons, one of which is chosen.

    Parameters
    ----------
    name
        Name of the row of buttons, for style sheets and tests.
    value
        The chosen value.
    names
        Name of each value.
    on_value
        Called with the value of a button that is clicked.
    """
    with solara.Row(gap="4px", classes=[f"hpcrowd-{name}"]):
        for one, text in names.items():
            solara.Button(
                text,
                on_click=lambda one=one: on_value(one),
                small=True,
                text=True,
                color="primary" if one == value else None,
                classes=["hpcrowd-on"] if one == value else [],
            )


@solara.component
def Parts(desk: Desk) -> None:
    """The runs side by side, in the part of the page that is chosen."""
    tick = desk.tick.value

    def drawn() -> None:
        desk.drawn = tick

    solara.use_effect(drawn, [tick])
    part = {"cluster": ClusterPart, "users": UsersPart, "user": UserPart}[desk.tab.value]
    seats = list(desk.sitting.seats)
    with solara.Columns([1] * max(len(seats), 1), style={"padding": "10px"}):
        for place, seat in enumerate(seats):
            with solara.Column(gap="4px"):
                SettingsPart(desk, place)
                if seat.error:
                    _error(seat.error)
                elif seat.course is not None:
                    part(desk, seat.course, held(desk, seat.course.moment), place)


@solara.component
def SettingsPart(desk: Desk, place: int) -> None:
    """The settings of the run at a place.

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
                "Apply and restart",
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


def _time(desk: Desk) -> str:
    """Return the text of the page's clock."""
    courses = desk.sitting.courses
    if not courses:
        return desk.busy.value or "No run"
    course = max(courses, key=lambda one: one.now)
    clock = held(desk, course.moment).clock
    words = f"{moment_words(clock, course.now)} {clock.zone}"
    if desk.busy.value:
        return f"{words}: {desk.busy.value.lower()} ..."
    return f"{words}: finished" if desk.sitting.over else words


def _error(text: str) -> None:
    """Show an error."""
    solara.HTML(
        tag="div",
        unsafe_innerHTML=escape(text),
        classes=["hpcrowd-error"],
        attributes={"role": "alert"},
    )
