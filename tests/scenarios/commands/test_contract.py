"""What holds for every command: help, wrong options, absent files, mistakes in one line."""

import gzip
import shlex
from typing import Any

import pytest
from hpcrowd.environment.simulation import Simulation
from hpcrowd.scenarios.cli import CommandFiles
from typer.testing import CliRunner

from tests.support.populations import small_log

COMMANDS = [*CommandFiles()]

#: Sixty jobs of three users in four days from 1 January 2004 on.
LOG = "; MaxProcs: 8\n; UnixStartTime: 1072911600\n; TimeZoneString: Europe/Stockholm\n" + "".join(
    f"{n} {n * 5400} 60 3600 {n % 4 + 1} -1 -1 {n % 4 + 1} 7200 -1 1 {n % 3 + 1} 1 1 1 -1 -1 -1\n"
    for n in range(60)
)

#: Every command that takes files, with what else it needs; the file does not exist.
ABSENT = {
    "replay": "replay none.swf", "resample": "resample none.swf", "grid": "grid none.toml",
    "forecast": "forecast none.swf", "run": "run none.toml", "sweep": "sweep none.toml",
    "inspect": "inspect none.swf", "report": "report none", "compare": "compare none run",
    "gantt": "gantt none.swf -o g.png", "explain": "explain none --user 1",
    "sessions": "sessions none.swf", "machine": "machine none.conf", "stats": "stats none.swf",
    "convert": "convert none.swf out.csv", "clean": "clean none.swf",
    "window": "window none.swf --from 0 -o out.swf", "fit": "fit lublin none.swf -o m.json",
    "generate": "generate none.json -o x.swf", "judge": "judge lublin none.swf",
    "populate": "populate none.json", "predict": "predict none.swf",
    "validate": "validate none.swf", "events": "events none.swf",
    "calibrate": "calibrate none.toml log.swf", "what-if": "what-if none.swf processors=2x",
}  # fmt: skip

#: Commands that take no file; fetch asks a server, and is tested with one.
WITHOUT = {"demo", "behaviours", "policies", "models", "reproduce", "fetch"}

#: Files that are not a trace; None is a folder.
BROKEN: dict[str, bytes | None] = {
    "empty.swf": b"",
    "prose.swf": b"It was a dark and stormy night.\n",
    "binary.swf": bytes(range(256)),
    "truncated.swf": gzip.compress(LOG.encode() * 50)[:200],
    "header.swf": b"; Version: 2.2\n",
    "short.swf": b"1 2 3\n",
    "folder.swf": None,
}

#: A calibration of one parameter.
FREE = "calibrate known.toml log.swf --free users.0.line.slope=0..1"

#: What cannot be done: the request, and words of the one line that says so.
MISTAKES = [
    ("forecast log.swf --machine site.toml --anonymise", "a machine knows users and accounts"),
    ("replay log.swf --machine site.toml --anonymise", "a machine knows users and accounts"),
    ("stats run --anonymise", "results have the names of their trace; run it with anonymise"),
    ("compare run log.swf --anonymise", "results have the names of their trace; run it with ano"),
    ("inspect run --anonymise", "is not a trace"),
    ("calibrate known.toml log.swf", "nothing is free; add a table [free], or give --free"),
    ("calibrate known.toml log.swf --free users.0.line.slope", "write NAME=LOW..HIGH"),
    ("calibrate known.toml log.swf --free users.0.line.slope=2..1", "must be less than the second"),
    ("calibrate known.toml log.swf --free users.0.line.slop=0..1", "slop: no such setting"),
    ("calibrate known.toml log.swf --free users.0.line.slope=-1..1", "must be 0 or more"),
    ("calibrate known.toml log.swf --free users.3.line.slope=0..1", "no such element; there are 1"),
    ("calibrate known.toml log.swf --free users.0.behaviour=0..1", "behaviour"),
    (f"{FREE} --compare thin,night,x", "compare 'x': not known"),
    (f"{FREE} --draws 5", "draws 5: must be from 40"),
    (f"{FREE} --check 9 --method smc", "tests the method regression"),
    ("clean log.swf -o out.swf", "no rule is given; choose --flurries"),
    ("clean log.swf --no-user -o .", "is a folder; -o names a file"),
    ("clean log.swf --no-user -o no/out.swf", "no folder no to write it in"),
    ("clean log.swf --flurries many", "flurries 'many': not jobs per time"),
    ("compare run", "two or more"),
    ("what-if log.swf 2x", "change '2x': not a setting with its value"),
    ("what-if log.swf procesors=2x", "not known; did you mean processors?"),
    ("what-if log.swf processors=2x --out .", "--out"),
    ("compare run nowhere", "nowhere: no such folder of results"),
    ("compare run both", "contains several runs"),
    ("compare run log.swf --out run", "--out run"),
    ("convert", "needs IN and OUT"),
    ("convert log.swf log.xyz", "--output-format"),
    ("convert log.swf log.csv --output-format excel", "'excel': not known"),
    ("convert log.swf a.txt --output-format table", "--map"),
    ("convert log.swf none/a.csv", "no folder none"),
    ("convert log.swf - --output-format csv --json", "name a file"),
    ("convert both x.csv", "no trace.swf.gz in it"),
    ("explain run --user 17", "nearest of 3 users: 1, 2, 3"),
    ("explain run --user 1 --from 2h --to 1h", "2h to 1h: is empty; --to has to come after"),
    ("explain both/bare --user 1", "no decisions.parquet in it; run it again with "),
    ("replay log.swf --log-decisions", "the log is part of the results; give --out FOLDER"),
    ("run run.toml --log-decisions", "--out"),
    ("fit feitelson97 log.swf -o .", "is a folder; --out names a file"),
    ("generate feitelson96 -o x.swf", "need the size of the machine, in processors"),
    ("generate feitelson96 --processors 8 -o x.swf", "include an amount; give --jobs or --days"),
    ("generate feitelson96 --processors 8 -o x.txt", "ends in .swf, .csv or .parquet"),
    ("judge feitelson96 log.swf --seeds 0", "seeds 0: must be 1"),
    ("populate feitelson96", "need the size of the machine"),
    ("inspect a b c", "3 runs: a page shows 2 at most"),
    ("inspect log.swf --host 203.0.113.7 --port 0", "port 0 on 203.0.113.7"),
    ("inspect none.toml", "none.toml: no such file; give a trace, a scenario"),
    ("inspect bad.toml", "none.swf"),
    ("inspect keyless.toml", "keyless.toml"),
    ("inspect both", "both: contains several runs"),
    ("predict log.swf --model history", "model 'history': has not been trained; add --train"),
    ("predict log.swf --model last-two --train", '--train trains the model "history"'),
    ("predict log.swf --out model.json", "only a trained model is written; add --train"),
    ("predict log.swf --train --out model.txt", "the name of a model has to end in .json"),
    ("predict log.swf --train --out none/m.json", "none is not a writable folder"),
    ("predict log.swf --split 200", "split '200': trains with 200 jobs of 60"),
    ("predict log.swf --years now", "years 'now'"),
    ("replay log.swf --users nobody", "users 'nobody': not known; choose rigid, think-time"),
    ("replay log.swf --scheduler magic", "scheduler 'magic': not known; choose fcfs, easy"),
    ("replay log.swf --scheduler ordr:by=submit", "not known; did you mean order? choose fcfs"),
    ("replay log.swf --processors 0", "processors '0': gives 0; at least 1"),
    ("replay log.swf --speed 2", "speed '2': not a positive multiple; write for example 2x"),
    ("replay log.swf --requested tsafrir:30m", "'tsafrir:30m': longest request 1800 s: must be"),
    ("replay log.swf --requested at-least", "'at-least': not known; choose given, or for example"),
    ("replay log.swf --job-processors some", "'some': not known; choose requested, allocated"),
    ("replay log.swf --seed -1", "seed -1: must be 0 or more"),
    ("replay odd.swf --strict", "no processors"),
    ("replay none.swf --users folder.toml", "folder.toml: cannot be read: "),
    ("replay none.swf --users binary.toml", "binary.toml: not TOML: "),
    ("replay none.swf --users crowd.yaml", "crowd.yaml': not known; choose rigid, think-time"),
    # replay and sessions of what is not a trace
    *((f"{command} {name}", name) for command in ("replay", "sessions") for name in BROKEN),
    ("replay log.swf --estimates history", "history: used before it was trained; name published"),
    ("replay log.swf --gantt a.txt", ".png, .svg, .pdf"),
    ("replay log.swf --gantt nowhere/a.png", "no folder nowhere"),
    ("replay log.swf --gantt folder.png", "folder.png is a folder"),
    ("replay log.swf --window 1..2", "--gantt FILE"),
    ("replay log.swf --gantt a.png --window 1..2..3", "FROM..TO"),
    ("replay log.swf --gantt a.png --window soon..2d", "1996-10-14 16:00"),
    ("replay log.swf --gantt a.png --window 2d..1d", "is empty"),
    ("report run/summary.json", "summary.json"),
    ("report run -o mine.html", "mine.html: exists, and nothing in it shows"),
    ("report run -o both", "both: is a folder; --out names a file"),
    ("report run --figures mine", "choose another --figures"),
    ("report sweep", "keeps the metrics of its runs but not what a report draws; see its summary"),
    ("report run --figures run", "--figures run"),
    ("resample log.swf --population 0x", "population '0x': not a positive multiple"),
    ("resample log.swf --population 0", "population '0': at least 1"),
    ("resample log.swf --users rigid --satisfaction alea", "alea: has no effect on rigid users"),
    ("resample log.swf --users mugm --satisfaction habit", "mugm users generate their work"),
    ("resample log.swf --users mugm --scheduler recorded", "no recorded waits of mugm users"),
    ("resample weeks.swf --warm-up 56d", "warm_up 56d: must be shorter than the run, 56 days, as"),
    ("resample log.swf --consequences leave", "cannot read 'leave'; write NAME=NUMBER"),
    ("resample log.swf --consequences away=0", "away 0: at least 1"),
    ("resample weeks.swf --pool least=50", "a pool of 12 users; at least 50 are needed"),
    ("sessions log.swf --user 99", "user 99: not in the trace; its 3 users"),
    ("sessions log.swf --dot -", "give --user"),
    ("sessions log.swf --user 1 --json --dot -", "give --dot a file"),
    ("sessions log.swf --sessions x", "sessions 'x': not known; write for example arrival:60m"),
    ("stats", "no trace given"),
    ("stats log.swf --distance", "--distance: 1 trace given; it compares two"),
    ("stats log.swf --out no/where.html", "no folder no to write it in"),
    ("stats log.swf run --distance --out x", "--out: no report is drawn with --distance"),
    ("validate log.swf --origins 0", "origins 0: shares of the submissions before each origin"),
    ("validate log.swf --origins half", "origins 'half': shares of"),
    ("validate log.swf --elsewhere", "elsewhere: there is one trace only"),
    ("validate log.swf --pauses none", "pauses 'none'"),
    ("sweep study.toml", "give a folder"),
    ("sweep study.toml --out absent --status", "no such folder"),
    ("window log.swf -o p.swf", "no part is given; choose one with --from, --to, --only-users or"),
    ("window log.swf --from 2d --to 1d -o p.swf", "empty; it must end after it begins"),
    ("window log.swf --only-users 7 -o p.swf", "user 7: has no job in log.swf"),
    ("window log.swf --only-states done -o p.swf", "'done': not known; choose comp"),
    ("window log.swf --only-processors 8-3 -o p.swf", "write 64, 1-64 or 128-"),
    ("window log.swf --only-queues gpu -o p.swf", "the log has no names of queues"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_trace):
    """Return a folder with logs, runs of one, a table, and files of somebody else."""
    from hpcrowd.analysis.results import write_results
    from hpcrowd.environment.traces.formats.swf import read_swf, write_swf

    place = tmp_path_factory.mktemp("commands")
    for name, text in {
        "log.swf": LOG,
        "mine.csv": "who,begin\nalice,2024-01-08 08:00:00\n",
        "mine.html": "<html>my own page</html>",
        "run.toml": '[scenario]\nkind = "replay"\ntrace = "log.swf"\n',
        "grid.toml": 'users = "rigid"\n[clusters.a]\nprocessors = 8\ntrace = "log.swf"\n',
        "odd.swf": f"{LOG}61 324000 0 9 0 -1 -1 0 9 -1 1 1 1 1 1 -1 -1 -1\n",
        "site.toml": '[[nodes]]\nname = "n[1-9]"\ncores = 64\n',
        "known.toml": '[[users]]\nbehaviour = "linear"\nline = { slope = 0.5 }\n',
        "study.toml": '[scenario]\nkind = "replay"\ntrace = "log.swf"\n[axes]\nseed = 2\n',
        "bad.toml": '[scenario]\nkind = "replay"\ntrace = "none.swf"\n',
        "keyless.toml": '[scenario]\nkind = "replay"\n',
        "mine/thesis.txt": "three years",
        "sweep/study.json": "{}",
        "folder.png/letter.txt": "dear",
        "folder.toml/letter.txt": "dear",
        "folder.swf/letter.txt": "dear",
    }.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    for name, content in {**BROKEN, "binary.toml": b"\xff\xfe"}.items():
        if content is not None:
            (place / name).write_bytes(content)
    write_swf(small_log(make_trace), place / "weeks.swf")
    from hpcrowd.agents.behaviours.decisions import DecisionLog
    from hpcrowd.scenarios.kinds.replay import replay

    (place / "both").mkdir()
    for name, log in (("run", DecisionLog()), ("both/bare", None), ("both/other", None)):
        run = replay(read_swf(place / "log.swf"), users="think-time", log=log)
        write_results(run, place / name, plots=False)
    return place


@pytest.fixture
def here(folder, monkeypatch):
    """Go to that folder, where nothing is simulated."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(Simulation, "run", lambda *_, **__: pytest.fail("simulated"))
    return folder


def refused(call, here, line):
    """Return the one line of a request that is refused with exit code 2; nothing is touched."""
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    code, out, err = call(*shlex.split(line))
    lines = [one for one in err.splitlines() if not one.startswith("Reading")]
    assert (2, "", 1) == (code, out, len(lines)), err
    assert lines[0].startswith("hpcrowd: ")
    assert before == {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    return lines[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_tells_every_option(call, monkeypatch, name):
    """It exits with 0, shows the use, what the command does, and each of its options."""
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = call(name, "--help")
    assert (0, "") == (code, err)
    assert f"hpcrowd {name}" in out
    command: Any = CommandFiles()[name]
    assert command.help.splitlines()[0] in " ".join(out.split())
    options = {one for parameter in command.params for one in parameter.opts if one[:2] == "--"}
    assert [] == [one for one in options if one not in out]


def test_help_of_all_lists_every_command(call):
    """Each has a line, without being loaded."""
    code, out, err = call("--help")
    assert (0, "") == (code, err)
    assert [] == [name for name in COMMANDS if name not in out]


@pytest.mark.parametrize("name", COMMANDS)
def test_option_that_is_not_there(call, name):
    """A wrong option ends with 2, its name and where help is; nothing is on standard output."""
    code, out, err = call(name, "--nonsense")
    assert (2, "") == (code, out)
    assert "No such option: --nonsense" in err
    assert f"hpcrowd {name} -h" in err


@pytest.mark.parametrize(
    ("word", "option"),
    [("--policy", "--scheduler"), ("--behaviour", "--users"), ("--policies", "--scheduler")],
)
def test_other_words_for_options(call, word, option):
    """What lists and other programs call them leads to the option."""
    code, out, err = call("replay", "none.swf", word, "easy")
    assert (2, "") == (code, out)
    assert f"No such option: {word}" in err
    assert option in err


def test_every_command_that_takes_files_is_tried():
    """With a file that is not there, below."""
    assert {*COMMANDS} == {*ABSENT} | WITHOUT


@pytest.mark.parametrize("name", ABSENT)
def test_file_that_is_not_there(call, here, name):
    """One line names it."""
    assert "none" in refused(call, here, ABSENT[name])


@pytest.mark.parametrize(("line", "words"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_mistakes_are_one_line(call, here, line, words):
    """What cannot be done is refused with value and cure before a file is written."""
    assert words in refused(call, here, line)


@pytest.mark.parametrize("name", ["reproduce", "nonsense"])
def test_commands_that_are_not_there(name):
    """A command, or a study, that does not exist is a wrong use: exit code 2."""
    from hpcrowd.scenarios.cli import app

    done = CliRunner().invoke(app, [name, "madon1999"])
    assert 2 == done.exit_code
    assert "No such command" in done.output
