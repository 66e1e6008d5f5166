"""Populations in TOML: what they mean, and a clear line for each mistake before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hpcrowd.agents import (
    PRESETS,
    ActivityWindow,
    ContinuationLaw,
    Fitted,
    LinearThink,
    Recipe,
    Shifts,
)
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.errors import QuantityError
from hpcrowd.scenarios.kinds.population_files import read_population
from hpcrowd.scenarios.kinds.replay import ReplayConfig

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], Any]:
    """Read a population from this text."""

    def reader(text: str) -> Any:
        path = tmp_path / "crowd.toml"
        path.write_text(text, encoding="utf-8")
        return read_population(path)

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
def test_what_an_entry_means(read: Callable[[str], Any], entry: str, expected: Recipe) -> None:
    """A preset, or parts by name, or a preset with other parts or other numbers."""
    assert expected == read(f"[[users]]\n{entry}").users[0].recipe()


def test_shares_and_names(read: Callable[[str], Any]) -> None:
    """Entries become the parts of a mixture; the file gives the name unless it is given."""
    text = '[[users]]\nshare = 1\n[[users]]\nbehaviour = "rigid"\nusers = [3]\ngroups = [1, 2]'
    population = read(text)
    parts = population.mixture().parts
    assert [(1.0, (), ()), (0.0, (1, 2), (3,))] == [
        (part.share, part.groups, part.users) for part in parts
    ]
    assert "crowd" == population.name
    assert "evening" == read('name = "evening"\n[[users]]').name


def test_a_single_entry_is_for_everybody(read: Callable[[str], Any]) -> None:
    """One entry that names nobody needs no share."""
    assert [1.0] == [part.share for part in read("[[users]]").mixture().parts]
    with pytest.raises(QuantityError, match=r"shares 0\.4 = 0\.4: must add up to 1"):
        read("[[users]]\nshare = 0.4")


def test_example_in_the_module_is_valid(read: Callable[[str], Any]) -> None:
    """The file that the module shows at its top can be read."""
    from hpcrowd.scenarios.kinds import population_files as population_config

    lines = str(population_config.__doc__).splitlines()
    example = "\n".join(line[4:] for line in lines if line.startswith("    "))
    assert example.startswith("[[users]]")
    assert 2 == len(read(example).users)


MISTAKES = {
    "shares": (
        "[[users]]\nshare = 0.7\n[[users]]\nshare = 0.2",
        "shares 0.7 + 0.2 = 0.9: must add up to 1",
    ),
    "share": ("[[users]]\nshare = 2", "users[0].share 2: "),
    "twice": ("[[users]]\nusers = [1]\n[[users]]\nusers = [1]", "users 1: named twice; keep one"),
    "hours": ('[[users]]\nhours = { opens = "8h", closes = "8h" }', "users[0]: window 28800 to"),
    "late": ('[[users]]\nhours = { opens = "8h", closes = "25h" }', "times of one day"),
    "days": (
        '[[users]]\nhours = { opens = 0, closes = "8h", days = [] }',
        "users[0]: window without days: never opens",
    ),
    "day": (
        '[[users]]\nhours = { opens = 0, closes = "8h", days = ["Monday"] }',
        "users[0].hours.days[0] 'Monday'",
    ),
    "no closing": ('[[users]]\nhours = { opens = "8h" }', "users[0].hours.closes: missing"),
    "night": (
        '[[users]]\nshifts = { opens = 0, closes = "24h" }',
        "users[0]: day from 0 to 86400 s: leaves no night",
    ),
    "shift": ("[[users]]\nshifts = { shift = -1 }", "users[0].shifts.shift -1"),
    "preset": ('[[users]]\nbehaviour = "fast"', "users[0]: behaviour 'fast': not known; choose"),
    "think": ('[[users]]\nthink = "slow"', "users[0]: think 'slow': not known; choose recorded"),
    "slope": ("[[users]]\nline = { slope = -1 }", "users[0].line.slope -1"),
    "intercept": ('[[users]]\nline = { intercept = "-5m" }', "users[0].line.intercept: duration"),
    "endless": ("[[users]]\nline = { slope = inf }", "users[0].line.slope inf"),
    "no number": ("[[users]]\nline = { slope = nan }", "users[0].line.slope nan"),
    "truth": ("[[users]]\nline = { cut = true }", "users[0].line.cut: a duration is seconds"),
    "limit": ("[[users]]\nlaw = { limit = 1.5 }", "users[0].law.limit 1.5"),
    "prior": ("[[users]]\nprior = 0", "users[0].prior 0"),
    "endless prior": ("[[users]]\nprior = inf", "users[0].prior inf"),
    "two thinks": ("[[users]]\nline = {}\nlaw = {}", "users[0]: line and law: both set think"),
    "two windows": (
        '[[users]]\nhours = { opens = 0, closes = "8h" }\nprior = 3',
        "users[0]: hours and prior: both set window; give only one",
    ),
    "contradiction": (
        '[[users]]\nthink = "own"\nline = {}',
        "users[0]: think 'own': line is for think 'linear'",
    ),
    "rigid": ('[[users]]\nbehaviour = "rigid"\nthink = "own"', "use no think time"),
    "second": (
        "[[users]]\nshare = 1\n[[users]]\nwaits = true",
        "users[1]: waits: without a window no user",
    ),
    "unknown": ('[[users]]\nbehavior = "fluid"', "users[0].behavior: no such setting"),
    "unknown inside": ("[[users]]\nlaw = { limt = 1 }", "users[0].law.limt: no such setting"),
    "unknown at the top": ("seed = 3\n[[users]]", "seed: no such setting"),
    "nobody": ("", "users: missing"),
    "none": ("users = []", "users []: "),
    "no list": ("users = 5", "users 5: "),
    "syntax": ("[[users]\n", "not TOML: "),
    "twice the same": ("[[users]]\nshare = 1\nshare = 1", "not TOML: "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_one_line_before_anything_runs(mistake: str, call: Call, tmp_path: Path) -> None:
    """The command says in one line which file, where, what, and stops with 2.

    Even the trace is not looked for: there is none.
    """
    text, expected = MISTAKES[mistake]
    path = tmp_path / "crowd.toml"
    path.write_text(text, encoding="utf-8")
    code, out, err = call("replay", tmp_path / "none.swf", "--users", path)
    assert (2, "") == (code, out)
    assert 1 == len(err.splitlines())
    assert err.startswith(f"hpcrowd: {path}: ")
    assert expected in err
    assert "Traceback" not in err


def test_file_that_cannot_be_read(call: Call, tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are not text are reported like mistakes in a file."""
    folder, binary = tmp_path / "folder.toml", tmp_path / "binary.toml"
    folder.mkdir()
    binary.write_bytes(b"\xff\xfe")
    for path, expected in (
        (tmp_path / "none.toml", "cannot be read: No such file"),
        (folder, "cannot be read: "),
        (binary, "not TOML: "),
    ):
        code, out, err = call("replay", tmp_path / "none.swf", "--users", path)
        assert (2, "", 1) == (code, out, len(err.splitlines()))
        assert f"{path}: {expected}" in err


def test_unknown_behaviour_on_the_command_line(call: Call, tmp_path: Path) -> None:
    """What is neither a preset nor a TOML file is reported with the presets."""
    code, out, err = call("replay", tmp_path / "none.swf", "--users", "crowd.yaml")
    assert (2, "", 1) == (code, out, len(err.splitlines()))
    assert "'crowd.yaml'" in err
    assert all(name in err for name in PRESETS)


def test_named_user_that_is_not_in_the_trace(call: Call, tmp_path: Path) -> None:
    """This can only be known with the trace; it is reported before the simulation."""
    trace, users = tmp_path / "tiny.swf", tmp_path / "crowd.toml"
    trace.write_text("; MaxProcs: 4\n1 0 0 10 1 -1 -1 1 10 -1 1 7 1 1 1 1 -1 -1\n")
    users.write_text("[[users]]\nshare = 1\n[[users]]\nusers = [8]\n")
    code, out, err = call("replay", trace, "--users", users, "--out", tmp_path / "out")
    assert (2, "") == (code, out)
    assert "user 8: named in the mixture, not in the trace" in err
    assert not (tmp_path / "out").exists()


def test_population_runs_and_is_reported(call: Call, tmp_path: Path) -> None:
    """A population from a file runs; the summary holds what it was."""
    import json

    trace, users = tmp_path / "tiny.swf", tmp_path / "evening.toml"
    trace.write_text(
        "; MaxProcs: 4\n"
        "1 0 0 10 1 -1 -1 1 10 -1 1 7 1 1 1 1 -1 -1\n"
        "2 600 0 10 1 -1 -1 1 10 -1 1 7 1 1 1 1 -1 -1\n"
    )
    users.write_text('[[users]]\nwhen = "batches"\nhours = { opens = "20h", closes = "23h" }\n')
    code, out, _ = call("replay", trace, "--users", users, "--json")
    summary = json.loads(out)
    assert (0, 2) == (code, summary["jobs_completed"])
    described = json.dumps(summary)
    assert "evening" in described
    assert "72000" in described
    config = ReplayConfig.configure(users=str(users))
    assert "evening" in config.label()
