"""The page of the study of recorded runs: its parts, and its main claims on the shared records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hpcrowd.scenarios.studies.render import BEGIN
from hpcrowd.scenarios.studies.slurm.measures import mean
from hpcrowd.scenarios.studies.slurm.mechanisms import MECHANISMS, effects_of
from hpcrowd.scenarios.studies.slurm.records import load
from hpcrowd.scenarios.studies.slurm.simulated import replay
from hpcrowd.scenarios.studies.slurm.study import compare_records, reproduce_slurm


def test_every_part_of_the_page_is_made(root: Path, referee_runs: Path) -> None:
    """The generated parts on the page are those of the study, each filled and at one place."""
    page = (root / "docs" / "studies" / "slurm.md").read_text()
    marks = re.findall(BEGIN.format("(.*)"), page)
    assert len(marks) == len(set(marks))
    parts = compare_records([referee_runs / "runC"], replay).page_parts()
    assert set(marks) <= parts.keys() | {"mechanisms", "forecasts"}
    for name in marks:
        found = re.search(rf"<!-- generated: {name} -->(.*?)<!-- end of {name} -->", page, re.S)
        assert found is not None
        assert 2 < len(found[1].strip().splitlines()), name


@pytest.mark.slow
def test_simulations_are_as_near_as_the_page_says(referee_runs: Path) -> None:
    """Starts, waits, order of users and priorities, with two draws and loose bounds."""
    study = reproduce_slurm(referee_runs, phases=2, seed=3)
    assert ["runA, runB, runF", "runC, runD"] == list(study.traces)
    for one, apart, correlated in zip(
        study.traces.values(), (1200, 480), (0.70, 0.90), strict=True
    ):
        assert one.spread(lambda pair: pair.starts.mean).median < apart
        assert one.spread(lambda pair: pair.starts.pearson).median > correlated
        assert one.spread(lambda pair: pair.reasons.share).median > 0.78
        assert one.parts["PRIORITY"].near >= 0.95
        right, counted, _ = one.order
        assert right >= counted - 3
        # Phases alone lead as far apart as recorded runs are.
        assert mean([pair.mean for pair in one.among]) > 0.4 * mean(
            [pair.starts.mean for pair in one.own]
        )
        for name, waits in one.partitions.items():
            low, high = waits.range
            assert 0.6 * low < waits.ours < 1.5 * high, name


@pytest.mark.slow
def test_the_log_of_eight_nodes_is_replayed(slurm_dumps: Path, tmp_path: Path) -> None:
    """With its own machine, starts are a few seconds apart, and waits correlate well."""
    for name in ("dumps", "truth-a.csv", "slurm.conf.in"):
        (tmp_path / name).symlink_to(slurm_dumps.parent / name)
    (one,) = reproduce_slurm(tmp_path, phases=3).traces.values()
    assert one.log
    assert 297 == one.ours[0].starts.jobs
    assert one.spread(lambda pair: pair.starts.pearson).median > 0.92
    assert one.spread(lambda pair: pair.starts.median).median < 8
    assert ["Pearson of waits", "median difference of starts"] == [
        need.what for need in one.requirements
    ]


@pytest.mark.slow
def test_backfilling_is_needed(referee_runs: Path) -> None:
    """Without backfilling, the simulation of plan 2 is much farther away."""
    few = [one for one in MECHANISMS if one.name in ("as recorded", "no backfilling")]
    runs = [load(referee_runs / f"run{name}") for name in "CD"]
    with_it, without = effects_of(runs, 1, mechanisms=few)
    assert without.mean.median > 1.5 * with_it.mean.median
    assert without.pearson.median < with_it.pearson.median
