"""Files of a stranger run no code: every command, every file that can name code, every place."""

import json
import shlex
from contextlib import suppress

import pytest
from hpcrowd import read_swf, replay
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.cli import ASKS, CommandFiles, app
from typer.testing import CliRunner

from tests.scenarios.commands.test_contract import ABSENT, LOG, WITHOUT

#: Code that leaves a file where it was imported, and works.
CODE = """
from pathlib import Path
from hpcrowd.behaviours import Pause, Think, ThinkTime
from hpcrowd.populations import ClosedLoop
from hpcrowd.reactions import Reaction, Trigger
from hpcrowd.environment.schedulers.order import FCFS
Path(__file__).with_name("ran").touch()

class X(FCFS): pass
class U(ThinkTime): pass
class P(ClosedLoop): pass
class T(Think):
    @classmethod
    def make(cls, fit, settings=None): return cls()
    def pause(self, user, release): return Pause(0)
"""

REPLAY = '[scenario]\nkind = "replay"\ntrace = "log.swf"\n'
MIXED = f"{REPLAY}[[scenario.users.users]]\n"
RESAMPLE = '[scenario]\nkind = "resample"\ntrace = "log.swf"\ndays = 7\nwarm_up = "0d"\n'
GRID = '[scenario]\nkind = "grid"\n{}[scenario.clusters.a]\nprocessors = 8\ntrace = "log.swf"\n'

#: Every way in which a scenario names code, which is {}.
NAMING = {
    "scheduler": f'{REPLAY}scheduler = "{{}}:X"\n',
    "adaptive": f'{REPLAY}scheduler = "adaptive:overload-positive={{}}:X"\n',
    "users": f'{REPLAY}users = "{{}}:U"\n',
    "behaviour": f'{MIXED}behaviour = "{{}}:U"\n',
    "when": f'{MIXED}when = "{{}}:W"\n',
    "think": f'{MIXED}when = "batches"\nthink = "{{}}:T"\n',
    "window": f'{MIXED}window = "{{}}:A"\n',
    "reaction": f'{MIXED}reactions = [{{{{ do = "{{}}:R" }}}}]\n',
    "trigger": f'{MIXED}reactions = [{{{{ do = "delay", by = "5m", when = "{{}}:O" }}}}]\n',
    "other cluster": f"{MIXED}behaviour = 'rigid'\n[scenario.users.clusters.b]\nprocessors = 4\n"
    'scheduler = "{}:X"\n',
    "population": f'{REPLAY}users = "population.toml"\n',
    "platform": f'{REPLAY}platform = "platform.toml"\n',
    "changes": f'{REPLAY}[[scenario.platform.changes]]\ndo = "switch"\nat = 5\n'
    'scheduler = "{}:X"\n',
    "resampled scheduler": f'{RESAMPLE}scheduler = "{{}}:X"\n',
    "resampled users": f'{RESAMPLE}users = "{{}}:P"\n',
    "resampled reactions": f'{RESAMPLE}reactions = [{{{{ do = "{{}}:R" }}}}]\n',
    "reactions": f'{RESAMPLE}reactions = "reactions.toml"\n',
    "generated": '[scenario]\nkind = "populate"\nmodel = "feitelson96"\nmodel_processors = 8\n'
    'days = 7\nscheduler = "{}:X"\n',
    "grid users": GRID.format('users = "{}:U"\n'),
    "grid parts": GRID.format('users = [{{ think = "{}:T", when = "batches" }}]\n'),
    "grid cluster": GRID.format("") + 'scheduler = "{}:X"\n',
    "grid file": '[scenario]\nkind = "grid"\nsource = "grid.toml"\n',
}

#: Files that these name, and that name code.
FILES = {
    "population.toml": '[[users]]\nwhen = "batches"\nthink = "{}:T"\n',
    "platform.toml": '[[changes]]\ndo = "switch"\nat = 5\nscheduler = "{}:X"\n',
    "reactions.toml": '[[reactions]]\ndo = "{}:R"\n',
    "grid.toml": 'users = "{}:U"\n[clusters.a]\nprocessors = 8\ntrace = "log.swf"\n',
}

#: Those of them whose code works as it is.
WORKING = ("scheduler", "users", "population", "platform", "grid file")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with a folder of a stranger, and code in it and next to it."""
    for name, text in {"their/log.swf": LOG, "their/own.py": CODE, "own.py": CODE}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with suppress(ImportError):
        from hpcrowd.scenarios.inspector.service import server

        monkeypatch.setattr(server, "bound_socket", lambda *_: pytest.fail("listens"))
    return tmp_path


def write(folder, text, code):
    """Write a scenario, and the files that some name, with the place of code."""
    if "adaptive" in text:  # which does not know its folder
        code = (folder / "their" / code).resolve()
    for name, words in {"s.toml": text, **FILES}.items():
        (folder / "their" / name).write_text(words.format(code))


def ran(folder):
    """Return where code has run."""
    return [str(path.relative_to(folder)) for path in folder.rglob("ran")]


@pytest.mark.parametrize("code", ["../own.py", "own.py"])
@pytest.mark.parametrize("name", NAMING)
def test_looking_at_a_scenario_loads_nothing(call, folder, name, code):
    """--show prints what it names; the page asks for --trust, before it listens."""
    write(folder, NAMING[name], code)
    code, shown, err = call("run", "their/s.toml", "--show")
    assert (0, "") == (code, err)
    assert "own.py:" in shown or ".toml" in shown
    pytest.importorskip("bokeh")
    code, out, err = call("inspect", "their/s.toml")
    assert (2, "") == (code, out)
    assert "own.py" in err
    assert "give --trust if you trust it" in err
    assert [] == ran(folder)


@pytest.mark.parametrize("name", NAMING)
def test_a_scenario_brings_its_own_folder_along(call, folder, name):
    """Run, it loads that, and nothing next to it; --trust loads it wherever it is."""
    write(folder, NAMING[name], "../own.py")
    code, out, err = call("run", "their/s.toml")
    assert (2, "") == (code, out)
    assert "read " in err
    assert "give --trust if you trust it" in err
    assert [] == ran(folder)
    call("run", "their/s.toml", "--trust")
    assert ["ran"] == ran(folder)
    if name in WORKING:
        write(folder, NAMING[name], "own.py")
        assert 0 == call("run", "their/s.toml", "--json")[0]
        assert ["ran", "their/ran"] == sorted(ran(folder))


@pytest.mark.parametrize("option", ["--show", "--methods", "--status --out sweep"])
def test_looking_at_a_sweep_loads_nothing(call, folder, option):
    """Its scenario and its axes name code, beside it and next to it."""
    (folder / "sweep").mkdir()
    for code in ("../own.py", "own.py", "own"):
        axes = f'[axes]\nscheduler = ["easy", "{code}:X"]\n'
        write(folder, f'{REPLAY}users = "{code}:U"\n{axes}', code)
        code, out, err = call("sweep", "their/s.toml", *option.split())
        assert (0, "") == (code, err)
        assert out
    assert [] == ran(folder)


def test_a_sweep_brings_its_own_folder_along(call, folder):
    """Workers load no more than it, and status says afterwards what was done."""
    axes = '[axes]\nscheduler = ["easy", "{}:X"]\n'
    write(folder, REPLAY + axes, "../own.py")
    line = "sweep their/s.toml --out out --executor inline"
    code, _, err = call(*line.split())
    assert (2, True) == (code, "--trust" in err)
    assert [] == ran(folder)
    write(folder, REPLAY + axes, "own.py")
    assert 0 == call(*line.split())[0]
    assert ["their/ran"] == ran(folder)
    assert "2 of 2 runs done" in call("sweep", "their/s.toml", "--out", "out", "--status")[1]


@pytest.mark.parametrize(
    ("line", "loads"),
    [
        ("replay log.swf --scheduler ../own.py:X", ["ran"]),
        ("replay log.swf --users ../own.py:U", ["ran"]),
        ("replay log.swf --users population.toml", []),
        ("replay log.swf --users population.toml --trust", ["ran"]),
        ("replay log.swf --platform platform.toml", []),
        ("grid grid.toml", []),
        ("grid grid.toml --trust", ["ran"]),
        pytest.param("validate log.swf --users population.toml", [], marks=pytest.mark.slow),
        ("events log.swf --users rigid,population.toml", []),
        ("calibrate population.toml log.swf --out c.json", []),
    ],
)
def test_what_a_person_types_is_loaded(call, folder, monkeypatch, line, loads):
    """Wherever it is; a file that is typed brings its own folder along, and no other."""
    write(folder, REPLAY, "../own.py")
    monkeypatch.chdir(folder / "their")
    code, out, err = call(*line.split())
    assert loads == ran(folder)
    assert (0 if loads else 2) == code
    assert loads or ("" == out and "--trust" in err)


def test_modules_are_code_as_well(call, folder, monkeypatch):
    """What is installed, and what is in the working folder, too; typed, they are loaded."""
    (folder / "hpcrowd_test_module.py").write_text(CODE)
    monkeypatch.syspath_prepend(folder)
    write(folder, NAMING["scheduler"], "hpcrowd_test_module")
    assert "read " in call("run", "their/s.toml")[2]
    for option in ("--show", "--show --trust", "--trust"):
        call("run", "their/s.toml", *option.split())
        assert (["ran"] if "--trust" in option else []) == ran(folder)
    (folder / "ran").unlink()
    (folder / "hpcrowd_test_typed.py").write_text(CODE)
    assert 0 == call("replay", "their/log.swf", "--scheduler", "hpcrowd_test_typed:X")[0]
    assert ["ran"] == ran(folder)


def poisoned(value, code):
    """Return the contents of a JSON file with code wherever it has a word."""
    if isinstance(value, dict):
        return {name: poisoned(one, code) for name, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one, code) for one in value]
    return f"{code}:X" if isinstance(value, str) else value


#: Commands that draw.
DRAWING = ("report run -o r.html", "compare run run --out c.html", "gantt run -o g.png")

#: Commands that read a folder of results, or a file that other commands wrote.
READING = [
    *(pytest.param(line, marks=pytest.mark.slow) for line in DRAWING), "compare run run",
    "explain run --user 1", "sessions run", "stats run", "clean run --flurries 10/h -o c.swf",
    "window run --from 0 -o w.swf", "convert run c.csv", "machine run",
    "fit feitelson96 run -o m.json", "judge feitelson96 run --seeds 1",
    "generate M.json --processors 8 --jobs 9 -o x.swf",
    "populate M.json --processors 8 --days 7", "predict run --model P.json",
    "replay run --users rigid", "replay their/log.swf --users learned:M.json",
    "replay their/log.swf --estimates P.json", "resample run --days 7 --warm-up 0d",
    "forecast run --futures 1 --hindcasts 0 --executor inline --days 1", "fetch --list",
    "forecast now.state.gz --futures 1 --hindcasts 0 --executor inline --days 1",
    "validate run --users rigid --origins 1", "events run", "calibrate their/s.toml run -o c.json",
    "run run/provenance.json", "grid run", "sweep run/provenance.json --show",
    "what-if run processors=2x --users rigid",
]  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with results, a state and models, as hpcrowd writes them."""
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.analysis.results import write_results

    place = tmp_path_factory.mktemp("written")
    (place / "log.swf").write_text(LOG)
    run = replay(read_swf(place / "log.swf"), log=DecisionLog())
    write_results(run, place / "run", plots=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for line in (
            "forecast log.swf --snapshot now.state.gz",
            "fit feitelson96 log.swf -o M.json",
            "predict log.swf --train --budget 1s --out P.json",
        ):
            assert 0 == CliRunner().invoke(app, line.split()).exit_code
    return place


@pytest.fixture
def strange(written, folder):
    """That folder with code of a stranger wherever a file has a word."""
    import gzip
    import shutil

    shutil.copytree(written, folder, dirs_exist_ok=True)
    for path in folder.rglob("*.json"):
        found = json.loads(path.read_text())
        if path.parent.name != "run":
            found = {**poisoned(found, folder / "own.py"), "format": found.get("format")}
        elif "configuration" in found:
            found["configuration"] = poisoned(found["configuration"], folder / "own.py")
            found["configuration"]["kind"] = "replay"
        path.write_text(json.dumps(found))
    state = folder / "now.state.gz"
    found = gzip.decompress(state.read_bytes()).replace(b'"easy"', b'"../own.py:X"')
    state.write_bytes(gzip.compress(found))
    write(folder, NAMING["scheduler"], "../own.py")
    return folder


@pytest.mark.parametrize("line", READING)
def test_results_states_and_models_bring_no_code(call, strange, line):
    """Whether it can be read or not, nothing is loaded, and a mistake is one line."""
    code, _, err = call(*shlex.split(line))
    assert code in (0, 2), err
    assert "Traceback" not in err
    assert [] == ran(strange)


def test_every_command_that_takes_files_is_tried():
    """With a file that names code; and the option is where code can be loaded."""
    lines = [*DRAWING, *(line for line in READING if isinstance(line, str))]
    tried = {line.split()[0] for line in lines} | {"inspect"}
    assert {*ABSENT} <= tried
    assert {*tried} <= {*ABSENT} | WITHOUT
    asks = {
        name
        for name in (*ABSENT, *WITHOUT)
        if any("--trust" in one.opts for one in CommandFiles()[name].params)
    }
    assert {*ASKS} == asks


def test_a_finished_run_is_played_back_without_its_code(strange, monkeypatch):
    """Every panel, reasons of jobs too, and futures, which say what is missing."""
    from hpcrowd.analysis.results import read_results
    from hpcrowd.environment.registry import Trust, trusting
    from hpcrowd.scenarios.inspector.panels.forecast import forecast
    from hpcrowd.scenarios.inspector.panels.registry import PANELS, panels_json
    from hpcrowd.scenarios.inspector.subjects.subject import subject_of
    from hpcrowd.views import recover_work

    assert recover_work(read_results(strange / "run")).work is None  # even in a script
    with trusting(Trust()):
        course = subject_of(strange / "run").begin({})
        course.advance(course.now + 6000)
        assert f"{strange}/own.py:X" == course.scheduler_name
        asked = {"panels": [*PANELS], "from": 0, "to": course.now, "user": 1, "job": 1, "most": 9}
        assert panels_json(course, asked)
        with pytest.raises(HpcrowdError, match="give --trust"):
            next(forecast(course, {"futures": 20, "days": 1, "jobs": []}))
    assert [] == ran(strange)


def test_the_page_loads_nothing_that_a_message_names(folder):
    """Settings, behaviours and panels, even where all code of files is trusted."""
    from hpcrowd.scenarios.inspector.panels.registry import saved_panel
    from hpcrowd.scenarios.inspector.subjects.course import apply_changes
    from hpcrowd.scenarios.inspector.subjects.subject import subject_of

    subject, evil = subject_of(folder / "their" / "log.swf"), f"{folder}/own.py:X"
    course = subject.begin({})
    course.advance(90_000)
    for name in (*(one.name for one in subject.controls), evil):
        with pytest.raises(HpcrowdError):
            subject.begin({name: evil})
    with pytest.raises(HpcrowdError, match="not known"):
        apply_changes(course, [{"user": 1, "kind": "behaviour", "value": evil}])
    for kind in ("csv", "png"):
        with pytest.raises(HpcrowdError):
            saved_panel(course, {"panel": evil, "kind": kind, "from": 0, "to": 1})
    assert [] == ran(folder)


@pytest.mark.slow
def test_inputs_of_a_killed_sweep_are_never_read(call, folder):
    """They hold pickles, which a stranger's folder could bring along: they are made again."""
    from hpcrowd.analysis.results import versions
    from hpcrowd.scenarios.kinds.files import scenario_of
    from hpcrowd.scenarios.sweeps.runs import _hash

    write(folder, f'{REPLAY}[axes]\nscheduler = ["easy", "fcfs"]\n', "")
    line = "sweep their/s.toml --out out --executor inline"
    assert 0 == call(*line.split())[0]
    (folder / "out" / "index.jsonl").unlink()
    for path in (folder / "out" / "runs").iterdir():
        path.unlink()
    (folder / "out" / "inputs").mkdir(exist_ok=True)
    values = {"kind": "replay", "trace": "log.swf", "scheduler": "easy"}
    sharing = scenario_of(values, folder / "their").sharing()
    key = _hash({"sharing": sharing, "versions": versions()})
    (folder / "out" / "inputs" / f"{key}.shared").write_bytes(b"\x08" + bytes(7) + b"no pickle")
    code, _, err = call(*line.split(), "--resume")
    assert (0, "") == (code, err)
    assert not (folder / "out" / "inputs").exists()
