"""Your own code of every kind, from every door: options change the result, mistakes are clear."""

import json
from pathlib import Path
from typing import override

import numpy as np
import pytest
import tomlkit
from hpcrowd import Recipe, replay
from hpcrowd.agents.behaviours.triggers import Always
from hpcrowd.behaviours import Activity, ActivityWindow, Composed, SessionGraph, Think, ThinkTime
from hpcrowd.environment.errors import QuantityError, SimulationError
from hpcrowd.reactions import Renounce, Trigger
from hpcrowd.scenarios.kinds.files import read_scenario

SEAMS = """
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcrowd import Scheduler
from hpcrowd.agents.behaviours.parts import setting
from hpcrowd.behaviours import *
from hpcrowd.environment.clock import DAY
from hpcrowd.populations import ClosedLoop
from hpcrowd.reactions import *

if TYPE_CHECKING:
    from nowhere import Work


class Order(Scheduler):
    def __init__(self, last=False):
        self.last = last

    def select(self, look):
        free = look.free
        for job in sorted(look.waiting, key=lambda job: -job.row if self.last else job.row):
            if job.processors > free:
                break
            free -= job.processors
            yield job


class Slow(ThinkTime):
    def __init__(self, work: Work, factor):
        super().__init__(work)
        self.factor = factor

    def arrival(self, user, release):
        return release.at + int(release.pause * self.factor)


class Slower(Slow):
    def __init__(self, work, **more):
        super().__init__(work, **more)


def slow(work, factor=1.0):
    return Slow(work, factor)


class Chain(When):
    def __init__(self, work: Work, factor: float | None = None):
        super().__init__(work, work.by_session)
        self.factor = factor or 1

    def begin(self, user):
        return self.first(user)

    def finished(self, user, unit, now):
        if unit + 1 not in user.units:
            return []
        pause = max(0, int(self.units.start[unit + 1] - self.units.end[unit]))
        return [Release(unit + 1, now, Reason.ENDED, int(pause * self.factor), unit)]


class Plain(Think):
    def __init__(self, factor: float = 1.0):
        self.factor = factor

    def pause(self, user, release):
        return Pause(int(release.pause * self.factor))


@dataclass(frozen=True)
class Settings:
    factor: float = setting(1.0, "factor on pauses", least=0)


class Tired(Plain):
    settings = Settings


class Whole(Plain):
    settings = Settings

    def __init__(self, how):
        self.factor = how.factor


class Makes(Whole):
    @classmethod
    def make(cls, fit, settings=None):
        return cls(settings or Settings())


class Misses(Plain):
    settings = Settings

    def __init__(self):
        pass


@dataclass
class Fields(Think):
    factor: float = setting(1.0, "factor on pauses", least=0)
    pause = Plain.pause


class Days(Activity):
    def __init__(self, every: int = 1):
        self.every = every

    def is_open(self, user, at):
        return user.model.clock.wall(at) // DAY % self.every == self.every - 1

    def next_open(self, user, at, release):
        clock = user.model.clock
        while not self.is_open(user, at):
            at = clock.second_at((clock.wall(at) // DAY + 1) * DAY)
        return at


class Shy(Reaction):
    def __init__(self, limit=4):
        self.limit = limit

    def react(self, user, intention):
        for place, row in enumerate(intention.rows):
            if user.model.jobs.processors[row] > self.limit:
                intention.renounce(place, "shy")


class Downsize(Response):
    def __init__(self, trigger, most=4):
        super().__init__(trigger, name="downsize")
        self.most = most

    def respond(self, user, intention, place):
        jobs, row = user.model.jobs, intention.rows[place]
        if jobs.processors[row] > self.most:
            times = int(jobs.run_time[row]), int(jobs.requested_time[row])
            intention.resize(place, self.most, *times, self.name, "degrade")


class Odd(Trigger):
    def __init__(self, remainder=5):
        self.remainder = remainder

    def which(self, user, intention):
        return user.model.jobs.number[intention.rows] % 2 == self.remainder


order = Order()
"""

#: By name: what is set, ``{}`` for the options, and the name of an option with another value. An
#: entry of users unless it is the scheduler, or users themselves.
DOORS = {
    "scheduler": ({"scheduler": "seams.py:Order{}"}, "last", "yes"),
    "users": ({"users": "seams.py:Slower{}"}, "factor", "3"),
    "behaviour by a function": ({"behaviour": "seams.py:slow{}"}, "factor", "3"),
    "when": ({"when": "seams.py:Chain{}"}, "factor", "3"),
    "think": ({"think": "seams.py:Plain{}"}, "factor", "3"),
    "think with settings": ({"think": "seams.py:Tired{}"}, "factor", "3"),
    "think that takes settings": ({"think": "seams.py:Whole{}"}, "factor", "3"),
    "think that makes itself": ({"think": "seams.py:Makes{}"}, "factor", "3"),
    "think with fields": ({"think": "seams.py:Fields{}"}, "factor", "3"),
    "window": ({"window": "seams.py:Days{}"}, "every", "3"),
    "reaction": ({"reactions": [{"do": "seams.py:Shy{}"}]}, "limit", "1"),
    "response": ({"reactions": [{"do": "seams.py:Downsize{}", "when": "always"}]}, "most", "1"),
    "trigger": ({"reactions": [{"do": "renounce", "when": "seams.py:Odd{}"}]}, "remainder", "1"),
}  # fmt: skip


@pytest.fixture
def seams(workshop):
    """A folder with own code of every kind, and three users."""
    (workshop / "seams.py").write_text(SEAMS)
    rows = (
        (0, 2, 1), (900, 3, 2), (1000, 3, 4), (1100, 1, 5), (1200, 4, 6), (1300, 2, 7),
        (1800, 1, 3), (9600, 2, 3), (12600, 2, 1), (20400, 1, 3), (22500, 3, 2), (23200, 4, 3),
    )  # fmt: skip
    lines = [
        f"{n} {at} 0 5400 {size} -1 -1 {size} {7200 - 300 * n} -1 1 {user} 1 -1 1 -1 -1 -1"
        for n, (at, size, user) in enumerate(rows, 1)
    ]
    (workshop / "log.swf").write_text("\n".join(["; MaxProcs: 4", *lines, ""]))
    return workshop


def given(values, options):
    """Settings of a replay with options in each place, and an entry of users as a population."""
    text = json.loads(json.dumps(values).replace("{}", options))
    if not text.keys() & {"scheduler", "users"}:
        text = {"users": {"users": [text]}}
    return {"trace": "log.swf", "speed": "0.5x", **text}


def by_file(settings):
    """The submissions and starts of a run of a TOML file."""
    file = Path("scenario.toml")
    file.write_text(tomlkit.dumps({"scenario": {"kind": "replay", **settings}}))
    found = read_scenario(file)
    return found.run(found.prepare()).jobs


@pytest.mark.usefixtures("seams")
@pytest.mark.parametrize("name", DOORS)
def test_options_change_the_result(name):
    """In Python and in a file alike, and only those of the class."""
    values, option, value = DOORS[name]
    default = "" if name != "users" else ":factor=1"
    before = replay(**given(values, default)).jobs.matrix
    there = given(values, f":{option}={value}")
    after = replay(**there).jobs.matrix
    assert not np.array_equal(before, after)
    assert np.array_equal(after, by_file(there).matrix)
    near = option[:-1]
    for wrong, message in (
        (f":{near}={value}", f"'{near}' is not an option of it; did you mean {option}?"),
        (f":{option}", f"'{option}' is without a value; write seams.py"),
        (f":{option}=x", f"{option} must be (a number|a whole number|yes or no)"),
        (f":{option}={value},{option}={value}", f"'{option}' is given twice"),
    ):
        if wrong.endswith("=x") and name == "users":
            continue  # has neither type nor default, so that it may be a word
        with pytest.raises(QuantityError, match=message) as caught:
            replay(**given(values, wrong))
        assert " at 0x" not in str(caught.value)


@pytest.mark.usefixtures("seams")
@pytest.mark.parametrize("name", [name for name in DOORS if "reactions" in DOORS[name][0]])
def test_options_of_reactions_in_their_table(name):
    """They may be keys beside ``do``, but only in one place."""
    values, option, value = DOORS[name]
    [table] = values["reactions"]
    there = {"reactions": [{**table, option: int(value)}]}
    behind = replay(**given(values, f":{option}={value}")).jobs.matrix
    assert np.array_equal(behind, replay(**given(there, "")).jobs.matrix)
    with pytest.raises(QuantityError, match=f"{option} is also in the table; give it once"):
        replay(**given(there, f":{option}={value}"))
    with pytest.raises(QuantityError, match=f"{option} 'x': must be a "):
        replay(**given({"reactions": [{**table, option: "x"}]}, ""))


@pytest.mark.usefixtures("seams")
@pytest.mark.parametrize(
    ("where", "place", "message"),
    [
        ("users", "Tired:factor=3", r'a Think, not a Behaviour; write think = "seams.py:Tired'),
        ("users", "Chain", r"a When, not a Behaviour; write when = "),
        ("users", "Days", r"an Activity, not a Behaviour; write window = "),
        ("users", "Shy", r"a Reaction, not a Behaviour; write reactions = \[{ do = "),
        ("users", "Order", r"a Scheduler, not a Behaviour; write --scheduler seams.py:Order"),
        ("users", "Settings", r"the class Settings, .*; write class Settings\(Behaviour\)"),
        ("users", "ClosedLoop", r"a ClosedLoop, not a Behaviour; write hpcrowd resample LOG --use"),
        ("scheduler", "Tired", r"a Think, not a Scheduler; write think = "),
        ("scheduler", "slow", r"a function, not a Scheduler; give a subclass of it"),
        ("scheduler", "order:last=yes", r"an object, not a class; give the class: seams.py:Order"),
        ("think", "Misses:factor=2", r"__init__ does not take factor; write def __init__"),
        ("think", "Tired:factor=-1", r"factor -1: must be at least 0"),
        ("window", "Plain", r"a Think, not an Activity; write think = "),
    ],
)  # fmt: skip
def test_the_wrong_kind_of_own_code(where, place, message):
    """One line: what it is, what was wanted, and what to write."""
    with pytest.raises(QuantityError, match=message) as caught:
        replay(**given({where: f"seams.py:{place}"}, ""))
    assert " at 0x" not in str(caught.value)


# ---- mistakes in Python -------


class HalfDone(Think):
    """Returns seconds where a Pause is due."""

    @override
    def pause(self, user, release):
        return release.pause


class Mute(Think):
    """Has no pause."""


class Silent(Activity):
    """Returns nothing."""

    @override
    def next_open(self, user, at, release):
        return None


class Listed(Trigger):
    """Returns a list, not an array."""

    @override
    def which(self, user, intention):
        return [True] * len(intention.rows)


class Unprepared(ThinkTime):
    """Forgets the constructor of its base class."""

    def __init__(self, work):
        pass


@pytest.mark.usefixtures("seams")
@pytest.mark.parametrize(
    ("users", "message"),
    [
        (lambda work: Composed(SessionGraph(work), HalfDone()), r"HalfDone, used by Composed.arr"),
        (lambda work: Composed(SessionGraph(work), Mute()), r"Mute must define pause\(\)"),
        (lambda work: Composed(SessionGraph(work), window=Silent()), "Silent, used by Composed"),
        (Recipe(reactions=(Renounce(Listed()),)), "Listed, used by Response.react"),
        (Unprepared, r"Unprepared, used by Composed.prepare\(\), at 0 s: AttributeError"),
        (lambda work: Composed(SessionGraph(work), HalfDone), r"the class HalfDone.*HalfDone\(\)"),
        (lambda work: Composed(SessionGraph(work), Silent()), "an object of an Activity, not a T"),
        (lambda work: Composed(SessionGraph(work), window=ActivityWindow()), "not an Activity"),
        (lambda work: Composed(SessionGraph(work), None, None, [Listed()]), "not a Reaction"),
        (lambda work: ThinkTime, "makes the class ThinkTime, not a Behaviour"),
        (HalfDone, "users 'HalfDone': a Think, not a Behaviour"),
        (HalfDone(), "users 'HalfDone': an object of a Think, not a Behaviour"),
        (5, "users '5': an int, not a Behaviour"),
        (lambda work: Recipe(think=HalfDone), "think: the class HalfDone; a recipe takes a name"),
        (lambda work: Recipe(think=HalfDone()), "think: an object of a Think; a recipe takes a"),
        (lambda work: Recipe(reactions=(Renounce,)), "class Renounce, not a Reaction; write Ren"),
        (lambda work: Recipe(reactions=Renounce(Always())), "object of a Reaction; write a tuple"),
        (lambda work: Renounce(Always), r"the class Always, not a Trigger; write Always\(\)"),
        (lambda work: Renounce("always"), "trigger: a str, not a Trigger"),
    ],
)
def test_mistakes_in_python(users, message):
    """What a class returns or leaves out, and classes in the place of objects, in recipes too."""
    with pytest.raises((QuantityError, SimulationError), match=message):
        replay("log.swf", users=users, speed="0.5x")
