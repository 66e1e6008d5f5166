"""How a trace is read, on every command, in TOML and in Python; what was dropped or assumed."""

import json
import tomllib
from pathlib import Path

import hpcrowd as hc
import pytest
from hpcrowd import read_recorded, read_results, read_trace, write_results, write_swf
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.kinds.files import read_scenario, scenario_of

from tests.support.populations import small_log
from tests.support.sacct import text

#: Your own table, and the mapping of its columns.
TABLE = "When;Who;Long;Wide\n0;ada;60;2\n90;bob;60;4\n200;ada;30;1\n"
MAPPING = """delimiter = ";"
[columns]
submit = "When"
user = "Who"
run = "Long"
allocated_processors = "Wide"
"""

#: Commands that read a trace, and the least that each needs besides.
READERS: dict[str, tuple[str, ...]] = {
    "replay": (),
    "stats": (),
    "sessions": (),
    "clean": (),
    "window": ("--from", "0", "-o", "part.swf"),
    "report": ("-o", "report.html"),
    "predict": (),
    "convert": ("out.swf",),
    "judge": ("--seeds", "2", "--workers", "1"),
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A file of Slurm in two queues, and a table, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    jobs = (("1", "ada", "high"), ("2", "bob", "low"), ("3", "ada", "low"))
    rows = [dict(zip(("JobID", "User", "QOS"), job, strict=True)) for job in jobs]
    Path("jobs.txt").write_bytes(text(*rows))
    Path("mine.txt").write_text(TABLE)
    Path("mine.toml").write_text(MAPPING)


@pytest.mark.parametrize("command", [one for one in READERS if one not in ("judge", "predict")])
def test_every_command_reads_a_table(call, command):
    """With a mapping, no conversion is needed first."""
    code, _, err = call(command, "mine.txt", *READERS[command], "--map", "mine.toml")
    assert (0, True) == (code, "hpcrowd:" not in err)


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(
    ("option", "words"),
    [(("--zone", "Mars"), "zone 'Mars': not known"),
     (("--queue", "qqs"), "queue 'qqs': not known; did you mean qos?"),
     (("--input-format", "slrum"), "format 'slrum': not known"),
     (("--map", "none.toml"), "none.toml")],
)  # fmt: skip
def test_every_command_refuses_the_same(call, command, option, words):
    """Each mistake is one line."""
    source = ("lublin",) if command == "judge" else ()
    code, _, err = call(command, *source, "jobs.txt", *READERS[command], *option)
    assert (2, 1, True) == (code, err.count("\n"), words in err)


def test_a_replay_knows_zone_and_queue(call):
    """They are in the provenance, and the times are no repair."""
    given = ("--zone", "Europe/Paris", "--queue", "qos")
    code, out, _ = call("replay", "jobs.txt", *given, "--out", "run")
    assert (0, False) == (code, "time zone" in out)
    configuration = json.loads(Path("run/provenance.json").read_text())["configuration"]
    assert ("Europe/Paris", "qos") == (configuration["zone"], configuration["queue"])
    names = Path("run/trace.names.csv").read_text()
    assert "queue,1,high\nqueue,2,low\n" in names
    page = call("report", "run", "-o", "run.html") and Path("run.html").read_text()
    assert "hpcrowd replay jobs.txt --users think-time --scheduler easy --zone Europe" in page


def test_files_have_the_same_settings():
    """Paths are relative to the file, and runs share a trace only if they read it alike."""
    Path("inside").mkdir()
    Path("inside/run.toml").write_text(
        '[scenario]\nkind = "replay"\ntrace = "../mine.txt"\nmap = "../mine.toml"'
    )
    scenario = read_scenario(Path("inside/run.toml"))
    scenario.check()
    run = scenario.run(scenario.prepare())
    assert ["ada", "bob"] == run.users()["name"].tolist()
    Path("run.toml").write_text('[scenario]\nkind = "replay"\ntrace = "jobs.txt"\n')
    before = read_scenario(Path("run.toml")).sharing()
    with Path("run.toml").open("a") as file:
        file.write('queue = "qos"\n')
    assert before != read_scenario(Path("run.toml")).sharing()


def test_python_takes_them_with_a_path():
    """A trace that has been read already cannot be read in another way."""
    run = hc.replay("jobs.txt", zone="Europe/Paris", queue="qos")
    assert ("Europe/Paris", "high") == (str(run.clock.zone), run.jobs.who(1, "queue"))
    assert "zone" not in run.label
    with pytest.raises(QuantityError, match="zone: the trace has been read already"):
        hc.replay(hc.read_trace("jobs.txt"), zone="Europe/Paris")


def test_clusters_of_a_grid_have_them():
    """Each trace has its own."""
    Path("grid.toml").write_text(
        '[scenario]\nkind = "grid"\n[scenario.clusters.A]\nprocessors = 64\n'
        'trace = "mine.txt"\nmap = "mine.toml"\n'
    )
    scenario = read_scenario(Path("grid.toml"))
    scenario.check()
    assert 3 == len(scenario.run(scenario.prepare()).jobs)


#: A log without machine size, start or zone; one job never ran, one has no requested time.
LOG = """; Version: 2.2
1 0 5 10 4 -1 -1 4 60 -1 1 1 1 -1 1 -1 -1 -1
2 1 5 10 3 -1 -1 3 -1 -1 1 2 1 -1 1 -1 -1 -1
3 2 5 -1 3 -1 -1 3 60 -1 0 2 1 -1 1 -1 -1 -1
"""

NEVER_RAN = "1 job dropped: no run time (never ran)"
NO_REQUEST = "1 job repaired: no requested time: the recorded run time used"
NO_SIZE = (
    "the trace does not give the size of the machine; 7 processors, the peak of its recorded use, "
    "is a lower bound; set it with --processors"
)
NO_CLOCK = "start not in the trace: its origin counts as Monday 00:00"

#: Settings of each kind, beside the trace, and the notes of each.
KINDS = {
    "replay": (
        'kind = "replay"\ntrace = "log.swf"', [NEVER_RAN, NO_REQUEST, NO_SIZE, NO_CLOCK]),
    "replay-sized": (
        'kind = "replay"\ntrace = "log.swf"\nprocessors = 9', [NEVER_RAN, NO_REQUEST, NO_CLOCK]),
    "recorded": (
        'kind = "replay"\ntrace = "log.swf"\nscheduler = "recorded"',
        [NEVER_RAN, NO_REQUEST, NO_SIZE, NO_CLOCK]),
    "grid": (
        'kind = "grid"\n[clusters.a]\nprocessors = 8\ntrace = "log.swf"',
        [NEVER_RAN, NO_REQUEST, NO_CLOCK]),
    "grid-made-up": (
        'kind = "grid"\n[clusters.a]\nprocessors = 8\nmodel = "lublin"\ndays = 1\nload = 0.2', []),
    "populate": ('kind = "populate"\nmodel = "lublin"\ndays = 1\nmodel_processors = 64', []),
    "resample": ('kind = "resample"\ntrace = "weeks.swf"\nusers = "rigid"', None),
    "resample-sized": (
        'kind = "resample"\ntrace = "weeks.swf"\nusers = "rigid"\nprocessors = 64', None),
}  # fmt: skip


@pytest.fixture
def folder(make_trace, tmp_path, monkeypatch):
    """The folder of the test, with the log and one of some weeks without machine size."""
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(LOG)
    weeks = small_log(make_trace)
    weeks.header.lines = [one for one in weeks.header.lines if b"MaxProcs" not in one]
    write_swf(weeks, Path("weeks.swf"))
    return tmp_path


def test_notes_of_a_trace(folder, make_trace):
    """Size and clock are assumed; drops, repairs and columns that are not read are counted."""
    trace = read_trace("log.swf")
    assert [NO_SIZE, NO_CLOCK] == trace.notes
    assert [NEVER_RAN, NO_REQUEST] == jobs_from_trace(trace).notes
    assert KINDS["replay"][1] == read_recorded("log.swf").notes
    header = "; MaxProcs: 4\n; UnixStartTime: 953852400\n; TimeZoneString: Europe/Stockholm"
    assert [] == make_trace({"submit": 0}, header=header).notes
    one = {"JobID": "1", "Colour": "red"}
    Path("jobs.txt").write_bytes(text(one, {"JobID": "2", "State": "RUNNING", "Colour": "red"}))
    assert [
        "1 job dropped: state RUNNING",
        "1 job repaired: no time zone given: times taken as UTC",
        "columns not read: Colour",
        NO_SIZE.replace("7 processors", "1 processor"),
        "time zone not in the trace: times are UTC",
    ] == read_trace("jobs.txt").notes


@pytest.mark.parametrize("kind", KINDS)
def test_notes_are_known_before_a_run_and_kept_in_its_folder(folder, kind):
    """The staged simulation, the run and the folder have the same lines."""
    setting, told = KINDS[kind]
    scenario = scenario_of(tomllib.loads(setting), folder)
    staged = scenario.stage(scenario.prepare())
    before = list(staged.notes)
    run = staged.run()
    write_results(run, folder / "run", plots=False)
    assert before == run.notes == read_results(folder / "run").notes
    if told is None:  # there are notes on users who are not in the pool
        assert (kind == "resample") == any("the peak of its recorded use" in one for one in before)
    else:
        assert told == before
