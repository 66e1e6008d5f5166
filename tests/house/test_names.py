"""Users, groups and queues by name: where people ask for them, and where they see them."""

import json
from pathlib import Path
from types import SimpleNamespace

import hpcrowd as hc
import numpy as np
import pytest
from hpcrowd.analysis.pictures.gantt import looks_of
from hpcrowd.analysis.pictures.waits import users_data
from hpcrowd.analysis.results import read_results, write_results
from hpcrowd.analysis.views.load import queue_picture, queue_table
from hpcrowd.analysis.views.moment import Moment
from hpcrowd.analysis.views.users import users_picture, users_table
from hpcrowd.environment.errors import QuantityError, ResultsError, TraceError
from hpcrowd.environment.jobs import JobTable, join, number_of, numbers_of
from hpcrowd.environment.schedulers.held import Held, Limit
from hpcrowd.environment.simulation import Simulation
from hpcrowd.environment.traces.formats.common.names import parse_names
from hpcrowd.environment.traces.formats.tables.columns import parse_csv
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.scenarios.inspector.panels.overview import about
from hpcrowd.scenarios.inspector.panels.registry import panels_json
from hpcrowd.scenarios.inspector.subjects.subject import subject_of

#: Three users of two accounts and two queues, on four processors.
LOG = """submit,run_time,processors,requested_time,status,user_name,group_name,queue_name
0,3600,4,3600,1,ada,physics,gpu
60,600,2,1200,1,bob,chemistry,batch
120,600,2,1200,0,eve,physics,batch
7200,900,1,1800,1,ada,physics,gpu
7260,900,4,1800,5,bob,chemistry,batch
"""

NAMES = {"user": {1: "ada", 2: "bob", 3: "20-30", 7: "3"}}


@pytest.fixture
def log():
    """The log as a trace."""
    return parse_csv(LOG)


@pytest.fixture
def file(workshop):
    """The log as a file in the folder of the test."""
    (workshop / "log.csv").write_text(LOG)
    return "log.csv"


@pytest.mark.parametrize(
    ("who", "number"),
    [("ada", 1), (" bob ", 2), (2, 2), ("2", 2), ("99", 99), ("20-30", 3), ("3", 7), ("-1", -1)],
)
def test_a_name_or_a_number(who, number):
    """Names come first, so that a user who is called 3 can be asked for; numbers go as before."""
    assert number == number_of(NAMES, "user", who)


@pytest.mark.parametrize(
    ("names", "who", "words"),
    [
        (NAMES, "adda", "user 'adda': not known; did you mean ada"),
        ({}, "ada", "the log has no names of users; give a number"),
        ({"user": {1: "ada", 5: "ada"}}, "ada", "several have this name.* 1, 5"),
        ({"user": {n: f"u{n}" for n in range(99)}}, "u123", "99 names in the log; did you mean"),
    ],
)
def test_unknown_names(names, who, words):
    """The message has the nearest name, or the cure, and never a list of thousands."""
    with pytest.raises(QuantityError, match=words) as error:
        number_of(names, "user", who)
    assert len(str(error.value)) < 200


def test_lists_of_names_and_numbers():
    """Commas separate them; a range holds both its ends, unless a user is called like that."""
    assert [1, 17, 3, range(20, 32)] == numbers_of(NAMES, "user", "ada, 17,20-30,20-31")
    with pytest.raises(QuantityError, match="a range goes upwards"):
        numbers_of({}, "user", "5-3")


def test_jobs_know_the_names(log):
    """Frames of a run have them, and a part of the table too."""
    run = hc.replay(log, users="rigid")
    assert ["ada", "bob", "eve"] == run.users()["name"].tolist()
    assert ["gpu", "batch", "batch", "gpu", "batch"] == run.to_frame()["queue_name"].tolist()
    assert "ada" == run.jobs.take(np.array([3])).who(1) == run.jobs.copy().who(1)
    assert "17" == run.jobs.who(17)
    assert log.names == run.to_trace().names
    part, _ = hc.window(log, only_users="ada")
    assert ({1: "ada"}, {1: "physics"}) == (part.names["user"], part.names["group"])


def test_joined_tables_keep_apart_who_has_the_same_name(log):
    """Users of another site are others; queues are the same."""
    found = join([hc.replay(log).jobs, JobTable(0), hc.replay(log).jobs])
    words = sorted({found.jobs.who(number) for number in found.jobs.user.tolist()})
    assert ["ada", "ada (3)", "bob", "bob (3)", "eve", "eve (3)"] == words
    assert {1: "gpu", 2: "batch"} == found.jobs.names["queue"]


def test_pictures_and_tables_show_names(log):
    """The legend of a Gantt chart, the tables of users and of the queue, with their pictures."""
    run = hc.replay(log, users="rigid")
    labels = [look.label for look in looks_of(run.jobs, "queue").looks if look.label]
    assert ["queue gpu", "queue batch"] == labels
    assert ["ada", "bob", "eve"] == sorted(users_data(run)["user_name"])
    moment = Moment.of_run(hc.replay(log, users="rigid", processors=4), 200)
    assert ["ada", "bob", "eve"] == users_table(moment)["user_name"].tolist()
    assert ["bob", "eve"] == queue_table(moment)["user_name"].tolist()
    for figure in (users_picture(moment), queue_picture(moment)):
        assert any("bob" in text.get_text() for text in figure.texts)


def test_the_page_has_names(file):
    """The page is given the names of users, and of the queues of waiting and running jobs."""
    course = subject_of(Path(file)).begin({"processors": "4"})
    assert ["ada", "bob", "eve"] == [*about(course)["names"].values()]
    course.advance(130)
    shown = {"panels": ["queue", "gantt"], "from": 0, "to": 130}
    found = json.loads(panels_json(course, shown))
    assert ["batch", "batch"] == [row["queue"] for row in found["queue"]["rows"]]
    assert ["gpu"] == [*found["gantt"]["queues"].values()]


def test_results_keep_names(log, tmp_path):
    """They are read back; a damaged file is one line, and a folder without one has numbers."""
    run = hc.replay(log, users="fluid")
    write_results(run, tmp_path / "run", plots=False)
    assert log.names == read_results(tmp_path / "run").jobs.names
    names = tmp_path / "run" / "trace.names.csv"
    names.write_text("field,number,name\nuser,one,ada\n")
    with pytest.raises(ResultsError, match=r"names\.csv, line 2: 'user,one,ada' is not field"):
        read_results(tmp_path / "run")
    names.unlink()
    assert "1" == read_results(tmp_path / "run").jobs.who(1)
    with pytest.raises(TraceError, match="line 2"):
        parse_names("field,number,name\nuser\n")


def test_commands_take_names(call, file):
    """explain and sessions; a wrong name gets the nearest one."""
    assert 0 == call("replay", file, "--users", "fluid", "--log-decisions", "--out", "run")[0]
    by_name, by_number = (call("explain", "run", "--user", who) for who in ("ada", "1"))
    assert (0, by_number) == (by_name[0], by_name)
    assert "3 decisions of user ada" in by_name[1]
    assert '"user_name": "ada"' in call("explain", "run", "--user", "ada", "--json")[1]
    code, _, err = call("explain", "run", "--user", "bbo")
    assert (2, True) == (code, "did you mean bob?" in err)
    code, out, _ = call("sessions", file, "--user", "bob", "--dot", "-")
    assert (0, True) == (code, out.startswith('digraph "user bob"'))
    code, out, _ = call("report", "run", "--out", "run.html")
    assert (0, True) == (code, ">ada<" in Path("run.html").read_text())
    assert 0 == call("convert", "run", "again.csv")[0]
    assert ",ada,physics,gpu" in Path("again.csv").read_text().replace(",1", "")


def test_populations_take_names(call, file):
    """Entries name users and groups; a name that is not in the log is one line."""
    text = '[[users]]\nbehaviour = "fluid"\ngroups = ["physics"]\n[[users]]\nusers = ["bob"]\n'
    Path("mixed.toml").write_text(text)
    assert 0 == call("replay", file, "--users", "mixed.toml", "--out", "run")[0]
    run = read_results("run")
    assert ["fluid", "entry 2", "fluid"] == [
        one
        for _, one in sorted(zip(*(users_data(run)[k] for k in ("user", "behaviour")), strict=True))
    ]
    Path("mixed.toml").write_text(text.replace("bob", "bbo"))
    code, _, err = call("replay", file, "--users", "mixed.toml")
    assert (2, True) == (code, "did you mean bob?" in err)


@pytest.mark.parametrize(
    ("by_name", "by_number"),
    [
        ("fair-share:shares=ada:3+bob:0.5", "fair-share:shares=1:3+2:0.5"),
        ("fair-share:by=group,shares=chemistry:9", "fair-share:by=group,shares=2:9"),
        ("multi-queue:priorities=batch:5", "multi-queue:priorities=2:5"),
        ("multi-queue:file=names.toml", "multi-queue:file=numbers.toml"),
        ("adaptive:underload-positive=multi-queue:priorities=batch:5", "adaptive:underload-positive"
         "=multi-queue:priorities=2:5"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("plain", [True, False])
def test_policies_take_names(log, file, by_name, by_number, plain):
    """They mean the same as the numbers, in both engines."""
    for name, queue in (("names", '"gpu", "batch"'), ("numbers", "1, 2")):
        Path(f"{name}.toml").write_text(f"[[queues]]\nqueues = [{queue}]\nuser-jobs = 1\n")
    found = []
    for text in (by_name, by_number):
        jobs = jobs_from_trace(log).jobs
        model = Simulation(jobs, 4, text, plain=plain)
        model.cluster.submit(np.arange(len(jobs)), jobs.recorded_submit)
        model.run()
        found.append(jobs.start.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("scheduler", "words"),
    [
        ("fair-share:shares=adda:2", "user 'adda': not known; did you mean ada?"),
        ("fair-share:shares=ada:2+1:3", "shares: user 1 is named twice; keep one"),
        ("multi-queue:priorities=gp:2", "queue 'gp': not known; did you mean gpu?"),
        ("adaptive:overload-negative=multi-queue:priorities=gp:2", "did you mean gpu?"),
    ],
)
def test_policies_with_unknown_names(call, file, scheduler, words):
    """It is an error before the run begins, in one line with the scheduler."""
    code, _, err = call("replay", file, "--scheduler", scheduler)
    assert (2, 1, True) == (code, err.count("\n"), words in err)
    assert "scheduler '" in err


def test_limits_have_names():
    """Why a job waits says whose limit it is."""
    limit = Limit(jobs=1)
    jobs = [SimpleNamespace(user=1, queue=queue, processors=1) for queue in (4, 4)]
    held = Held(lambda user, queue: ((("user", user, "queue", queue), limit),), jobs[:1], NAMES)
    assert "user ada in queue 4 is at its limit of 1 job at once" == held.limit_of(jobs[1])
