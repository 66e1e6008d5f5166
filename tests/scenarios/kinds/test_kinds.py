"""Scenario files of grids and of resampled populations, alone and in sweeps."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.swf import write_swf
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.kinds.files import read_scenario, scenario_toml

from tests.scenarios.sweeps.sweep_cases import write_busy
from tests.support.populations import small_log

GRID = """[scenario]
kind = "grid"
users = "think-time"
grid_share = 0.5
[scenario.clusters.north]
processors = 8
trace = "busy.swf"
[scenario.clusters.south]
processors = 6
speed = 1.5
"""

SHORT = '[scenario]\nkind = "grid"\nsource = "das3"\n' + "".join(
    f"[scenario.clusters.{name}]\ndays = 1\n" for name in ("VU", "LU", "UvA", "TUD", "UvAMN")
) + "[scenario.grid]\ndays = 1\n"  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a busy log."""
    write_busy(tmp_path)
    return tmp_path


def scenario(folder: Path, text: str) -> Path:
    """Write a scenario file."""
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text", [GRID, SHORT, GRID.replace("grid_share = 0.5", "grid_share = 1.0\ncomponents = 4")]
)
def test_a_grid_is_shown_complete_and_runs_again(folder: Path, text: str) -> None:
    """What is shown can be read from anywhere, says the same and has the same results."""
    path = scenario(folder, text)
    first = read_scenario(path)
    shown = folder / "elsewhere" / "shown.toml"
    shown.parent.mkdir()
    shown.write_text(scenario_toml(first))
    again = read_scenario(shown)
    assert first.identity() == again.identity()
    one, two = first.run(first.prepare()), again.run(again.prepare())
    assert one.jobs.matrix.tolist() == two.jobs.matrix.tolist()
    assert "grid" in one.summary()["sites"]
    assert "think-time" in tomllib.loads(shown.read_text())["scenario"]["users"] or text is SHORT


def test_a_grid_is_known_by_what_its_files_hold(folder: Path) -> None:
    """Another log in the same place is another run; the same log elsewhere is the same."""
    path = scenario(folder, GRID)
    before = read_scenario(path).identity()
    (folder / "moved").mkdir()
    (folder / "moved" / "busy.swf").write_bytes((folder / "busy.swf").read_bytes())
    assert before == read_scenario(scenario(folder / "moved", GRID)).identity()
    write_busy(folder, jobs=251)
    assert before != read_scenario(path).identity()


def swept(folder: Path, call: Any, text: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the frame of a sweep, and what is told of it."""
    (folder / "study.toml").write_text(text)
    out = folder / "out"
    code, told, _ = call(
        "sweep", folder / "study.toml", "--out", out, "--executor", "inline", "--json"
    )
    assert 0 == code
    return pd.read_parquet(out / "frame.parquet"), json.loads(told)


def test_a_sweep_over_brokers_and_shares(folder: Path, call: Any) -> None:
    """Settings of a grid are axes, also inside of clusters; sites are columns of the frame."""
    metrics = ["wait_mean_s", "site.grid.wait_s", "site.south.utilization"]
    frame, told = swept(
        folder,
        call,
        f'{GRID}[axes]\nbroker = ["first-fit", "least-loaded"]\ngrid_share = [0.0, 1.0]\n'
        f'"clusters.south.processors" = [6, 8]\n[result]\nmetrics = {metrics}\n',
    )
    assert 8 == len(frame) == (frame["state"] == "done").sum()
    apart = frame[frame["grid_share"] == 0]
    assert apart["site.grid.wait_s"].isna().all()
    assert 1 == apart["wait_mean_s"].nunique(), "nobody uses the broker, nor the south"
    mixed = frame[frame["grid_share"] == 1]
    assert (mixed["site.grid.jobs"] == mixed["jobs_completed"]).all()
    assert mixed["wait_mean_s"].max() < apart["wait_mean_s"].min()
    assert set(metrics) == {line["metric"] for line in told["summary"]}
    assert (folder / "out" / "site.grid.wait_s.png").exists()


def test_a_sweep_of_populations(
    tmp_path: Path, make_trace: Callable[..., Trace], call: Any
) -> None:
    """Seeds draw populations, paired between speeds; accounts of the population are columns."""
    write_swf(small_log(make_trace), tmp_path / "log.swf")
    frame, _ = swept(
        tmp_path,
        call,
        '[scenario]\nkind = "resample"\ntrace = "log.swf"\ndays = 42\nwarm_up = "7d"\n'
        "[scenario.consequences]\nelasticity = 0.25\n"
        '[axes]\nspeed = ["1x", "2x"]\nseed = 3\n'
        '[result]\nmetrics = ["population.throughput_jobs_per_week"]\n',
    )
    counts = frame.pivot(index="seed", columns="speed", values="population.users_arrived")
    assert (counts["1x"] == counts["2x"]).all(), "the same people, whatever the machine"
    assert counts["1x"].nunique() > 1


RESAMPLE = '[scenario]\nkind = "resample"\ntrace = "busy.swf"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GRID.replace("processors = 6", "processors = 0"), "clusters.south.processors 0"),
        (GRID + 'colour = "red"', "clusters.south.colour: no such setting"),
        (GRID.replace('users = "think-time"', 'broker = "best"'), "broker 'best': not known"),
        (GRID.replace("busy", "idle"), "idle.swf': no such file"),
        ('[scenario]\nkind = "grid"\nsource = "none.toml"', "no such file"),
        (RESAMPLE + 'users = "many"', "users 'many'"),
        (RESAMPLE + "[scenario.pool]\nedge = 7", "pool: edge 7"),
    ],
)
def test_mistakes_are_reported_with_their_line(folder: Path, text: str, told: str) -> None:
    """File, line, setting, value and rule."""
    with pytest.raises(QuantityError, match=r"scenario\.toml, line \d+: ") as caught:
        read_scenario(scenario(folder, text))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
