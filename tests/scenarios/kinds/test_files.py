"""Scenarios in TOML files of every kind, alone and in sweeps; mistakes told with their line."""

import inspect
import json
import tomllib
from importlib import import_module

import pandas as pd
import pytest
from hpcrowd import write_swf
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.environment.toml_files import line_of
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.kinds.base import takes_settings
from hpcrowd.scenarios.kinds.fields import OF_DURATION
from hpcrowd.scenarios.kinds.files import KINDS, read_scenario, scenario_toml

from tests.scenarios.sweeps.sweep_cases import write_busy
from tests.support.populations import small_log


@pytest.fixture
def write(tmp_path, make_trace):
    """Return a function that writes a scenario file next to a small trace."""
    jobs = [
        {"submit": 100 * place, "wait": 0, "run": 300, "allocated_processors": 2,
         "requested_time": 600, "status": 1, "user": place % 3}
        for place in range(30)
    ]  # fmt: skip
    write_swf(make_trace(*jobs, header="; MaxProcs: 4"), tmp_path / "log.swf")

    def writer(text):
        path = tmp_path / "scenario.toml"
        path.write_text(text)
        return path

    write_busy(tmp_path)
    return writer


BASE = '[scenario]\nkind = "replay"\ntrace = "log.swf"\n'

PLATFORM = """
[scenario.platform]
changes = [{do = "down", at = "10m", until = "1h", processors = 2}]
"""


GRID = """[scenario]
kind = "grid"
users = "think-time"
grid_share = 0.5
[scenario.clusters.north]
processors = 8
trace = "busy.swf"
[scenario.clusters.south]
processors = 6
speed = 1.5
"""

SHORT = '[scenario]\nkind = "grid"\nsource = "das3"\n' + "".join(
    f"[scenario.clusters.{name}]\ndays = 1\n" for name in ("VU", "LU", "UvA", "TUD", "UvAMN")
) + "[scenario.grid]\ndays = 1\n"  # fmt: skip


def test_places_and_dotted_names():
    """A key is in the line where its value begins; dotted names lead through tables and lists."""
    text = 'a = 1\n\n[b]\nlong = [\n  1,\n  2,\n]\n\n[[b.c]]\nd = """\n= 3\n"""\n[[b.c]]\nd.e = 4\n'
    expected = {("a",): 1, ("b",): 3, ("b", "long"): 4, ("b", "c", 0, "d"): 10,
                ("b", "c", 1, "d", "e"): 14, ("b", "c", 1, "missing"): 13,
                ("missing",): None}  # fmt: skip
    assert expected == {place: line_of(text, place) for place in expected}
    values = {"a": {"b": [{"c": 1}, {"c": 2}]}, "d": 3}
    changed = takes_settings(values, {"a.b.1.c": 5, "e.f": 6, "d": 4})
    assert {"a": {"b": [{"c": 1}, {"c": 5}]}, "d": 4, "e": {"f": 6}} == changed
    assert {"a": {"b": [{"c": 1}, {"c": 2}]}, "d": 3} == values
    with pytest.raises(QuantityError, match="no such element; there are 2"):
        takes_settings(values, {"a.b.2.c": 5})
    with pytest.raises(QuantityError, match="d is 3 and has no settings below it"):
        takes_settings(values, {"d.x": 5})


@pytest.mark.parametrize("kind", ["replay", "resample", "populate"])
def test_a_command_has_an_option_for_every_setting(kind):
    """The command of a kind takes what its files take, with the same defaults and meanings."""
    command = import_module(f"hpcrowd.scenarios.commands.simulate.{kind}").command
    options = inspect.signature(command).parameters
    settings = KINDS[kind].settings()
    assert settings
    for name, field in settings.items():
        if OF_DURATION in field.metadata:
            assert field.default == parse_duration(options[name].default)
        elif isinstance(field.default, str | int | float | bool):
            assert field.default == options[name].default
        assert str(field.description)[1:] in options[name].annotation.__metadata__[0].help


@pytest.mark.parametrize(
    "more", ["", "processors = 8\n", PLATFORM, '[[scenario.users.users]]\nbehaviour = "fluid"\n']
)
def test_completed_configuration_can_be_run_again(write, more, tmp_path, call):
    """What ``--show`` prints names every setting, and means the same when it is read again."""
    path = write(BASE + more)
    scenario = read_scenario(path)
    code, text, err = call("run", path, "--show")
    assert (0, scenario_toml(scenario), "") == (code, text, err)
    again = tmp_path / "elsewhere" / "completed.toml"
    again.parent.mkdir()
    again.write_text(text)
    found = read_scenario(again)
    assert scenario.completed() == found.completed()
    assert scenario.identity() == found.identity()
    names = set(type(scenario).model_fields) - {"folder"}
    assert names <= {line.lstrip("# ").split(":")[0] for line in text.splitlines()}
    runs = [one.run(one.prepare()) for one in (scenario, found)]
    assert (runs[0].jobs.matrix == runs[1].jobs.matrix).all()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (BASE + 'speed = "fast"\n', 4, ["speed 'fast'", "for example 2x"]),
        (BASE + "folder = 'x'\n", 4, ["folder", "no such setting"]),
        (BASE + "platform = 'none.toml'\n", 4, ["none.toml", "cannot be read"]),
        ('[scenario]\nkind = "replay"\n', 1, ["trace", "missing"]),
        ('[scenario]\ntrace = "log.swf"\n', 1, ["kind", "missing", "replay, populate"]),
        ('[scenario]\nkind = "populate"\nmodel = "lublin"\n', 1, ["processors"]),
        ('[scenario]\nkind = "populate"\nmodel = "lublin"\nmodel_processors = 8\ndays = 0\n',
         5, ["days 0"]),
        ("[scenario\n", 0, ["not TOML: ", "line 1"]),
        (GRID.replace("processors = 6", "processors = 0"), 9, ["clusters.south.processors 0"]),
        (GRID.replace('users = "think-time"', 'broker = "best"'), 3, ["broker 'best': not known"]),
        (GRID.replace("busy", "idle"), 1, ["idle.swf': no such file"]),
        (BASE.replace("replay", "resample") + "[scenario.pool]\nedge = 7", 4, ["pool: edge 7"]),
    ],
)  # fmt: skip
def test_mistakes_name_file_and_line(write, text, line, words):
    """A mistake is reported in one line with file, line, setting, value and rule."""
    path = write(text)
    with pytest.raises(QuantityError) as caught:
        read_scenario(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: " if line else f"{path}: ")
    assert [] == [word for word in words if word not in message]
    assert "\n" not in message


def test_identity_is_that_of_contents(write, tmp_path):
    """What decides about a run changes with what is in its files, not with where they are."""
    change = '[[changes]]\ndo = "resize"\nat = 5\nprocessors = 3\n'
    (tmp_path / "p.toml").write_text(change)
    first = read_scenario(write(BASE + "platform = 'p.toml'\n")).identity()
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("scenario.toml", "p.toml", "log.swf"):
        (moved / name).write_bytes((tmp_path / name).read_bytes())
    assert first == read_scenario(moved / "scenario.toml").identity()
    (moved / "p.toml").write_text(change.replace("5", "6"))
    assert first != read_scenario(moved / "scenario.toml").identity()


def test_run_says_what_replay_says(write, call, tmp_path):
    """``hpcrowd run`` and ``hpcrowd replay`` with the same settings give the same summary."""
    path = write(BASE + 'scheduler = "fcfs"\n')
    code, out, _ = call("run", path, "--json", "--out", tmp_path / "results")
    expected, replayed, _ = call("replay", tmp_path / "log.swf", "--scheduler", "fcfs", "--json")
    assert (0, 0, json.loads(replayed)) == (code, expected, json.loads(out))
    assert (tmp_path / "results" / "jobs.parquet").exists()
    code, out, _ = call("run", path)
    assert (0, True) == (code, "30 jobs on 4 processors, think-time, fcfs" in out)
    code, out, err = call("run", write(BASE + "seed = 'x'"))
    assert (2, "", True) == (code, out, "line 4: seed 'x'" in err)


def test_population_runs_from_a_file(tmp_path, call):
    """``kind = "populate"`` says what ``hpcrowd populate`` says, and sweeps like any other."""
    log, model = write_busy(tmp_path, jobs=400), tmp_path / "m.json"
    assert 0 == call("fit", "locality", log, "--arrivals", "poisson", "-o", model)[0]
    path = tmp_path / "population.toml"
    text = '[scenario]\nkind = "populate"\nmodel = "m.json"\ndays = 2\nprocessors = "2x"\n'
    path.write_text(text)
    code, out, _ = call("run", path, "--json")
    expected = call("populate", model, "--days", "2", "--processors", "2x", "--json")
    assert (0, json.loads(expected[1])) == (code, json.loads(out))
    scenario = read_scenario(path)
    again = tmp_path / "again.toml"
    again.write_text(scenario_toml(scenario))
    assert scenario.identity() == read_scenario(again).identity()
    path.write_text(text + "[axes]\nseed = 2\n")
    code, out, _ = call("sweep", path, "--out", tmp_path / "out", "--executor", "inline", "--json")
    assert (0, 2, 0) == (code, json.loads(out)["runs"], json.loads(out)["failed"])


@pytest.mark.parametrize(
    "text", [GRID, SHORT, GRID.replace("grid_share = 0.5", "grid_share = 1.0\ncomponents = 4")]
)
def test_a_grid_is_shown_complete_and_runs_again(write, tmp_path, text):
    """What is shown can be read from anywhere, says the same and has the same results."""
    first = read_scenario(write(text))
    shown = tmp_path / "elsewhere" / "shown.toml"
    shown.parent.mkdir()
    shown.write_text(scenario_toml(first))
    again = read_scenario(shown)
    assert first.identity() == again.identity()
    one, two = first.run(first.prepare()), again.run(again.prepare())
    assert one.jobs.matrix.tolist() == two.jobs.matrix.tolist()
    assert one.summary()["sites"]["grid"]["jobs"] > 0
    assert "think-time" in tomllib.loads(shown.read_text())["scenario"]["users"] or text is SHORT


def swept(folder, call, text):
    """Return the frame of a sweep, and its messages."""
    path, out = folder / "study.toml", folder / "out"
    path.write_text(text)
    code, told, _ = call("sweep", path, "--out", out, "--executor", "inline", "--json")
    assert 0 == code
    return pd.read_parquet(out / "frame.parquet"), json.loads(told)


def test_a_sweep_over_brokers_and_shares(tmp_path, call):
    """Settings of a grid are axes, also inside of clusters; sites are columns of the frame."""
    write_busy(tmp_path)
    metrics = ["wait_mean_s", "site.grid.wait_s", "site.south.utilization"]
    frame, told = swept(
        tmp_path,
        call,
        f'{GRID}[axes]\nbroker = ["first-fit", "least-loaded"]\ngrid_share = [0.0, 1.0]\n'
        f'"clusters.south.processors" = [6, 8]\n[result]\nmetrics = {metrics}\n',
    )
    assert 8 == len(frame) == (frame["state"] == "done").sum()
    apart = frame[frame["grid_share"] == 0]
    assert apart["site.grid.wait_s"].isna().all()
    assert 1 == apart["wait_mean_s"].nunique(), "nobody uses the broker, nor the south"
    mixed = frame[frame["grid_share"] == 1]
    assert (mixed["site.grid.jobs"] == mixed["jobs_completed"]).all()
    assert mixed["wait_mean_s"].max() < apart["wait_mean_s"].min()
    assert set(metrics) == {line["metric"] for line in told["summary"]}
    assert (tmp_path / "out" / "site.grid.wait_s.png").exists()


def test_a_sweep_of_populations(tmp_path, make_trace, call):
    """Seeds draw populations, paired between speeds; accounts of the population are columns."""
    write_swf(small_log(make_trace), tmp_path / "log.swf")
    frame, _ = swept(
        tmp_path,
        call,
        '[scenario]\nkind = "resample"\ntrace = "log.swf"\ndays = 42\nwarm_up = "7d"\n'
        "[scenario.consequences]\nelasticity = 0.25\n"
        '[axes]\nspeed = ["1x", "2x"]\nseed = 3\n'
        '[result]\nmetrics = ["population.throughput_jobs_per_week"]\n',
    )
    counts = frame.pivot(index="seed", columns="speed", values="population.users_arrived")
    assert (counts["1x"] == counts["2x"]).all(), "the same people, whatever the machine"
    assert counts["1x"].nunique() > 1
