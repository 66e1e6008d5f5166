"""Reactions from plain data: what each setting means, and every mistake in one line."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hpcrowd.agents import (
    Degrade,
    Delay,
    During,
    OnSignal,
    Reaction,
    RecentWaits,
    Reconfigure,
    Renounce,
    Switch,
    WeekHours,
)
from hpcrowd.agents.behaviours.parts import RESPONSES, TRIGGERS
from hpcrowd.environment import HpcrowdError, QuantityError, SignalError
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.scenarios import reaction_from
from hpcrowd.scenarios.kinds.fields import parse_moment
from hpcrowd.scenarios.kinds.part_files import settings_model, trigger_settings

PERIOD = {"when": "during", "periods": [[0, 10]]}


def test_delay_during_periods() -> None:
    """Periods are written in durations since the origin."""
    reaction = reaction_from({"do": "delay", "when": "during", "periods": [["2d 16h", "2d 20h"]]})
    assert isinstance(reaction, Delay)
    assert isinstance(reaction.trigger, During)
    assert ((2 * DAY + 16 * HOUR, 2 * DAY + 20 * HOUR),) == reaction.trigger.periods
    assert (None, 1, 1, "delay during") == (
        reaction.by,
        reaction.share,
        reaction.probability,
        reaction.name,
    )


def test_renounce_without_patience() -> None:
    """Thresholds of patience are durations."""
    reaction = reaction_from(
        {"do": "renounce", "when": "recent-waits", "wait": "6h", "last": 3, "memory": "7d"}
    )
    assert isinstance(reaction, Renounce)
    assert isinstance(reaction.trigger, RecentWaits)
    trigger = reaction.trigger
    assert (6 * HOUR, None, 3, 7 * DAY) == (
        trigger.wait,
        trigger.times,
        trigger.last,
        trigger.memory,
    )


def test_switch_on_a_signal(tmp_path: Path) -> None:
    """The file of a signal is looked for in the folder that is given."""
    (tmp_path / "carbon.csv").write_text("time,value\n0,310\n3600,290\n")
    config = {"do": "switch", "to": "backup", "when": "signal", "file": "carbon.csv", "above": 300}
    reaction = reaction_from(config, tmp_path)
    assert isinstance(reaction, Switch)
    assert isinstance(reaction.trigger, OnSignal)
    assert ("backup", 300, None) == (reaction.to, reaction.trigger.above, reaction.trigger.below)
    with pytest.raises(SignalError, match=r"carbon.csv: cannot be read"):
        reaction_from(config, tmp_path / "elsewhere")


def test_degrade_in_hours_of_the_week() -> None:
    """Hours are local, on weekdays unless days are given."""
    config: dict[str, Any] = {"do": "degrade", "when": "during", "factor": 0.25, "name": "evening",
                              "hours": {"opens": "16h", "closes": "20h"}}  # fmt: skip
    reaction = reaction_from(config)
    assert isinstance(reaction, Degrade)
    assert isinstance(reaction.trigger, WeekHours)
    assert 5 == len(reaction.trigger.week.pieces)
    assert (0.25, "evening") == (reaction.factor, reaction.name)
    config["hours"]["days"] = ["Sat"]
    reaction = reaction_from(config)
    assert isinstance(reaction, Degrade)
    assert isinstance(reaction.trigger, WeekHours)
    assert [(5 * DAY + 16 * HOUR, 5 * DAY + 20 * HOUR)] == reaction.trigger.week.pieces


def test_entry_of_a_toml_file() -> None:
    """Local dates and times of TOML are those of the trace."""
    entry = tomllib.loads(
        "[[reactions]]\n"
        'do = "reconfigure"\n'
        'when = "during"\n'
        "periods = [[1996-10-14 16:00:00, 1996-10-15]]\n"
        "efficiency = 0.9\n"
        "share = 0.5\n"
    )["reactions"][0]
    reaction = reaction_from(entry)
    assert isinstance(reaction, Reconfigure)
    assert isinstance(reaction.trigger, During)
    assert ((datetime(1996, 10, 14, 16), datetime(1996, 10, 15)),) == reaction.trigger.periods
    assert (0.5, 0.9, 0.5) == (reaction.factor, reaction.efficiency, reaction.share)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        ("5", 5),
        ("1d 2h 3m", 93_780),
        ("2d 16", 2 * DAY + 16),
        ("1996-10-14", datetime(1996, 10, 14)),
        ("1996-10-14 16:00", datetime(1996, 10, 14, 16)),
        ("1996-10-14T16:00Z", datetime(1996, 10, 14, 16, tzinfo=UTC)),
    ],
)
def test_moments(value: Any, expected: Any) -> None:
    """A moment is seconds, durations (a number alone means seconds), or a date."""
    assert expected == parse_moment(value)


@pytest.mark.parametrize("value", ["", "  ", "noon", "2d 16x", True, 1.5, None, [5]])
def test_what_is_not_a_moment(value: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(QuantityError, match="neither s of the run, nor durations"):
        parse_moment(value)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "reaction without do: choose delay, degrade, reconfigure, renounce, look-"),
        ({"do": "delay"}, "reaction without when: choose during, recent-waits, signal"),
        ({"do": "dance", **PERIOD}, "do 'dance': not known; choose delay, degrade"),
        ({"do": 5, **PERIOD}, "do 5: not known; choose delay"),
        ({"do": "delay", "when": "never"}, "when 'never': not known; choose during, recent-waits"),
        (
            {"do": "renounce", "when": "recent-waits", "wiat": "6h"},
            "wiat '6h': no setting of do = 'renounce', when = 'recent-waits'; choose wait, times, "
            "last, memory, share, probability, fatigue, recovery, name, rebound, rebound_after",
        ),
        ({"do": "delay", "factor": 0.5, **PERIOD}, "factor 0.5: no setting of do = 'delay'"),
        ({"do": "degrade", "factor": 2, **PERIOD}, "factor 2: Input should be less than 1"),
        ({"do": "degrade", "factor": "half", **PERIOD}, "factor 'half': Input should be a valid"),
        ({"do": "reconfigure", "efficiency": 0, **PERIOD}, "efficiency 0: Input should be greater"),
        ({"do": "delay", "share": 1.1, **PERIOD}, "share 1.1: Input should be less than or equal"),
        ({"do": "delay", "by": "soon", **PERIOD}, "duration 'soon': not a number with a unit"),
        ({"do": "delay", "by": 0, **PERIOD}, "by 0: Input should be greater than 0"),
        ({"do": "switch", **PERIOD}, "to: missing; it has no default"),
        ({"do": "delay", "when": "during"}, "when 'during': give either periods or hours"),
        ({"do": "delay", "when": "during", "periods": []}, "periods: none given"),
        (
            {"do": "delay", "when": "during", "periods": [["2d", "1d"]]},
            "period 172800 to 86400: must end after it begins",
        ),
        (
            {"do": "delay", "when": "during", "periods": [["2d", "noon"]]},
            "periods[0][1]: moment 'noon': neither s of the run",
        ),
        ({"do": "delay", "when": "during", "periods": [["2d"]]}, "periods[0][1]: missing"),
        (
            {"do": "delay", "when": "during", "hours": {"opens": "8h", "closes": "8h"}},
            "window 28800 to 28800 s: both must be times of one day, and differ",
        ),
        (
            {"do": "delay", "when": "during", "hours": {"opens": "8h", "shuts": "9h"}},
            "hours.closes: missing; it has no default",
        ),
        ({"do": "renounce", "when": "recent-waits"}, "recent-waits: give a threshold, either wait"),
        (
            {"do": "delay", "when": "recent-waits", "wait": 5},
            "delay recent-waits: has no end to wait for",
        ),
        ({"do": "renounce", "when": "signal", "above": 5}, "file: missing; it has no default"),
        (
            {"do": "renounce", "when": "recent-waits", "times": float("nan")},
            "times nan: Input should be",
        ),
    ],
)
def test_mistakes_give_one_line(config: dict[str, Any], told: str) -> None:
    """Unknown settings, values that make no sense and contradictions name the setting."""
    with pytest.raises(HpcrowdError) as caught:
        reaction_from(config)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_threshold_of_a_signal(tmp_path: Path) -> None:
    """A signal without a threshold, or with two, is an error."""
    (tmp_path / "s.csv").write_text("time,value\n0,1\n1,2\n")
    for more in ({}, {"above": 1, "below": 2}):
        with pytest.raises(QuantityError, match="give a threshold, either above or below"):
            reaction_from({"do": "renounce", "when": "signal", "file": "s.csv", **more}, tmp_path)


@pytest.mark.parametrize("do", RESPONSES)
@pytest.mark.parametrize("when", TRIGGERS)
def test_every_response_goes_with_every_trigger(do: str, when: str, tmp_path: Path) -> None:
    """All combinations can be made; all settings say what they mean."""
    (tmp_path / "s.csv").write_text("time,value\n0,1\n1,2\n")
    needed: dict[str, dict[str, Any]] = {
        "during": {"periods": [[0, 1]]}, "recent-waits": {"wait": 1},
        "signal": {"file": "s.csv", "below": 2}, "switch": {"to": "home"}, "delay": {"by": 1},
        "queue": {"longer_than": 5}, "expected-wait": {"above": "2h"},
        "fair-share": {"below": 0.5}, "at-limit": {}, "always": {}, "budget": {"kwh": 5},
    }  # fmt: skip
    config = {"do": do, "when": when, **needed.get(do, {}), **needed[when]}
    reaction = reaction_from(config, tmp_path)
    assert isinstance(reaction, Reaction)
    assert f"{do} {when}" == getattr(reaction, "name", None)
    for settings in (settings_model(RESPONSES[do]), trigger_settings(when)):
        assert all(field.description for field in settings.model_fields.values())


def test_reading_settings_is_light(root: Path) -> None:
    """Looking at settings and making a reaction loads no simulation."""
    code = (
        "import sys; from hpcrowd.scenarios.kinds.part_files import reaction_from as make\n"
        "make({'do': 'delay', 'when': 'during', 'periods': [[0, 1]]})\n"
        "print([m for m in ('mesa', 'numba', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert "[]" == done.stdout.strip()
