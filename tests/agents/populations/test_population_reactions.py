"""Reactions and other clusters in the TOML file of a population."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hpcrowd.environment import QuantityError, State, Trace
from hpcrowd.scenarios import replay
from hpcrowd.scenarios.kinds.population_files import read_population

MakeTrace = Callable[..., Trace]

SWITCH = """
[[users]]
behaviour = "rigid"
reactions = [{ do = "switch", to = "backup", when = "recent-waits", wait = "10s", last = 1 }]

[clusters.backup]
processors = 2
speed = 2
"""


@pytest.fixture
def trace(make_trace: MakeTrace) -> Trace:
    """A user with four jobs on one processor, the second and fourth a while after an end."""
    times = ((0, 100), (10, 100), (1000, 100), (2000, 100))
    jobs = [
        {"submit": at, "wait": 0, "run": run, "requested_processors": 1, "requested_time": run}
        for at, run in times
    ]
    return make_trace(*(job | {"user": 1, "status": 1} for job in jobs), header="; MaxProcs: 1")


def test_users_switch_to_a_cluster_of_the_file(trace: Trace, tmp_path: Path) -> None:
    """After a wait of 90 s jobs go to the faster cluster; the second one's wait there is none."""
    path = tmp_path / "switch.toml"
    path.write_text(SWITCH)
    run = replay(trace, users=str(path), sessions="arrival:job")
    assert [0, 0, 1, 0] == run.jobs.cluster.tolist()
    assert [0, 100, 1000, 2000] == run.jobs.start.tolist()
    assert [100, 200, 1050, 2100] == run.jobs.end.tolist()
    assert 3 == run.processors
    assert "switch" == run.configuration["users"]["name"]


def test_provenance_is_enough_to_run_it_again(trace: Trace, tmp_path: Path) -> None:
    """The configuration of a run makes the same run; files it used are there with checksums."""
    (tmp_path / "price.csv").write_text("time,value\n0,1\n1500,9\n3000,9\n")
    path = tmp_path / "price.toml"
    path.write_text(
        "[[users]]\nbehaviour = 'adjusted'\nreactions = [{ do = 'renounce', when = 'signal', "
        "file = 'price.csv', above = 5 }]\n"
    )
    run = replay(trace, users=str(path))
    assert [State.COMPLETED] * 3 + [State.RENOUNCED] == run.jobs.state.tolist()
    assert {"price.csv": sha256((tmp_path / "price.csv").read_bytes()).hexdigest()} == (
        run.configuration["files_sha256"]
    )
    choices = {k: v for k, v in run.configuration.items() if k not in ("kind", "files_sha256")}
    choices["users"] = choices["users"] | {"folder": tmp_path}
    assert (run.jobs.matrix == replay(trace, **choices).jobs.matrix).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('reactions = [{ do = "switch", to = "x", when = "recent-waits", wait = "1h" }]',
         ["users[0]", "switch to 'x'", "home", "clusters"]),
        ('reactions = [{ do = "fly", when = "recent-waits", wait = "1h" }]',
         ["users[0]", "reactions[0]", "'fly'", "delay"]),
        ('reactions = [{ do = "delay", when = "signal", file = "no.csv", above = 3 }]',
         ["users[0]", "reactions[0]", "no.csv", "cannot be read"]),
        ("[clusters.b]\nprocessors = 0", ["clusters.b.processors", "0"]),
        ('[clusters.b]\nprocessors = 5\nscheduler = "x"', ["clusters.b.scheduler", "'x'", "easy"]),
        ("[clusters.home]\nprocessors = 5", ["clusters.home", "another name"]),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_place(text: str, words: list[str], tmp_path: Path) -> None:
    """A wrong reaction or cluster is reported in one line, before anything runs."""
    path = tmp_path / "p.toml"
    path.write_text(f"[[users]]\n{text}\n")
    with pytest.raises(QuantityError) as told:
        read_population(path)
    assert 1 == len(str(told.value).splitlines())
    assert [] == [word for word in ("p.toml", *words) if word not in str(told.value)]
