"""Minh 2012, chapter 6, is run again: workloads, the study at a small size, ending and going on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hpcrowd.environment.errors import HpcrowdError, QuantityError
from hpcrowd.scenarios.cli import main
from hpcrowd.scenarios.studies.minh2012_arrivals.experiments import QUICK, Plan, Task, Work
from hpcrowd.scenarios.studies.minh2012_arrivals.figures import FIGURES
from hpcrowd.scenarios.studies.minh2012_arrivals.measures import MEASURES
from hpcrowd.scenarios.studies.minh2012_arrivals.study import (
    Minh2012Arrivals,
    reproduce_minh2012_arrivals,
    whole_plan,
)
from hpcrowd.scenarios.studies.minh2012_arrivals.workloads import stored_arrivals
from hpcrowd.scenarios.studies.running import run_study
from hpcrowd.scenarios.unfinished import ENDING, Interrupted, Unfinished
from matplotlib.figure import Figure

from tests.scenarios.studies.study_cases import rows_of_folder, shown

#: A plan that takes a second.
SMALL = Plan(cluster_replications=3, grid_replications=2, jobs=2_000, loads=(0.5, 0.9),
             grid_loads=(0.4, 0.8))  # fmt: skip

#: Its tasks.
TASKS = 3 * 3 + 2 * 2

#: The same on the command line.
WORDS = ["--seeds", "3", "--grid-seeds", "2", "--jobs", "2000", "--loads", "0.5,0.9",
         "--grid-loads", "0.4,0.8", "--workers", "1"]  # fmt: skip


@pytest.fixture(scope="module")
def small() -> Minh2012Arrivals:
    """Return the study at a small size."""
    return reproduce_minh2012_arrivals(plan=SMALL, workers=1)


# ---- the study at a small size ---------------------------------------------------------------


def test_everything_is_run(small: Minh2012Arrivals) -> None:
    """Every policy, load, pattern and replication has a slowdown of at least 1."""
    assert (3, 2, 3, 3) == small.cluster.slowdown.shape
    assert (len(MEASURES), 2, 3, 3, 2) == small.grid.slowdown.shape
    for slowdown in (small.cluster.slowdown, small.grid.slowdown):
        assert slowdown.min() >= 1
    work = Work(SMALL, stored_arrivals())
    again = np.array(work(Task("grid", 1, 1)))
    assert (small.grid.slowdown[:, 1, :, :, 1] == again).all()
    again = np.array(work(Task("cluster", 2, 1)))
    assert (small.cluster.slowdown[:, :, 2, 1] == again).all()


@pytest.mark.slow
def test_processes_do_not_change_anything(small: Minh2012Arrivals) -> None:
    """Two processes give what one does, to the bit; another seed does not."""
    again = reproduce_minh2012_arrivals(plan=SMALL, workers=2)
    assert small.stored() == again.stored()
    other = Plan(**{**vars(SMALL), "seed": 1, "cluster_replications": 2})
    different = Work(other, stored_arrivals())(Task("cluster", 1, 0))
    assert (small.cluster.slowdown[:, :, 1, 0] != np.array(different)).any()


def test_data_are_read_back(small: Minh2012Arrivals) -> None:
    """What is written as plain data gives the same study, and the same parts of the page."""
    back = Minh2012Arrivals.of_stored(json.loads(json.dumps(small.to_json(), allow_nan=False)))
    assert small.stored() == back.stored()
    assert small.page_parts() == back.page_parts()
    rounded = Minh2012Arrivals.of_stored(small.stored(4))
    assert np.allclose(small.grid.slowdown, rounded.grid.slowdown, rtol=1e-3)
    assert (small.grid.slowdown != rounded.grid.slowdown).any()


def test_tables_are_shown(small: Minh2012Arrivals) -> None:
    """The terminal shows tables and statements, within its width, with nothing cut off."""
    text = shown(small)
    for words in ("Slowdown on a single cluster", "Slowdown of grid jobs", "required orders"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 100
    statements = small.to_json()["statements"]
    assert len(statements) == len(re.findall(r": (holds|does not hold|open): ", text))


def test_figures_are_drawn(small: Minh2012Arrivals) -> None:
    """Each figure has panels with something in them, and leaves pyplot alone."""
    before = plt.get_fignums()
    for draw in FIGURES.values():
        figure = draw(small)
        assert isinstance(figure, Figure)
        assert all(panel.has_data() for panel in figure.axes)
        assert figure.axes[-1].get_xlabel()
    assert before == plt.get_fignums()
    bars = [bar for container in figure.axes[1].containers for bar in container]
    assert 2 * 3 * 3 == len(bars)
    means = small.grid.slowdown[MEASURES.index("grid")].mean(axis=-1)
    tops = sorted(bar.get_y() + bar.get_height() for bar in bars)
    assert np.allclose(np.sort(means.ravel()), tops)


def test_folder_holds_everything(small: Minh2012Arrivals, tmp_path: Path) -> None:
    """Data, every slowdown in a table, pictures and a page that shows them."""
    rows = rows_of_folder(small, tmp_path)
    pictures = {path.name for path in (tmp_path / "study").glob("*.png")}
    assert {f"{name}.png" for name in FIGURES} == pictures
    assert small.cluster.slowdown.size + small.grid.slowdown.size == len(rows)
    assert float(rows[0]["slowdown"]) == small.cluster.slowdown[0, 0, 0, 0]


# ---- ending and going on ---------------------------------------------------------------------


@pytest.mark.slow
def test_killed_run_continues_where_it_was(
    small: Minh2012Arrivals, tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a killed run had done is not done again, and the results are the same."""
    out = tmp_path / "study"
    command = [sys.executable, "-m", "hpcrowd", "reproduce", "minh2012-arrivals", *WORDS]
    # Too much for a moment: it is killed in the middle, after its first tasks.
    running = subprocess.Popen(
        [*command, "--out", str(out)],
        env=os.environ | {"PYTHONPATH": str(root / "src")},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    folder = tmp_path / f"study{ENDING}"
    deadline = time.monotonic() + 120
    while len([*folder.glob("*-*.json")]) < 2 and running.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("*-*.json")}
    assert 2 <= len(kept) < TASKS
    assert not out.exists()
    steps: list[int] = []
    again = reproduce_minh2012_arrivals(
        plan=SMALL, workers=1, out=out, progress=lambda label, done, total: steps.append(done)
    )
    assert f"Continuing: {len(kept)} of {TASKS} tasks are done." in capsys.readouterr().err
    assert len(kept) == steps[1]
    assert TASKS == steps[-1]
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("*-*.json")}
    assert kept == {name: when for name, when in after.items() if name in kept}
    assert small.stored() == again.stored()


def test_interrupted_run_says_what_it_kept(tmp_path: Path) -> None:
    """Ctrl-C leaves the tasks that are done next to the folder, and shows how to continue."""

    def stop(label: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "study"
    told = f"interrupted: 2 of {TASKS} tasks are done and kept; the same command does the rest"
    with pytest.raises(Interrupted, match=told):
        reproduce_minh2012_arrivals(plan=SMALL, workers=1, out=out, progress=stop)
    assert 2 == len([*(tmp_path / f"study{ENDING}").glob("*-*.json")])


def test_kept_results_are_taken(tmp_path: Path) -> None:
    """A task that is kept is not done again: what is there comes out."""
    plan = Plan(**{**vars(SMALL), "cluster_replications": 2, "loads": (0.5,)})
    work = Work(plan, stored_arrivals())
    kept = Unfinished.beside(tmp_path / "out", whole_plan(work))
    for task in work.tasks():
        kept.keep(task.name, np.full(np.shape(work(task)), 7.0).tolist())
    study = reproduce_minh2012_arrivals(plan=plan, workers=1, out=tmp_path / "out")
    assert {7.0} == {*study.grid.slowdown.ravel(), *study.cluster.slowdown.ravel()}


def test_another_plan_does_not_go_on(tmp_path: Path) -> None:
    """Results of another seed are refused, in one line."""
    other = Work(Plan(**{**vars(SMALL), "seed": 9}), stored_arrivals())
    Unfinished.beside(tmp_path / "out", whole_plan(other))
    with pytest.raises(HpcrowdError, match="results of another plan or version; remove it"):
        reproduce_minh2012_arrivals(plan=SMALL, workers=1, out=tmp_path / "out")


def test_command_writes_and_prints(
    small: Minh2012Arrivals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json one object is printed, which the folder holds; nothing is left next to it."""
    out = tmp_path / "study"
    reached = run_study(
        lambda progress: reproduce_minh2012_arrivals(
            None, progress, plan=SMALL, workers=1, out=out
        ),
        out=out,
        as_json=True,
    )
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads((out / "minh2012-arrivals.json").read_text()) == small.to_json()
    assert data["reached"] is reached
    assert ["study"] == [path.name for path in tmp_path.iterdir()]


# ---- the command, and what is refused --------------------------------------------------------


def test_command_line_makes_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options reach the study."""
    told: dict[str, object] = {}

    def run(work: Work, tasks: object, processes: int, *_: object, **__: object) -> None:
        told.update(plan=work.plan, processes=processes, log=work.arrivals.log["name"])
        raise QuantityError("that is enough")

    monkeypatch.setattr("hpcrowd.scenarios.studies.minh2012_arrivals.study.run_tasks", run)
    command = ["hpcrowd", "reproduce", "minh2012-arrivals"]
    monkeypatch.setattr("sys.argv", [*command, *WORDS, "--json"])
    with pytest.raises(SystemExit):
        main()
    assert {"plan": SMALL, "processes": 1, "log": "Thunder"} == told
    monkeypatch.setattr(
        "sys.argv", [*command, "--quick", "--seed", "4", "--local-load", "0.3", "--json"]
    )
    with pytest.raises(SystemExit):
        main()
    assert Plan(quick=True, seed=4, local_load=0.3) == told["plan"]


def test_quick_form_has_fewer_workloads_of_as_many_jobs() -> None:
    """An explicit option goes before what the quick form has."""
    full, quick = Plan(), Plan(quick=True)
    assert QUICK == {name: getattr(quick, name) for name in QUICK}
    assert full.jobs == quick.jobs
    assert quick.grid_replications < full.grid_replications
    assert 3 == Plan(quick=True, cluster_replications=3).cluster_replications


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster_replications": 1}, "cluster_replications 1: at least 2"),
        ({"jobs": 999}, "jobs 999: at least 1000"),
        ({"loads": (0.7, 0.0)}, "load 0.0: must be positive, for example 0.8"),
        ({"grid_loads": (0.7, 0.7)}, "loads (0.7, 0.7): give at least one, each once"),
        ({"local_load": 1.0}, "local_load 1.0: between 0 and 1, the rest is for the grid"),
        ({"local_widest": 0.0}, "local_widest 0.0: a share of the cluster, to 1"),
        ({"widest": 65}, "widest 65: must be from 1 to 64"),
        ({"grid_widest": 65}, "grid_widest 65: must be from 1 to 64"),
    ],
)
def test_wrong_plans_are_refused(changes: dict[str, object], words: str) -> None:
    """A plan that cannot be run is reported before anything is drawn."""
    with pytest.raises(QuantityError, match=re.escape(words)):
        Plan(**changes)  # type: ignore[arg-type]


def test_no_process_is_an_error() -> None:
    """At least one process has to do the work."""
    with pytest.raises(QuantityError, match="workers 0: at least 1"):
        reproduce_minh2012_arrivals(workers=0)
