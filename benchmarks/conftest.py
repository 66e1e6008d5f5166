"""Traces and the table of figures for all benchmarks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcrowd import JobTable, Trace, jobs_from_trace, read_swf

FOLDER = Path(
    os.environ.get("HPCROWD_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces")
)

_FIGURES: list[tuple[str, float, str, str]] = []


@pytest.fixture
def figure() -> Callable[[str, float, str, str], None]:
    """Note a figure: name, value, unit, target (such as ``>= 2000000``)."""

    def note(name: str, value: float, unit: str, target: str = "") -> None:
        _FIGURES.append((name, value, unit, target))

    return note


@pytest.fixture(scope="session")
def trace_path() -> Callable[[str], Path]:
    """Return the file of a trace, or skip."""

    def find(name: str) -> Path:
        path = FOLDER / f"{name}.swf.gz"
        if not path.exists():
            pytest.skip(f"no {path.name} in {FOLDER}; set HPCROWD_TRACES")
        return path

    return find


@pytest.fixture(scope="session")
def load(trace_path: Callable[[str], Path]) -> Callable[[str], tuple[Trace, JobTable]]:
    """Return a trace and its jobs, read once."""
    known: dict[str, tuple[Trace, JobTable]] = {}

    def get(name: str) -> tuple[Trace, JobTable]:
        if name not in known:
            trace = read_swf(trace_path(name))
            known[name] = trace, jobs_from_trace(trace).jobs
        return known[name]

    return get


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the figures next to their targets."""
    if not _FIGURES:
        return
    terminalreporter.section("figures")
    for name, value, unit, target in _FIGURES:
        held = ""
        if target:
            sign, bound = target.split()
            good = value >= float(bound) if sign == ">=" else value <= float(bound)
            held = f"target {target}: {'held' if good else 'MISSED'}"
        shown = f"{value:,.0f}" if value >= 1000 else f"{value:,.3f}"
        terminalreporter.write_line(f"{name:<58}{shown:>12} {unit:<16}{held}")
