"""Populations in TOML: what they mean, and a clear line for each mistake before anything runs."""

import json
from hashlib import sha256

import pytest
from hpcrowd import Recipe, State, replay
from hpcrowd.behaviours import PRESETS, ActivityWindow, ContinuationLaw, Fitted, LinearThink, Shifts
from hpcrowd.environment.clock import HOUR
from hpcrowd.scenarios.kinds import population_files
from hpcrowd.scenarios.kinds.population_files import PopulationConfig


@pytest.fixture
def read(tmp_path):
    """Read a population from this text."""

    def reader(text):
        path = tmp_path / "crowd.toml"
        path.write_text(text, encoding="utf-8")
        return PopulationConfig.read(path)

    return reader


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("", Recipe()),
        ('behaviour = "fluid"', PRESETS["fluid"]),
        ('behaviour = "adjusted"\nwindow = "fitted"', Recipe("batches", window="fitted")),
        ('when = "batches"\nthink = "own"\nwindow = "shifts"', Recipe("batches", "own", "shifts")),
        (
            'behaviour = "linear"\nline = { slope = 0.5, intercept = "30m" }',
            Recipe("batches", LinearThink(0.5, 1800)),
        ),
        ("line = { cut = 3600 }", Recipe(think=LinearThink(cut=3600))),
        (
            'behaviour = "distribution"\nlaw = { limit = 0.9 }',
            Recipe("batches", ContinuationLaw(0.9), "shifts", waits=True),
        ),
        (
            'hours = { opens = "22h", closes = "6h", days = ["Sat", "Sun"] }\nwaits = true',
            Recipe(window=ActivityWindow(22 * HOUR, 6 * HOUR, (5, 6)), waits=True),
        ),
        (
            'behaviour = "distribution"\nshifts = { opens = "9h", closes = "17h", shift = 0 }',
            Recipe("batches", "continuation", Shifts(9 * HOUR, 17 * HOUR, 0), waits=True),
        ),
        ("prior = 20", Recipe(window=Fitted(20.0))),
        ('behaviour = "fluid"\nwindow = "always"\nwaits = false', Recipe("batches", "own")),
    ],
)
def test_what_an_entry_means(read, entry, expected):
    """A preset, or parts by name, or a preset with other parts or other numbers."""
    assert expected == read(f"[[users]]\n{entry}").users[0].recipe()


def test_shares_and_names(read):
    """Entries become parts of a mixture, one alone needs no share; the file gives the name."""
    text = '[[users]]\nshare = 1\n[[users]]\nbehaviour = "rigid"\nusers = [3]\ngroups = [1, 2]'
    population = read(text)
    parts = population.mixture().parts
    assert [(1.0, (), ()), (0.0, (1, 2), (3,))] == [
        (part.share, part.groups, part.users) for part in parts
    ]
    assert "crowd" == population.name
    assert "evening" == read('name = "evening"\n[[users]]').name
    assert [1.0] == [part.share for part in read("[[users]]").mixture().parts]
    lines = str(population_files.__doc__).splitlines()
    example = "\n".join(line[4:] for line in lines if line.startswith("    "))
    assert example.startswith("[[users]]")
    assert 2 == len(read(example).users)


#: What is wrong, after a first line [[users]], and what is said of it.
MISTAKES = [
    ("share = 0.7\n[[users]]\nshare = 0.2", "shares 0.7 + 0.2 = 0.9: must add up to 1"),
    ("share = 2", "users[0].share 2: "),
    ("users = [1]\n[[users]]\nusers = [1]", "users 1: named twice; keep one"),
    ('hours = { opens = "8h", closes = "8h" }', "users[0]: window 28800 to"),
    ('hours = { opens = "8h", closes = "25h" }', "times of one day"),
    ('hours = { opens = "8h" }', "users[0].hours.closes: missing"),
    ('shifts = { opens = 0, closes = "24h" }', "users[0]: day from 0 to 86400 s: leaves no night"),
    ("shifts = { shift = -1 }", "users[0].shifts.shift -1"),
    ('behaviour = "fast"', "users[0]: behaviour 'fast': not known; choose"),
    ("line = { slope = -1 }", "users[0].line.slope -1"),
    ('line = { intercept = "-5m" }', "users[0].line.intercept: duration"),
    ("line = { cut = true }", "users[0].line.cut: a duration is a number of seconds"),
    ("law = { limit = 1.5 }", "users[0].law.limit 1.5"),
    ("prior = inf", "users[0].prior inf"),
    ("line = {}\nlaw = {}", "users[0]: line and law: both set think"),
    ('hours = { opens = 0, closes = "8h" }\nprior = 3', "users[0]: hours and prior: both set wind"),
    ('think = "own"\nline = {}', "users[0]: think 'own': line is for think 'linear'"),
    ("share = 1\n[[users]]\nwaits = true", "users[1]: waits: without a window no user"),
    ("law = { limt = 1 }", "users[0].law.limt: no such setting"),
    ("[seed]", "seed: no such setting"),
    ("share = 1\nshare = 1", "not TOML: "),
    ('reactions = [{ do = "switch", to = "x", when = "recent-waits", wait = "1h" }]',
     "users[0]: switch to 'x': no such cluster"),
    ('reactions = [{ do = "fly", when = "recent-waits", wait = "1h" }]',
     "users[0]: reactions[0]: do 'fly'"),
    ('reactions = [{ do = "delay", when = "signal", file = "no.csv", above = 3 }]',
     "no.csv: cannot be read"),
    ("[clusters.b]\nprocessors = 0", "clusters.b.processors 0"),
    ('[clusters.b]\nprocessors = 5\nscheduler = "x"', "clusters.b.scheduler: scheduler 'x'"),
    ("[clusters.home]\nprocessors = 5", "clusters.home: "),
]  # fmt: skip


#: The same of whole files.
NO_USERS = [("", "users: missing"), ("users = []", "users []: "), ("users = 5", "users 5: "),
            ("[[users]", "not TOML: ")]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"), [*((f"[[users]]\n{text}", told) for text, told in MISTAKES), *NO_USERS]
)
def test_mistake_is_one_line_before_anything_runs(text, expected, call, tmp_path):
    """The command says in one line which file, where, what, and stops with 2."""
    path = tmp_path / "crowd.toml"
    path.write_text(text)
    code, out, err = call("replay", tmp_path / "none.swf", "--users", path)
    assert (2, "", 1) == (code, out, len(err.splitlines()))
    assert err.startswith(f"hpcrowd: {path}: ")
    assert expected in err


#: Two jobs of user 7 on four processors.
TWO_JOBS = """; MaxProcs: 4
1 0 0 10 1 -1 -1 1 10 -1 1 7 1 1 1 1 -1 -1
2 600 0 10 1 -1 -1 1 10 -1 1 7 1 1 1 1 -1 -1
"""


def test_population_runs_and_is_reported(call, tmp_path):
    """A population from a file runs; the summary holds what it was."""
    trace, users = tmp_path / "tiny.swf", tmp_path / "evening.toml"
    trace.write_text(TWO_JOBS)
    users.write_text('[[users]]\nwhen = "batches"\nhours = { opens = "20h", closes = "23h" }\n')
    code, out, _ = call("replay", trace, "--users", users, "--json")
    assert (0, 2) == (code, json.loads(out)["jobs_completed"])
    assert "evening" in out
    users.write_text("[[users]]\nshare = 1\n[[users]]\nusers = [8]\n")
    code, out, err = call("replay", trace, "--users", users, "--out", tmp_path / "out")
    assert (2, "") == (code, out)
    assert "user 8: named in the mixture, not in the trace" in err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def trace(make_trace):
    """A user with four jobs on one processor, the second and fourth a while after an end."""
    jobs = [
        {"submit": at, "wait": 0, "run": 100, "requested_processors": 1, "requested_time": 100,
         "user": 1, "status": 1}
        for at in (0, 10, 1000, 2000)
    ]  # fmt: skip
    return make_trace(*jobs, header="; MaxProcs: 1")


def test_provenance_is_enough_to_run_it_again(trace, tmp_path):
    """The configuration of a run makes the same run; files it used are there with checksums."""
    price, path = tmp_path / "price.csv", tmp_path / "price.toml"
    price.write_text("time,value\n0,1\n1500,9\n3000,9\n")
    path.write_text(
        "[[users]]\nbehaviour = 'adjusted'\nreactions = [{ do = 'renounce', when = 'signal', "
        "file = 'price.csv', above = 5 }]\n"
    )
    run = replay(trace, users=str(path))
    assert [State.COMPLETED] * 3 + [State.RENOUNCED] == run.jobs.state.tolist()
    checksum = sha256(price.read_bytes()).hexdigest()
    assert {"price.csv": checksum} == run.configuration["files_sha256"]
    choices = {k: v for k, v in run.configuration.items() if k not in ("kind", "files_sha256")}
    choices["users"] = choices["users"] | {"folder": tmp_path}
    assert (run.jobs.matrix == replay(trace, **choices).jobs.matrix).all()
