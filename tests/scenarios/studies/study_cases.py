"""A small log for tests of studies, and what the folder and the tables of every study must be."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.study import PublishedStudy
from rich.console import Console

KTH_FILE = "KTH-SP2-1996-2.1-cln.swf"


def small_log(make_trace: Callable[..., Trace], seed: int) -> Trace:
    """Return a log of 250 jobs by 12 users in 30 days on 20 processors; user 12 has one job."""
    random = np.random.default_rng(seed)
    submits = np.sort(random.integers(0, 30 * DAY, 250))
    jobs = []
    for row, submit in enumerate(submits):
        run = int(random.integers(1, 30_000))
        processors = int(random.integers(1, 20))
        jobs.append(
            {
                "submit": int(submit),
                "wait": int(random.integers(0, 5_000)),
                "run": run,
                "allocated_processors": processors,
                "requested_processors": processors,
                "requested_time": 2 * run,
                "status": 1,
                "user": 12 if row == 0 else int(random.integers(1, 12)),
            }
        )
    return make_trace(*jobs, header="; MaxProcs: 20\n; UnixStartTime: 843480031")


def shown(study: PublishedStudy) -> str:
    """Return what a terminal of 100 columns shows of a study; nothing in it is cut off."""
    console = Console(file=io.StringIO(), width=100)
    study.show(console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    return text


def rows_of_folder(study: PublishedStudy, tmp_path: Path) -> list[dict[str, Any]]:
    """Write a study, check what all folders have in common, and return the rows of its table."""
    target = tmp_path / "study"
    study.write(target)
    study.write(target)  # its own folder may be replaced
    data, table = f"{study.name}.json", f"{study.name}.csv"
    pictures = {path.name for path in target.glob("*.png")}
    names = {path.name for path in target.iterdir()}
    assert {data, table, "report.html", "provenance.json", *pictures} == names
    assert study.to_json() == json.loads((target / data).read_text())
    assert study.name == json.loads((target / "provenance.json").read_text())["study"]
    page = (target / "report.html").read_text()
    for mark in ("tr", "td", "th"):
        assert page.count(f"</{mark}>") == page.count(f"<{mark}>") + page.count(f"<{mark} ")
    assert pictures
    assert all(f'<img src="{name}"' in page for name in pictures)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").touch()
    with pytest.raises(HpcrowdError, match="is not a folder of results"):
        study.write(other)
    assert ["mine.txt"] == [path.name for path in other.iterdir()]
    with (target / table).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
