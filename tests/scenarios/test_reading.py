"""How a trace is read: zone, queue, mapping and format on every command, in TOML and in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import hpcrowd as hc
import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.kinds.files import read_scenario

from tests.support.sacct import text

Call = Callable[..., tuple[int, str, str]]

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
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of Slurm in two queues, and a table, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    jobs = (("1", "ada", "high"), ("2", "bob", "low"), ("3", "ada", "low"))
    rows = [dict(zip(("JobID", "User", "QOS"), job, strict=True)) for job in jobs]
    Path("jobs.txt").write_bytes(text(*rows))
    Path("mine.txt").write_text(TABLE)
    Path("mine.toml").write_text(MAPPING)


@pytest.mark.parametrize("command", [one for one in READERS if one not in ("judge", "predict")])
def test_every_command_reads_a_table(call: Call, command: str) -> None:
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
def test_every_command_refuses_the_same(
    call: Call, command: str, option: tuple[str, str], words: str
) -> None:
    """Each mistake is one line."""
    source = ("lublin",) if command == "judge" else ()
    code, _, err = call(command, *source, "jobs.txt", *READERS[command], *option)
    assert (2, 1, True) == (code, err.count("\n"), words in err)


def test_a_replay_knows_zone_and_queue(call: Call) -> None:
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


def test_files_have_the_same_settings() -> None:
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


def test_python_takes_them_with_a_path() -> None:
    """A trace that has been read already cannot be read in another way."""
    run = hc.replay("jobs.txt", zone="Europe/Paris", queue="qos")
    assert ("Europe/Paris", "high") == (str(run.clock.zone), run.jobs.who(1, "queue"))
    assert "zone" not in run.label
    with pytest.raises(QuantityError, match="zone: the trace has been read already"):
        hc.replay(hc.read_trace("jobs.txt"), zone="Europe/Paris")


@pytest.mark.parametrize("trace", ["jobs.txt", 'mine.txt"\nmap = "mine.toml'])
def test_clusters_of_a_grid_have_them(trace: str) -> None:
    """Each trace has its own."""
    Path("grid.toml").write_text(
        f'[scenario]\nkind = "grid"\n[scenario.clusters.A]\nprocessors = 64\ntrace = "{trace}"\n'
    )
    scenario = read_scenario(Path("grid.toml"))
    scenario.check()
    assert 3 == len(scenario.run(scenario.prepare()).jobs)
