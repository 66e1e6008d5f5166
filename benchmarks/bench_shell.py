"""Whole processes, as a user starts them; the compiled code is in its cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def shell(benchmark: Any, *arguments: str, rounds: int = 7) -> float:
    """Return the median seconds of ``python`` with these arguments."""

    def run() -> None:
        subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=True)

    benchmark.pedantic(run, rounds=rounds, warmup_rounds=1)
    return float(benchmark.stats.stats.median)


def bench_replay(benchmark: Any, trace_path: Any, figure: Callable[..., None]) -> None:
    """Replay KTH-SP2 with think times and print the metrics."""
    trace = str(trace_path("KTH-SP2-1996-2.1-cln"))
    command = ["-m", "hpcrowd", "replay", trace, "--users", "think-time", "--scheduler", "easy"]
    figure("shell: replay KTH --json", shell(benchmark, *command, "--json"), "s", "<= 1.5")


def bench_replay_with_results(
    benchmark: Any, trace_path: Any, figure: Callable[..., None], tmp_path: Path
) -> None:
    """The same with tables, trace, pictures and provenance written."""
    trace = str(trace_path("KTH-SP2-1996-2.1-cln"))
    command = ["-m", "hpcrowd", "replay", trace, "--json", "--out", str(tmp_path / "run")]
    figure("shell: replay KTH --json --out", shell(benchmark, *command), "s", "<= 2.5")


def bench_demo(benchmark: Any, figure: Callable[..., None], tmp_path: Path) -> None:
    """The demo: four runs of a month, tables, traces, pictures and report."""
    command = ["-m", "hpcrowd", "demo", "--out", str(tmp_path / "demo")]
    figure("shell: demo", shell(benchmark, *command, rounds=3), "s", "<= 20")


def bench_import(benchmark: Any, figure: Callable[..., None]) -> None:
    """Import every package without simulating anything."""
    code = "import environment, agents, analysis, scenarios; environment.read_swf"
    figure("shell: import of the packages", shell(benchmark, "-c", code), "s", "<= 0.5")


def bench_help(benchmark: Any, figure: Callable[..., None]) -> None:
    """Show the help."""
    figure("shell: hpcrowd --help", shell(benchmark, "-m", "hpcrowd", "--help"), "s", "<= 0.5")
