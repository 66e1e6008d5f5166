"""Grids from files: what users, traces and models make of them, and mistakes in one line."""

import json

import pandas as pd
import pytest
from hpcrowd import read_results, read_swf, replay
from hpcrowd.environment.grid.policies import GRID_POLICIES
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.kinds.grids.grid import GridConfig, read_grid, run_grid
from hpcrowd.scenarios.whatif import grid_or_isolated


def write_trace(path, users=6, jobs=60, size=4):
    """A trace of users who take turns every ten minutes."""
    lines = ["; MaxProcs: 8", "; UnixStartTime: 1704697200", "; TimeZoneString: Europe/Stockholm"]
    for k in range(jobs):
        run, wide = 900 + 60 * (k % 7), 1 + k % size
        job = (k + 1, 600 * k, 0, run, wide, -1, -1, wide, run, -1, 1, k % users, 1, *[-1] * 5)
        lines.append(" ".join(map(str, job)))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_grid(folder, text):
    """A grid file next to two traces."""
    write_trace(folder / "north.swf")
    write_trace(folder / "south.swf", users=4)
    path = folder / "two.toml"
    path.write_text(text)
    return path


TWO = """
users = "think-time"
[clusters.north]
processors = 8
trace = "north.swf"
grid_share = 0.5
[clusters.south]
processors = 4
speed = 2.0
trace = "south.swf"
"""

#: Users who switch to the grid.
REACTING = """
[[users]]
behaviour = "think-time"
reactions = [{ do = "switch", to = "grid", when = "recent-waits", wait = "1s" }]
"""


def test_a_grid_of_one_trace_is_its_replay(tmp_path):
    """Job for job, with a broker that no user uses."""
    path = write_grid(tmp_path, '[clusters.only]\nprocessors = 8\ntrace = "north.swf"')
    found = run_grid(read_grid(str(path), users="think-time"))
    alone = replay(read_swf(tmp_path / "north.swf"), users="think-time", processors="8")
    for name in ("submit", "enqueued", "start", "end", "state", "cluster"):
        assert getattr(alone.jobs, name).tolist() == getattr(found.jobs, name).tolist()
    assert alone.clock == found.clock


def test_users_submit_here_or_there(tmp_path):
    """Half of the north's users, by lot, go to the grid; the south's stay; all is accounted for."""
    found = run_grid(read_grid(str(write_grid(tmp_path, TWO))))
    jobs = found.jobs
    north, south, grid = found.parts["grid"].account.values()
    assert 120 == len(jobs) == north["jobs"] + south["jobs"]
    assert 0 < grid["jobs"] < 60
    assert grid["jobs"] == north["jobs_by_grid"] + south["jobs_by_grid"]
    assert 60 == south["jobs"] - south["jobs_by_grid"]
    # The nodes of the south are twice as fast, and its own jobs were measured there.
    theirs = jobs.user > 5
    assert {1} == set(jobs.cluster[theirs].tolist())
    assert set(range(900, 1261, 60)) == set((jobs.end - jobs.start)[theirs].tolist())
    sent = ~theirs & (jobs.cluster == 1)
    assert set(range(450, 631, 30)) >= set((jobs.end - jobs.start)[sent].tolist())
    assert grid["wait_s"] == pytest.approx(grid["wait_by_grid_s"])


def grid_jobs(folder, text):
    """Return how many jobs go to the grid."""
    return run_grid(read_grid(str(write_grid(folder, text)))).parts["grid"].account["grid"]["jobs"]


def test_who_uses_the_grid(tmp_path):
    """With share 0 nobody, with 1 all, else by lot; who has waited long may switch to it."""
    assert 0 == grid_jobs(tmp_path, TWO.replace("0.5", "0"))
    assert 60 == grid_jobs(tmp_path, TWO.replace("0.5", "1.0"))
    more = TWO.replace("[clusters.north]", "[clusters.west]\nprocessors = 2\n[clusters.north]")
    assert grid_jobs(tmp_path, TWO) == grid_jobs(tmp_path, more)
    text = TWO.replace("processors = 8", "processors = 4").replace("grid_share = 0.5", "")
    text = text.replace('users = "think-time"', 'sessions = "arrival:10m"')
    assert 0 < grid_jobs(tmp_path, text + REACTING) < 120
    assert 0 == grid_jobs(tmp_path, text + REACTING.replace('"1s"', '"100h"'))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "clusters: missing"),
        ("[clusters.a]\nprocessors = 8", "no user submits"),
        ('[clusters.grid]\nprocessors = 8\nmodel = "lublin"', "name of the broker"),
        (TWO + "load = 0.5", "load: is for a model"),
        (TWO + 'model = "lublin"', "trace and model: both are sources"),
        (TWO + 'scheduler = "recorded"', "does not count free processors"),
        (TWO + "grid_share = 2", "grid_share 2: "),
        ('broker = "best"' + TWO, "broker 'best': not known; choose first-fit"),
        (TWO.replace("think-time", "nice"), "users 'nice': not known; choose rigid"),
        ("components = 0" + TWO, "components 0: a component has 1 processor or more; leave it out"),
        ("components = 3" + TWO + 'estimates = "last-two"',
         "components 3: clusters.south.estimates 'last-two': learn from a queue"),
        (f"components = 3{TWO}".replace('users = "think-time"', "") + REACTING,
         "components 3: users[0].reactions: users react job by job"),
    ],
)  # fmt: skip
def test_mistakes_give_one_line(tmp_path, text, told):
    """With the file, the place in it and the rule."""
    with pytest.raises(QuantityError, match=r"two\.toml: ") as caught:
        read_grid(str(write_grid(tmp_path, text)))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_only_the_run_can_know(tmp_path):
    """Users who make up work, and a grid load where nothing is free."""
    with pytest.raises(QuantityError, match="users generative: generate their work"):
        run_grid(read_grid(str(write_grid(tmp_path, TWO)), users="generative"))
    full = '[clusters.a]\nprocessors = 1\ntrace = "north.swf"\n[grid]\nmodel = "lublin"\nload = 0.5'
    with pytest.raises(QuantityError, match="leave no processors free; lower theirs"):
        run_grid(read_grid(str(write_grid(tmp_path, full))))
    with pytest.raises(QuantityError, match="grid 'x': neither a file"):
        read_grid("x")


def test_the_command(tmp_path, call):
    """It prints a line for each site, or JSON; and leaves a folder of results."""
    path, out = write_grid(tmp_path, TWO), tmp_path / "out"
    code, text, _ = call("grid", path, "--out", out)
    assert (0, True) == (code, "north" in text)
    wire = json.loads(call("grid", path, "--grid-share", "0", "--json")[1])
    assert (0, 120) == (wire["sites"]["grid"]["jobs"], wire["jobs_completed"])
    written = json.loads((out / "provenance.json").read_text())["configuration"]
    assert {"north.swf", "south.swf"} == set(written.pop("files_sha256"))
    assert "grid" == written.pop("kind")
    assert read_grid(str(path)).model_dump() == GridConfig(**written).model_dump()


def test_wide_jobs_of_a_grid_file_are_split(tmp_path, call):
    """By the file or the command, which says how many; the folder says which."""
    source = write_grid(tmp_path, "components = 8\n" + TWO + '[grid]\ntrace = "wide.swf"\n')
    write_trace(tmp_path / "wide.swf", jobs=20, size=8)
    out = tmp_path / "out"
    code, text, _ = call("grid", source, "--components", "4", "--out", out)
    # Of 20 jobs 8 are wider than 4 processors, and two clusters hold two components.
    assert (0, True) == (code, "8 grid jobs of more than 4 processors split into 16 comp" in text)
    summary = json.loads((out / "summary.json").read_text())
    assert 120 + 20 + 8 == summary["jobs_completed"] == summary["jobs_in"]
    sites, grid = summary["sites"], summary["sites"]["grid"]
    assert (8, 16) == (grid["jobs_split"], grid["components"])
    assert grid["jobs"] + 8 == sum(sites[name]["jobs_by_grid"] for name in ("north", "south"))
    parts = pd.read_parquet(out / "components.parquet").merge(
        pd.read_parquet(out / "jobs.parquet"), on="number", suffixes=("_of_job", "")
    )
    assert (16, {5, 6, 7, 8}) == (len(parts), set(parts["processors_of_job"]))
    for _, job in parts.groupby("first"):
        assert job["processors_of_job"].iloc[0] == job["processors"].sum()
        assert 1 == job["start"].nunique() == job["end"].nunique()
        assert [0, 1] == sorted(job["cluster"])
    assert sites == dict(read_results(out).parts["grid"].account)
    text = call("grid", source, "--out", out, "--force")[1]
    assert "no job was split: all grid jobs that could run need at most 8 processors" in text
    assert not (out / "components.parquet").exists()
    with pytest.raises(QuantityError, match="components 2: a job of 5 processors, of user 4 of "):
        run_grid(read_grid(str(source), components=2))
    assert 2 == call("grid", source, "--components", "0")[0]


def test_pooled_clusters_are_between_apart_and_one(tmp_path, capsys):
    """Grids wait less than clusters apart, none less than one cluster; the script says so."""
    path = write_trace(tmp_path / "log.swf", users=12, jobs=200, size=2)
    path.write_text(path.read_text().replace("MaxProcs: 8", "MaxProcs: 7"))
    found, _ = grid_or_isolated.compare(read_swf(path))
    for arrangements in found.values():
        one = arrangements[grid_or_isolated.TOGETHER].wait_h
        apart = arrangements[grid_or_isolated.APART].wait_h
        for policy in GRID_POLICIES:
            assert one <= arrangements[policy].wait_h < apart
    assert 0 == grid_or_isolated.main([str(path)])
    assert "grid, worst-fit" in capsys.readouterr().out
    assert 2 == grid_or_isolated.main([])
    path.write_text(path.read_text().replace("MaxProcs: 7", "MaxProcs: 2"))
    assert 2 == grid_or_isolated.main([str(path)])
    assert "2 processors; 3 clusters need one each" in capsys.readouterr().err
