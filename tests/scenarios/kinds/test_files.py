"""Scenarios in TOML files of every kind, alone and in sweeps; mistakes told with their line."""

import inspect
import json
from importlib import import_module

import pandas as pd
import pytest
from hpcrowd import replay, write_swf
from hpcrowd.environment.files import line_of
from hpcrowd.environment.quantities import parse_duration
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.kinds.base import takes_settings
from hpcrowd.scenarios.kinds.fields import OF_DURATION
from hpcrowd.scenarios.kinds.files import KINDS, read_scenario, scenario_toml

from tests.scenarios.sweeps.sweep_cases import write_busy
from tests.support.populations import small_log


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a scenario file next to a busy log."""
    write_busy(tmp_path)

    def writer(text):
        path = tmp_path / "scenario.toml"
        path.write_text(text)
        return path

    return writer


BASE = '[scenario]\nkind = "replay"\ntrace = "busy.swf"\n'

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
    "text",
    [
        BASE, f"{BASE}processors = 8\n", BASE + PLATFORM,
        f'{BASE}[[scenario.users.users]]\nbehaviour = "fluid"\n', GRID, SHORT,
        GRID.replace("grid_share = 0.5", "grid_share = 1.0\ncomponents = 4"),
    ],
)  # fmt: skip
def test_completed_configuration_can_be_run_again(write, text, tmp_path, call):
    """What ``--show`` prints names every setting, and means the same when it is read again."""
    path = write(text)
    scenario = read_scenario(path)
    code, shown, err = call("run", path, "--show")
    assert (0, scenario_toml(scenario), "") == (code, shown, err)
    again = tmp_path / "elsewhere" / "completed.toml"
    again.parent.mkdir()
    again.write_text(shown)
    found = read_scenario(again)
    assert scenario.identity() == found.identity()
    names = set(type(scenario).model_fields) - {"folder"}
    assert names <= {line.lstrip("# ").split(":")[0] for line in shown.splitlines()}
    runs = [one.run(one.prepare()) for one in (scenario, found)]
    assert (runs[0].jobs.matrix == runs[1].jobs.matrix).all()
    assert "grid" not in text or runs[0].summary()["sites"]["grid"]["jobs"] > 0


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (BASE + 'speed = "fast"\n', 4, ["speed 'fast'", "for example 2x"]),
        (BASE + "folder = 'x'\n", 4, ["folder", "no such setting"]),
        (BASE + "platform = 'none.toml'\n", 4, ["none.toml", "cannot be read"]),
        ('[scenario]\nkind = "replay"\n', 1, ["trace", "missing"]),
        ('[scenario]\ntrace = "busy.swf"\n', 1, ["kind", "missing", "replay, populate"]),
        ('[scenario]\nkind = "populate"\nmodel = "lublin"\n', 1, ["processors"]),
        ('[scenario]\nkind = "populate"\nmodel = "lublin"\nmodel_processors = 8\ndays = 0\n',
         5, ["days 0"]),
        ("[scenario\n", 0, ["not TOML: ", "line 1"]),
        (GRID.replace("processors = 6", "processors = 0"), 9, ["clusters.south.processors 0"]),
        (GRID.replace("busy", "idle"), 1, ["idle.swf': no such file"]),
        (BASE.replace("replay", "resample") + "[scenario.pool]\nedge = 7", 4, ["pool: edge 7"]),
        (BASE.replace("replay", "resample") + "warm_up = 14", 4, ["14 s are not whole weeks"]),
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
    for name in ("scenario.toml", "p.toml", "busy.swf"):
        (moved / name).write_bytes((tmp_path / name).read_bytes())
    assert first == read_scenario(moved / "scenario.toml").identity()
    (moved / "p.toml").write_text(change.replace("5", "6"))
    assert first != read_scenario(moved / "scenario.toml").identity()


def test_run_says_what_replay_says(write, call, tmp_path):
    """``hpcrowd run`` and ``hpcrowd replay`` with the same settings give the same summary."""
    path = write(BASE + 'scheduler = "fcfs"\n')
    code, out, _ = call("run", path, "--json", "--out", tmp_path / "results")
    expected, replayed, _ = call("replay", tmp_path / "busy.swf", "--scheduler", "fcfs", "--json")
    assert (0, 0, json.loads(replayed)) == (code, expected, json.loads(out))
    assert (tmp_path / "results" / "jobs.parquet").exists()
    code, out, _ = call("run", path)
    assert (0, True) == (code, "250 jobs on 8 processors, think-time, fcfs" in out)
    code, out, err = call("run", write(BASE + "seed = 'x'"))
    assert (2, "", True) == (code, out, "line 4: seed 'x'" in err)


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


#: A file of each kind, and how it is used.
OF_KIND = {
    "a scenario": (BASE, "run {0}"),
    "a sweep": (BASE + '[axes]\nscheduler = ["easy"]\n', "sweep {0}"),
    "changes of the platform": ('[[changes]]\ndo = "down"\n', "replay LOG --platform {0}"),
    "a machine": ('[[nodes]]\nname = "n"\ncores = 4\n', "replay LOG --machine {0}"),
    "a description of power": ("[[nodes]]\nidle = 100\n", "replay LOG --power {0}"),
    "a population": ('[[users]]\nbehaviour = "fluid"\n', "replay LOG --users {0}"),
    "reactions": ("[[reactions]]\n", "resample LOG --reactions {0}"),
}


@pytest.mark.parametrize("wanted", OF_KIND)
@pytest.mark.parametrize("given", OF_KIND)
def test_files_of_another_kind(write, call, monkeypatch, given, wanted):
    """The message says what the file describes, and the command for it."""
    path = write(OF_KIND[given][0])
    monkeypatch.chdir(path.parent)
    use, cure = (OF_KIND[one][1].format("scenario.toml") for one in (wanted, given))
    if given != wanted and (given, wanted) != ("a scenario", "a sweep"):
        status, _, err = call(*use.replace("LOG", "busy.swf").split())
        assert 2 == status
        expected = f"scenario.toml: describes {given}, not {wanted}; use hpcrowd {cure}"
        assert f"hpcrowd: {expected}\n" == err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "replay"\n', "kind: put it, and what follows, under [scenario]"),
        (BASE.replace('"busy.swf"', "busy.swf"), '; text needs quotes: trace = "..."'),
    ],
)
def test_text_and_settings_in_their_places(write, text, words):
    """Settings without a table, and text without quotes."""
    with pytest.raises(QuantityError) as error:
        read_scenario(write(text))
    assert str(error.value).endswith(words)


@pytest.mark.parametrize("text", ['"1.5x"', '"+50%"', '"150%"', "1.5", "12"])
def test_sizes_are_read_alike_in_files_and_python(text, write):
    """A multiple of the machine in each spelling, or its size."""
    config = read_scenario(write(f"{BASE}processors = {text}\n"))
    assert 12 == config.size(config.read())
    assert 12 == replay(config.read(), processors=text.strip('"'), users="rigid").processors
