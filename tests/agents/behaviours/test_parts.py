"""Parts of behaviours from plain data: what settings mean, and every mistake in one line."""

import tomllib
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hpcrowd.agents.behaviours.decisions import DecisionLog
from hpcrowd.agents.behaviours.energy.sufficiency import Degrade, Reconfigure, Renounce
from hpcrowd.agents.behaviours.energy.triggers import OnSignal
from hpcrowd.agents.behaviours.on_nodes import FewerGpus, LessMemory, LessTime
from hpcrowd.agents.behaviours.parts import RESPONSES, TRIGGERS
from hpcrowd.agents.behaviours.patience import Patience
from hpcrowd.agents.behaviours.profiles import WeeklyProfile, check_prior
from hpcrowd.agents.behaviours.triggers import Always, During, RecentWaits, WeekHours
from hpcrowd.agents.populations.openness import Consequences
from hpcrowd.behaviours import ActivityWindow, ContinuationLaw, LinearThink, Shifts, WeeklyWindow
from hpcrowd.environment.clock import DAY, HOUR, WEEK, parse_moment
from hpcrowd.errors import QuantityError, SignalError
from hpcrowd.power import Signal
from hpcrowd.reactions import Budget, Cut, Delay, FairShareBelow, Reaction, SwitchPartition
from hpcrowd.scenarios.kinds.part_files import reaction_from, settings_model, trigger_settings

from tests.support.behaviours import refused

PERIOD = {"when": "during", "periods": [[0, 10]]}
SOON = During([(50, 100)])
PRICE = Signal([0, 100], [1.0, 5.0])


EVENING = {"opens": "16h", "closes": "20h"}
#: In TOML local dates and times are those of the trace.
TOML = """do = "reconfigure"
when = "during"
efficiency = 0.9
share = 0.5
periods = [[1996-10-14 16:00:00, 1996-10-15]]"""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"do": "delay", "when": "during", "periods": [["2d 16h", "2d 20h"]]},
         {"name": "delay during", "by": None, "share": 1, "probability": 1,
          "trigger.periods": ((2 * DAY + 16 * HOUR, 2 * DAY + 20 * HOUR),)}),
        ({"do": "renounce", "when": "recent-waits", "wait": "6h", "last": 3, "memory": "7d"},
         {"trigger.wait": 6 * HOUR, "trigger.times": None, "trigger.last": 3,
          "trigger.memory": 7 * DAY}),
        # Hours are local, on weekdays unless days are given.
        ({"do": "degrade", "when": "during", "hours": EVENING, "factor": 0.25, "name": "evening"},
         {"factor": 0.25, "name": "evening", "trigger.week.pieces":
          [(day * DAY + 16 * HOUR, day * DAY + 20 * HOUR) for day in range(5)]}),
        ({"do": "degrade", "when": "during", "hours": EVENING | {"days": ["Sat"]}},
         {"trigger.week.pieces": [(5 * DAY + 16 * HOUR, 5 * DAY + 20 * HOUR)]}),
        ({"do": "degrade", "when": "budget", "kwh": 2.5, "rebound_after": "7d", "recovery": "30d"},
         {"trigger.kwh": 2.5, "rebound_after": WEEK, "recovery": 30 * DAY}),
        ({"do": "cut", "when": "always", "how": "at-once", "limit": "4h", "most": 8},
         {"how": "at-once", "limit": 4 * HOUR, "most": 8}),
        (tomllib.loads(TOML),
         {"factor": 0.5, "efficiency": 0.9, "share": 0.5, "trigger.periods":
          ((datetime(1996, 10, 14, 16), datetime(1996, 10, 15)),)}),
    ],
)  # fmt: skip
def test_settings_of_a_reaction(config, expected):
    """What is written is what the reaction and its trigger have."""
    reaction = reaction_from(config)
    assert RESPONSES[config["do"]].__name__ in {each.__name__ for each in type(reaction).__mro__}
    for name, value in expected.items():
        found: Any = reaction
        for part in name.split("."):
            found = getattr(found, part)
        assert value == found, name


def test_file_of_a_signal(tmp_path):
    """It is looked for in the folder that is given, and needs one threshold."""
    (tmp_path / "carbon.csv").write_text("time,value\n0,310\n3600,290\n")
    config = {"do": "switch", "to": "backup", "when": "signal", "file": "carbon.csv"}
    reaction: Any = reaction_from({**config, "above": 300}, tmp_path)
    found = reaction.to, reaction.trigger.above, reaction.trigger.below
    assert ("backup", 300, None) == found
    with pytest.raises(SignalError, match=r"carbon.csv: cannot be read"):
        reaction_from({**config, "above": 300}, tmp_path / "elsewhere")
    for more in ({}, {"above": 1, "below": 2}):
        with pytest.raises(QuantityError, match="give a threshold, either above or below"):
            reaction_from({**config, **more}, tmp_path)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        ("5", 5),
        ("1d 2h 3m", 93_780),
        ("2d 16s", 2 * DAY + 16),
        ("1996-10-14", datetime(1996, 10, 14)),
        ("1996-10-14 16:00", datetime(1996, 10, 14, 16)),
        ("1996-10-14T16:00Z", datetime(1996, 10, 14, 16, tzinfo=UTC)),
        *((wrong, None) for wrong in ("", "  ", "noon", "2d 16", True, 1.5, None, [5])),
    ],
)
def test_moments(value, expected):
    """A moment is seconds, durations (a number alone means seconds), or a date, nothing else."""
    if expected is None:
        refused(lambda: parse_moment(value), "neither s of the run, nor durations")
    else:
        assert expected == parse_moment(value)


@pytest.mark.parametrize("do", RESPONSES)
@pytest.mark.parametrize("when", TRIGGERS)
def test_every_response_goes_with_every_trigger(do, when, tmp_path):
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


def during(**more):
    """Return the settings of a delay in periods or hours."""
    return {"do": "delay", "when": "during", **more}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "reaction without do: choose delay, degrade, reconfigure, renounce, look-"),
        ({"do": "delay"}, "reaction without when: choose during, recent-waits, signal"),
        ({"do": "dance", **PERIOD}, "do 'dance': not known; choose delay, degrade"),
        ({"do": "delay", "when": "never"}, "when 'never': not known; choose during, recent-waits"),
        ({"do": "renounce", "when": "recent-waits", "wiat": "6h"},
         "wiat: no setting of do = 'renounce', when = 'recent-waits'; did you mean wait? "
         "choose wait, times, last, memory, share, probability, fatigue, recovery, name, rebound, "
         "rebound_after"),
        ({"do": "degrade", "factor": 2, **PERIOD}, "factor 2: must be less than 1"),
        ({"do": "delay", "by": "soon", **PERIOD}, "duration 'soon': not a number with a unit"),
        ({"do": "switch", **PERIOD}, "to: missing; it has no default"),
        (during(), "when 'during': give either periods or hours"),
        (during(periods=[["2d", "noon"]]), "periods[0][1]: moment 'noon': neither s of the run"),
        (during(periods=[["2d"]]), "periods[0][1]: missing"),
        (during(hours={"opens": "8h", "shuts": "9h"}), "hours.closes: missing; it has no default"),
        ({"do": "renounce", "when": "signal", "above": 5}, "file: missing; it has no default"),
        ({"do": "renounce", "when": "recent-waits", "times": float("nan")}, "nan: must be a "),
        ({"do": "delay", "when": "budget", "kwh": 5, "per": "day"}, "per 'day'"),
    ],
)  # fmt: skip
def test_mistakes_in_files(config, told):
    """Unknown settings, values that make no sense and contradictions name the setting."""
    refused(lambda: reaction_from(config), told)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        # Reactions.
        (lambda: Delay(RecentWaits(60)), "delay recent-waits: has no end to wait for; give by"),
        (lambda: Delay(SOON, by=0), "delay by 0 s: must be more than 0"),
        (lambda: Degrade(SOON, factor=1), "degrade factor 1: between 0 and 1"),
        (lambda: Reconfigure(SOON, efficiency=0), "efficiency 0: must be positive"),
        (lambda: Renounce(SOON, share=1.5), "share 1.5: must be between 0 and 1"),
        (lambda: Renounce(SOON, fatigue=2), "fatigue 2: must be between 0 and 1"),
        (lambda: Renounce(SOON, recovery=0), "recovery 0 s: must be more than 0"),
        (lambda: Renounce(SOON, rebound=-1), "rebound -1: must be between 0 and 1"),
        (lambda: Degrade(SOON, rebound_after=0), "rebound_after 0 s: must be more than 0"),
        (lambda: FewerGpus(SOON, factor=1), "fewer-gpus factor 1: between 0 and 1"),
        (lambda: FewerGpus(SOON, exponent=-1), "fewer-gpus exponent -1: 0 or more"),
        (lambda: LessMemory(SOON, factor=0), "less-memory factor 0: between 0 and 1"),
        (lambda: LessTime(SOON, factor=1), "less-time factor 1: 0 to less than 1"),
        (lambda: LessTime(SOON, times=-1), "less-time times -1: 0 or more"),
        (lambda: SwitchPartition(SOON, margin=-1), "switch-partition margin -1 s: must be 0"),
        (lambda: Cut(Always(), how="halves"), "cut how 'halves'"),
        (lambda: Cut(Always(), limit=60, overhead=60), "cut limit 60 s: must be more than the"),
        (lambda: Cut(Always(), time=0), "cut time 0 s: must be more than the overhead of a piece"),
        (lambda: Cut(Always(), overhead=-1), "cut overhead -1: at least 0"),
        (lambda: Cut(Always(), most=0), "cut most 0: at least 1"),
        (lambda: Cut(Always(), processors=0), "cut processors 0: at least 1"),
        # Triggers.
        (lambda: During([]), "periods: none given"),
        (lambda: During([(5, 5)]), "period 5 to 5: must end after it begins"),
        (lambda: During([(datetime(2024, 2, 1), datetime(2024, 1, 1))]), "must end after"),
        (lambda: WeekHours(WeeklyWindow([(0, WEEK)])), "the whole week, which never ends"),
        (lambda: RecentWaits(), "give a threshold, either wait"),
        (lambda: RecentWaits(-1), "recent-waits wait -1: at least 0"),
        (lambda: RecentWaits(5, last=0), "recent-waits last 0: at least 1"),
        (lambda: RecentWaits(5, memory=0), "recent-waits memory 0 s: more than 0"),
        (lambda: OnSignal(PRICE), "give a threshold, either above or below"),
        (lambda: OnSignal(PRICE, above=1, outside="on"), "outside 'on': not known; choose error"),
        (lambda: FairShareBelow(0), "fair-share below 0: more than 0"),
        (lambda: Budget(), "budget: give either kwh, of each user, or machine_kwh"),
        (lambda: Budget(-1), "budget kwh -1: must be 0 or more"),
        (lambda: Budget(machine_kwh=float("nan")), "budget machine_kwh nan: must be 0 or more"),
        (lambda: Budget(1, fair="never"), "budget fair 'never': not known; choose equal"),
        (lambda: Budget(1, per="day"), "budget per 'day': not known; choose month"),
        # Patience and minds.
        (lambda: Patience(), "patience: give one of wait, mean, times and fitted, not none"),
        (
            lambda: Patience(wait=5, times=2),
            "times and fitted, not wait and times",
        ),
        (lambda: Patience(wait=0), "patience wait 0: must be more than 0"),
        (lambda: Patience(wait=5, then="soon"), "patience then 'soon'"),
        (lambda: Patience(wait=5, factor=1.0), "patience factor 1: between 0 and 1"),
        (lambda: Consequences(asked=-1), "asked -1: at least 0"),
        # Think times.
        (lambda: LinearThink(-0.1, 5), "would be negative"),
        (lambda: LinearThink(float("nan"), 5), "slope and an intercept of at least 0"),
        (lambda: LinearThink(1, float("inf")), "slope and an intercept of at least 0"),
        (lambda: LinearThink(1, 1, 0), "cut 0 s"),
        (lambda: ContinuationLaw(1.1), "limit must be a probability"),
        (lambda: ContinuationLaw(0.5, -1), "decline at least 0"),
        # Windows: what would never open, or not within one day or week.
        (lambda: ActivityWindow(8 * HOUR, 8 * HOUR), "window 28800 to 28800 s"),
        (lambda: ActivityWindow(-1, 5), "window -1 to 5 s"),
        (lambda: ActivityWindow(0, DAY + 1), "window 0 to 86401 s"),
        (lambda: ActivityWindow(0, 5, ()), "window without days: never opens"),
        (lambda: ActivityWindow(0, 5, (7,)), "days (7,): must be days from 0"),
        (lambda: WeeklyWindow([]), "window without hours: never opens"),
        (lambda: WeeklyWindow([(WEEK, WEEK + 5)]), "must open within the week"),
        (lambda: WeeklyWindow([(5, WEEK + 6)]), "close within a week"),
        (lambda: Shifts(day_share=1.1), "day_share 1.1: must be between 0 and 1"),
        (lambda: Shifts(weekday_share=float("nan")), "weekday_share nan"),
        (lambda: Shifts(shift=-1), "shift -1 s: at least 0"),
        (lambda: Shifts(5, 5), "window 5 to 5 s"),
        (lambda: Shifts(0, DAY), "leaves no night for the share 0.3 of users"),
        # Profiles.
        (lambda: WeeklyProfile(np.zeros(168)), "profile of zeros: never active"),
        (lambda: WeeklyProfile(np.ones(24)), "profile of shape (24,): give 168 weights"),
        (lambda: WeeklyProfile(-np.ones(168)), "weights of at least 0"),
        (lambda: WeeklyProfile(np.full(168, np.nan)), "weights of at least 0"),
        *((lambda prior=prior: check_prior(prior), "more than 0") for prior in (0.0, -1.0)),
        *((lambda prior=float(word): check_prior(prior), "more than 0") for word in ("nan", "inf")),
        (lambda: DecisionLog(limit=0), "limit 0: "),
    ],
)
def test_mistakes_in_python(make, told):
    """What makes no sense is refused when the part is made, with its value and the rule."""
    refused(make, told, QuantityError)
