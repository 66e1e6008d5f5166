"""Your own schedulers, behaviours and parts by their place, wherever a name is taken."""

import importlib
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from hpcrowd import ClusterSpec, Recipe, Scheduler, read_swf, replay, resample
from hpcrowd.behaviours import PRESETS, DecisionLog
from hpcrowd.environment.errors import QuantityError, SchedulerError, SimulationError
from hpcrowd.environment.registry import place_of, source_of, text_of
from hpcrowd.environment.schedulers.names import parse_scheduler
from hpcrowd.scenarios.engines import Processes
from hpcrowd.scenarios.kinds.files import read_scenario
from hpcrowd.scenarios.kinds.population_files import PopulationConfig
from hpcrowd.scenarios.kinds.populations.populate import PopulateConfig
from hpcrowd.scenarios.sweeps.runs import sweep
from hpcrowd.scenarios.sweeps.study import Study

from tests.support.populations import small_log

MINE = '''
from hpcrowd.behaviours import ThinkTime
from hpcrowd.populations import ClosedLoop
from hpcrowd.reactions import Reaction
from hpcrowd import Scheduler
from neighbour import SIGN


class Widest(Scheduler):
    """The widest job first, or the narrowest."""

    def __init__(self, narrow: bool = False, spare: int = 0):
        self.narrow, self.spare = narrow, spare

    def select(self, look):
        free = look.free - self.spare
        sign = -SIGN if self.narrow else SIGN
        for job in sorted(look.waiting, key=lambda job: (-sign * job.processors, job.row)):
            if job.processors > free:
                break
            free -= job.processors
            yield job


class Wrong(Scheduler):
    def __init__(self, how: str):
        self.how = how

    def select(self, look):
        twice = [*look.waiting, *look.waiting]
        return {"rows": [0], "nothing": None, "twice": twice}[self.how]


class Wakes(Widest):
    def wake(self, now):
        return "soon"


class Needs(Scheduler):
    def __init__(self, something):
        pass


class Slow(ThinkTime):
    def __init__(self, work, factor: float = 2.0):
        super().__init__(work)
        self.factor = factor

    def arrival(self, user, release):
        return release.at + int(release.pause * self.factor)


def slow(work):
    return Slow(work)


class Confused(ThinkTime):
    def finished(self, user, unit, now):
        raise ValueError("what now?")


def nobody(work):
    return None


class Choosy(Reaction):
    def react(self, user, intention):
        for place in range(len(intention.rows)):
            if user.model.jobs.processors[intention.rows[place]] > 3:
                intention.renounce(place, "choosy")


class Hesitant(ClosedLoop):
    def __init__(self, pool, factor: float = 1.0):
        super().__init__(pool.profiles)
        self.factor = factor

    def pause(self, user, unit, recorded):
        user.stream.random()
        return round(recorded * self.factor)


class Fractions(ClosedLoop):
    def pause(self, user, unit, recorded):
        return recorded / 2


def patient(pool):
    return Hesitant(pool, 3.0)

'''

LOG = """; MaxProcs: 4
1   0 0 60 4 -1 -1 4  80 -1 1 2 1 -1 1 -1 -1 -1
2  10 0 30 4 -1 -1 4  40 -1 1 1 1 -1 1 -1 -1 -1
3  20 0 30 1 -1 -1 1  40 -1 1 3 1 -1 1 -1 -1 -1
4 7190 0 99 4 -1 -1 4 150 -1 1 2 1 -1 1 -1 -1 -1
5 7200 0 10 2 -1 -1 2  20 -1 1 1 1 -1 1 -1 -1 -1
"""


@pytest.fixture
def folder(workshop):
    """A folder with a log and a file of own code, which imports a neighbour."""
    (workshop / "mine.py").write_text(MINE)
    (workshop / "neighbour.py").write_text("SIGN = 1\n")
    (workshop / "log.swf").write_text(LOG)
    return workshop


def same(one, other):
    """Whether two runs have the same jobs."""
    return np.array_equal(one.jobs.matrix, other.jobs.matrix)


# ---- places -----------------------------------------------------------------------------------


def test_places():
    """What is a place, and what is the name of something else."""
    assert ("a/b.py", "C", "") == place_of("a/b.py:C")
    assert ("a.b", "C", "x=1,y=2") == place_of("a.b:C:x=1,y=2")
    for text in ("easy", "easy:backfill=sjbf", "arrival:60m", "a.py", "a.py:1", "x y:C", "", 5):
        assert place_of(text) is None or text == "arrival:60m", text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine.py:Wides", "scheduler 'mine.py:Wides': not known; did you mean Widest?"),
        ("nope.py:Widest", "scheduler 'nope.py:Widest': no such file"),
        ("nope:Widest", r"there is no module nope; give the path of a file, such as ./nope.py:W"),
        ("mine.py:Needs", "missing a required argument: 'something'; give it as the option"),
        ("broken.py:X", r"cannot be loaded: NameError: .*\(broken.py, line 2\); correct it"),
        ("syntax.py:X", "cannot be loaded: SyntaxError: .*line 1"),
        ("exits.py:X", "cannot be loaded: SystemExit: 3"),
        ("xyz", "not known; choose fcfs, easy, .*, recorded, or your own as FILE.py:NAME"),
    ],
)
def test_mistakes_in_places(folder, text, message):
    """Each is one line."""
    (folder / "broken.py").write_text("\nx = unknown\n")
    (folder / "syntax.py").write_text("def x(:\n")
    (folder / "exits.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(QuantityError, match=message):
        parse_scheduler(text)


def test_a_change_counts(folder):
    """A changed file is loaded again, and what was computed before is not taken for the same."""
    text = '[scenario]\nkind = "replay"\ntrace = "log.swf"\nscheduler = "mine.py:Widest"\n'
    (folder / "s.toml").write_text(text)
    before = read_scenario(folder / "s.toml").identity()
    assert str(parse_scheduler("mine.py:Widest")) == "Widest"
    named = MINE.replace("class Widest(Scheduler):", "class Widest(Scheduler):\n    name = 'wide'")
    (folder / "mine.py").write_text(named)
    assert str(parse_scheduler("mine.py:Widest")) == "wide"
    after = read_scenario(folder / "s.toml").identity()
    assert before["sources_sha256"] != after["sources_sha256"]


# ---- runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("scheduler", "Wrong:how=rows", "Wrong: select.. returned 0 at 0 s; it must return jobs o"),
        (
            "scheduler",
            "Wrong:how=nothing",
            "select.. returned None at 0 s; it must return the jobs",
        ),
        (
            "scheduler",
            "Wrong:how=twice",
            "job in row 0 is not waiting at 0 s; name each job .* once",
        ),
        ("scheduler", "Wrong:how=x", r"Wrong: select.. at 0 s: KeyError: 'x' .*mine.py, line \d+"),
        ("scheduler", "Wakes", "Wakes: wake.. returned 'soon' at 0 s; it must return a whole sec"),
        ("users", "Confused", r"Confused.finished.. at \d+ s: ValueError: what now"),
        ("users", "nobody", "users 'mine.py:nobody': makes None, not a Behaviour; return one"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_own_code_does_wrong(option, name, message):
    """The message has its name, the second of the simulation, and the rule."""
    with pytest.raises((QuantityError, SchedulerError, SimulationError), match=message):
        replay(read_swf("log.swf"), **{option: f"mine.py:{name}"})


def test_a_scheduler_as_text_class_and_object(folder):
    """All of them are the same, with options too; its source is in the provenance."""
    del folder
    trace, mine = read_swf("log.swf"), importlib.import_module("mine")
    by_text = replay(trace, scheduler="mine.py:Widest:narrow=yes")
    assert same(by_text, replay(trace, scheduler="mine:Widest:narrow=yes"))
    assert same(by_text, replay(trace, scheduler=mine.Widest(narrow=True)))
    assert same(replay(trace, scheduler="mine.py:Widest"), replay(trace, scheduler=mine.Widest))
    assert not same(by_text, replay(trace, scheduler="mine.py:Widest"))
    assert by_text.jobs.start[2] < by_text.jobs.start[1]
    checksums = by_text.configuration["sources_sha256"]
    assert ["mine.py"] == list(checksums)
    assert checksums == replay(trace, scheduler=mine.Widest()).configuration["sources_sha256"]
    assert "sources_sha256" not in replay(trace).configuration


def test_users_as_text_class_and_function(folder):
    """With options; mixed in a file, with own parts."""
    trace, mine = read_swf("log.swf"), importlib.import_module("mine")
    slow = replay(trace, users="mine.py:Slow")
    assert same(slow, replay(trace, users=mine.Slow))
    assert same(slow, replay(trace, users="mine.py:slow"))
    assert same(slow, replay(trace, users="mine:Slow:factor=2"))
    assert not same(slow, replay(trace, users="mine.py:Slow:factor=3"))
    assert slow.configuration["sources_sha256"].keys() == {"mine.py"}
    inside = folder / "inside"
    inside.mkdir()
    (inside / "users.toml").write_text(
        """
        [[users]]
        behaviour = "../mine.py:Slow:factor=3"
        users = [1]
        [[users]]
        behaviour = "adjusted"
        users = [2, 3]
        reactions = [{ do = "../mine.py:Choosy" }]
        """
    )
    mixed = replay(trace, users="inside/users.toml")
    assert same(mixed, replay(trace, users=PopulationConfig.read("inside/users.toml")))
    assert mixed.configuration["sources_sha256"] == slow.configuration["sources_sha256"]
    assert mixed.metrics["jobs_renounced"] == 2
    assert 7200 < mixed.jobs.submit[4]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('behaviour = "mine.py:Slow"\nwhen = "batches"', "when: .*mine.py:Slow has no such part"),
        ('reactions = [{ do = "mine.py:Choosy", by = 3 }]', "by: no setting of do = 'mine.py:Cho"),
    ],
)
def test_mistakes_in_files(folder, entry, message):
    """The file and the place of the entry come first."""
    (folder / "users.toml").write_text(f"[[users]]\n{entry}\n")
    with pytest.raises(QuantityError, match=rf"users\.toml.*{message}"):
        replay(read_swf("log.swf"), users="users.toml")


def test_own_schedulers_in_other_kinds(folder):
    """Changes of the platform, descriptions of clusters, and grids."""
    trace, mine = read_swf("log.swf"), importlib.import_module("mine")
    (folder / "inside").mkdir()
    (folder / "inside" / "platform.toml").write_text(
        '[[changes]]\ndo = "switch"\nat = 5\nscheduler = "../mine.py:Widest:narrow=yes"\n'
    )
    switched = replay(trace, platform="inside/platform.toml")
    assert same(switched, replay(trace, scheduler="mine.py:Widest:narrow=yes"))
    assert ClusterSpec(4, mine.Widest()).processors == 4
    (folder / "grid.toml").write_text(
        'users = "mine.py:Slow"\n'
        '[clusters.a]\nprocessors = 4\nscheduler = "mine.py:Widest"\ntrace = "log.swf"\n'
        '[clusters.b]\nprocessors = 4\nscheduler = "easy"\ntrace = "log.swf"\n'
    )
    scenario = folder / "inside" / "scenario.toml"
    scenario.write_text('[scenario]\nkind = "grid"\nsource = "../grid.toml"\n')
    found = read_scenario(scenario)
    run = found.run(found.prepare())
    assert run.configuration["sources_sha256"].keys() == {"mine.py"}
    assert run.metrics["jobs_completed"] == 10


def test_command_line(folder, call):
    """Options of commands take places; a mistake ends with 2 and one line."""
    words = ("replay", "log.swf", "--scheduler")
    code, out, err = call(*words, "mine.py:Widest", "--users", "mine.py:Slow", "--out", "out")
    assert (0, True, "Results are in out/\n") == (code, "mine.py:Widest" in out, err)
    assert "mine.py" in (folder / "out" / "provenance.json").read_text()
    code, _, err = call(*words, "mine.py:Wrong:how=x")
    assert (2, 1) == (code, err.count("\n"))


# ---- sweeps -----------------------------------------------------------------------------------


@pytest.fixture
def study(folder):
    """A study with own classes, functions and objects on its axes."""
    mine = importlib.import_module("mine")
    return Study(
        scenario={"kind": "replay", "trace": str(folder / "log.swf")},
        axes={
            "scheduler": ["easy", mine.Widest(narrow=True), mine.Widest],
            "users": ["rigid", mine.Slow, mine.slow],
        },
    )


def test_objects_and_classes_on_axes(folder, study):
    """They become places that another process finds, with their options."""
    place = folder / "mine.py"
    assert [f"{place}:Slow", f"{place}:slow"] == study.axes["users"][1:]
    assert [f"{place}:Widest:narrow=yes", f"{place}:Widest"] == study.axes["scheduler"][1:]


@pytest.mark.slow
def test_sweeps_load_own_code_in_workers(folder, study):
    """Another process makes the same of objects and classes on axes."""
    with closing(Processes(2)) as engine:
        by_two = sweep(study, folder / "two", engine=engine)
    alone = sweep(study, folder / "one")
    assert (9, 0, 0) == (by_two.total, by_two.failed, alone.failed)
    one, two = ((folder / name / "frame.csv").read_text() for name in ("one", "two"))
    assert one == two


@pytest.mark.parametrize(
    ("axis", "make", "message"),
    [
        ("users", lambda mine: partial(mine.Slow, factor=3), "a partial, which other processes"),
        ("users", lambda mine: Recipe("batches"), "a Recipe, which other processes cannot make"),
        ("scheduler", lambda mine: mine.Hidden(3), "has no attribute spare, so that the value"),
    ],
)
def test_objects_that_are_not_made_again(folder, axis, make, message):
    """An object on an axis whose options would be lost is refused."""
    with (folder / "mine.py").open("a") as file:
        file.write("\n\nclass Hidden(Widest):\n    def __init__(self, spare=0):\n        pass\n")
    with pytest.raises(ValueError, match=message):
        Study(
            scenario={"kind": "replay", "trace": "log.swf"},
            axes={axis: [make(importlib.import_module("mine"))]},
        )


def test_what_other_processes_cannot_find(folder):
    """Classes inside functions, or without a file, are refused with the cure."""
    del folder

    class Inside(Scheduler):
        pass

    with pytest.raises(QuantityError, match=r"Inside: is defined inside a function or class"):
        text_of("scheduler", Inside())
    made = type("Made", (Scheduler,), {"__module__": "nowhere", "__qualname__": "Made"})
    with pytest.raises(QuantityError, match=r"Made: has no source file"):
        text_of("scheduler", made())
    assert "easy" == text_of("scheduler", parse_scheduler("easy"))
    assert source_of("easy") is None
    assert source_of(PRESETS["adjusted"]) is None


@pytest.mark.usefixtures("folder")
def test_resampled_users(make_trace):
    """Members of a drawn population act by your own class, under your own scheduler."""
    log, mine = small_log(make_trace), importlib.import_module("mine")
    run = partial(resample, log, days=28, warm_up="7d")
    slow = run(users="mine.py:Hesitant:factor=3", scheduler=mine.Widest())
    assert same(slow, run(users=mine.patient, scheduler="mine.py:Widest", log=DecisionLog()))
    assert not same(slow, run(scheduler="mine.py:Widest"))
    assert same(run(), run(users="mine.py:Hesitant"))
    assert slow.configuration["scheduler"] == "Widest"
    assert slow.configuration["sources_sha256"].keys() == {"mine.py"}
    assert "resampled mine.py:Hesitant:factor=3" in slow.label
    sources = {"sources_sha256": slow.configuration["sources_sha256"]}
    assert sources == PopulateConfig(scheduler=mine.Widest).of_sources()


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ("mine.py:Nope", "users 'mine.py:Nope': not known; choose Widest"),
        ("hesitant", r"users 'hesitant': not known; .*, or your own as FILE.py:NAME"),
        ("mine.py:Slow", "users 'mine.py:Slow': "),
        ("mine.py:nobody", "makes None, not a ClosedLoop; return one"),
        ("mine.py:Fractions", r"pause\(\) returned [0-9.]+; must be whole seconds, 0 or more"),
    ],
)
def test_wrong_users_of_a_population(folder, make_trace, users, message):
    """One line names what is wrong."""
    with pytest.raises((QuantityError, SimulationError), match=message):
        resample(small_log(make_trace), days=28, warm_up="7d", users=users)
