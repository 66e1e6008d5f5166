"""Minh 2012, chapter 7, is run again: the study on small logs, and its page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hpcrowd.environment.clock import WEEK
from hpcrowd.environment.errors import HpcrowdError, QuantityError, TraceError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.cli import main
from hpcrowd.scenarios.studies.minh2012_correlation.experiments import (
    STUDIED,
    Plan,
    completed_jobs,
)
from hpcrowd.scenarios.studies.minh2012_correlation.figures import figures_of
from hpcrowd.scenarios.studies.minh2012_correlation.measures import DEGREES
from hpcrowd.scenarios.studies.minh2012_correlation.study import (
    Minh2012Correlation,
    reproduce_minh2012_correlation,
)
from hpcrowd.scenarios.studies.options import parse_loads
from hpcrowd.scenarios.studies.published import published_rows
from hpcrowd.scenarios.studies.running import run_study
from matplotlib.figure import Figure

from tests.scenarios.studies.study_cases import rows_of_folder, shown

#: A plan that takes a second.
SMALL = Plan(
    replications=2,
    jobs=150,
    degrees=(-1.0, 0.0, 1.0),
    loads=(0.7,),
    locality_loads=(0.7, 1.2),
)

HPC2N_FILE, DAS2_FILE = "HPC2N-2002-2.2-cln.swf", "DAS2-fs1-2003-1.swf"


def small_log(make_trace: Callable[..., Trace], seed: int, processors: int) -> Trace:
    """Return a log of 300 jobs in six weeks, every tenth of which failed."""
    random = np.random.default_rng(seed)
    jobs = [
        {
            "submit": int(submit),
            "wait": 0,
            "run": int(random.integers(1, 9_000)),
            "requested_processors": int(random.integers(1, processors)),
            "status": int(place % 10 > 0),
            "user": 1,
        }
        for place, submit in enumerate(np.sort(random.integers(0, 6 * WEEK, 300)))
    ]
    return make_trace(*jobs, header=f"; MaxProcs: {processors}")


@pytest.fixture(scope="module")
def small_folder(
    make_trace: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with small logs under the names of two."""
    folder = tmp_path_factory.mktemp("traces")
    write_swf(small_log(make_trace, 1, 40), folder / HPC2N_FILE)
    write_swf(small_log(make_trace, 2, 8), folder / f"{DAS2_FILE}.gz")
    return folder


@pytest.fixture(scope="module")
def small(small_folder: Path) -> Minh2012Correlation:
    """Return the study on the small logs."""
    return reproduce_minh2012_correlation(small_folder, plan=SMALL, workers=1)


# ---- the study on small logs -----------------------------------------------------------------


def test_everything_is_run(small: Minh2012Correlation) -> None:
    """Every policy, load, degree and replication has a slowdown; absent logs and cases are left."""
    runs = small.correlation
    assert (len(SMALL.policies), 1, 3, 2) == runs.slowdown.shape
    assert runs.slowdown.min() >= 1
    assert [None, -0.2, 0.0, 0.4] == [case.degree for case in small.locality]
    assert [40, 8, 8, 8] == [case.machine for case in small.locality]
    for case in small.locality:
        assert (2, 2, 2, 2) == case.slowdown.shape
        assert case.slowdown.min() >= 1
    assert ["HPC2N", "DAS2-fs1"] == list(small.weeks)
    assert {*STUDIED} - {"HPC2N", "DAS2-fs1"} == set(small.absent)


def test_correlations_are_set(small: Minh2012Correlation) -> None:
    """The ends are as large as ties allow; those of the second experiment are what was asked."""
    low, middle, high = small.correlation.correlation
    assert low.max() < -0.95
    assert high.min() > 0.95
    assert abs(middle).max() < 5 / np.sqrt(150)
    for case in small.locality[1:]:
        assert pytest.approx(case.degree, abs=5 / np.sqrt(150)) == case.correlation.mean()


@pytest.mark.slow
def test_processes_do_not_change_anything(small_folder: Path, small: Minh2012Correlation) -> None:
    """Two processes give what one does, to the bit; another seed does not."""
    again = reproduce_minh2012_correlation(small_folder, plan=SMALL, workers=2)
    assert small.stored() == again.stored()
    other = Plan(**{**vars(SMALL), "seed": 1, "cases": ()})
    different = reproduce_minh2012_correlation(small_folder, plan=other, workers=1)
    assert (different.correlation.slowdown != small.correlation.slowdown).any()
    assert [] == different.locality


def test_only_completed_jobs_count(make_trace: Callable[..., Trace]) -> None:
    """Jobs of other status than 1 are left out; those that stay are in order of submission."""
    rows = ((30, 5, 1, 1), (10, 6, 2, 1), (20, 7, 3, 0))
    jobs = [
        {"submit": at, "run": run, "requested_processors": width, "status": status, "user": 1}
        for at, run, width, status in rows
    ]
    found = completed_jobs(make_trace(*jobs))
    assert [0, 20] == (found.submit - found.submit[0]).tolist()
    assert ([6, 5], [2, 1]) == (found.run_time.tolist(), found.processors.tolist())
    with pytest.raises(TraceError, match="no job has status 1, completed; take another trace"):
        completed_jobs(make_trace(jobs[2]))


def test_data_are_read_back(small: Minh2012Correlation) -> None:
    """What is written as plain data gives the same study, and the same parts of the page."""
    text = json.dumps(small.to_json(), allow_nan=False)
    back = Minh2012Correlation.of_stored(json.loads(text))
    assert small.stored() == back.stored()
    assert small.page_parts() == back.page_parts()


def test_rounded_data_keep_their_digits(small: Minh2012Correlation) -> None:
    """With four digits every number is within a thousandth of what it was."""
    rounded = Minh2012Correlation.of_stored(small.stored(4))
    assert np.allclose(small.correlation.slowdown, rounded.correlation.slowdown, rtol=1e-3)
    assert (small.correlation.slowdown != rounded.correlation.slowdown).any()


def test_tables_are_shown(small: Minh2012Correlation) -> None:
    """The terminal shows tables and statements, within its width, with nothing cut off."""
    text = shown(small)
    for words in ("Table 7.1", "Slowdown", "predicted", "Logs of the study that are not available"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 100
    statements = small.to_json()["statements"]
    assert len(statements) == len(re.findall(r": (holds|does not hold|open): ", text))


def test_figures_are_drawn(small: Minh2012Correlation) -> None:
    """Each figure has panels with something in them, and leaves pyplot alone."""
    before = plt.get_fignums()
    for draw in figures_of(small).values():
        figure = draw(small)
        assert isinstance(figure, Figure)
        assert all(panel.has_data() for panel in figure.axes)
        assert figure.axes[-1].get_xlabel()
    assert before == plt.get_fignums()


def test_folder_holds_everything(small: Minh2012Correlation, tmp_path: Path) -> None:
    """Data, every simulation in a table, pictures and a page that shows them."""
    rows = rows_of_folder(small, tmp_path)
    pictures = {path.name for path in (tmp_path / "study").glob("*.png")}
    assert {f"{name}.png" for name in figures_of(small)} == pictures
    simulations = small.correlation.slowdown.size + sum(c.slowdown.size for c in small.locality)
    assert simulations == len(rows)
    assert float(rows[0]["slowdown"]) == small.correlation.slowdown[0, 0, 0, 0]


def test_progress_ends_at_the_last_workload(small_folder: Path) -> None:
    """Reading is reported log by log, then one step for each workload."""
    calls: list[tuple[str, int, int]] = []
    reproduce_minh2012_correlation(
        small_folder, lambda *call: calls.append(call), plan=SMALL, workers=1
    )
    assert f"HPC2N: reading {HPC2N_FILE}" == calls[0][0]
    workloads = 2 * (3 + 4)
    assert (workloads, workloads) == calls[-1][1:]
    assert 2 + 1 + workloads == len(calls)


def test_command_prints_one_object(
    small_folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With --json nothing but one object is printed, and it is what the folder holds."""
    reached = run_study(
        lambda progress: reproduce_minh2012_correlation(
            small_folder, progress, plan=SMALL, workers=1
        ),
        out=tmp_path / "study",
        as_json=True,
    )
    data = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "study" / "minh2012-correlation.json").read_text()) == data
    assert data["reached"] is reached


def test_command_line_makes_the_plan(
    small_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options reach the study; a wrong one ends in one line and exit code 2."""
    words = ["--seeds", "2", "--jobs", "120", "--workers", "1", "--seed", "3", "--json"]
    command = ["hpcrowd", "reproduce", "minh2012-correlation", "--traces", str(small_folder)]
    monkeypatch.setattr("sys.argv", [*command, *words, "--loads", "0.6"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, 1)  # by chance: few jobs may miss Table 7.1
    data = json.loads(capsys.readouterr().out)
    told = (data["replications"], data["jobs"], data["seed"], data["correlation"]["loads"])
    assert (2, 120, 3, [0.6]) == told
    monkeypatch.setattr("sys.argv", [*command, *words, "--loads", "much"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert 2 == ended.value.code
    assert "hpcrowd: loads 'much': not numbers" in capsys.readouterr().err


def test_hpc2n_is_needed(tmp_path: Path, make_trace: Callable[..., Trace]) -> None:
    """Without its trace the message shows what to fetch."""
    write_swf(small_log(make_trace, 3, 8), tmp_path / DAS2_FILE)
    with pytest.raises(TraceError, match=re.escape(f"{HPC2N_FILE}[.gz]: not found; fetch it from")):
        reproduce_minh2012_correlation(tmp_path, plan=SMALL)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"replications": 1}, "replications 1: at least 2"),
        ({"jobs": 99}, "jobs 99: at least 100"),
        ({"loads": (0.7, 0.0)}, "load 0.0: must be positive, for example 0.8"),
        ({"loads": (0.7, 0.7)}, "loads (0.7, 0.7): give at least one, each once"),
        ({"loads": ()}, "loads (): give at least one, each once"),
    ],
)
def test_wrong_plans_are_refused(changes: dict[str, object], words: str) -> None:
    """A plan that cannot be run is reported before anything is read."""
    with pytest.raises(QuantityError, match=re.escape(words)):
        Plan(**changes)  # type: ignore[arg-type]


def test_loads_are_read() -> None:
    """Loads are numbers between commas."""
    assert (0.7, 1.0) == parse_loads("0.7,1")
    with pytest.raises(QuantityError, match=r"loads '0\.7;0\.9': not numbers; write for example"):
        parse_loads("0.7;0.9")


def test_no_process_is_an_error(tmp_path: Path) -> None:
    """At least one process has to do the work."""
    with pytest.raises(HpcrowdError, match="workers 0: at least 1"):
        reproduce_minh2012_correlation(tmp_path, workers=0)


def test_published_table_is_whole() -> None:
    """Table 7.1 has a line for each of the eleven degrees."""
    assert [*DEGREES] == [float(row["degree"]) for row in published_rows("minh2012_table7_1")]
