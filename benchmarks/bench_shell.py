"""Whole processes, as a user starts them.

The start of a command is measured as a difference: its process and one that only imports the
libraries that it cannot do without run in turns, and the medians are subtracted. On a busy machine
look at the processor time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest

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


def bench_what_if(benchmark: Any, trace_path: Any, figure: Callable[..., None]) -> None:
    """Ask about a fifth more processors on KTH-SP2: four replays, and the answer."""
    trace = str(trace_path("KTH-SP2-1996-2.1-cln"))
    command = ["-m", "hpcrowd", "what-if", trace, "processors=+20%"]
    figure("shell: what-if KTH", shell(benchmark, *command), "s", "<= 5")


def bench_demo(benchmark: Any, figure: Callable[..., None], tmp_path: Path) -> None:
    """The demo: four runs of a month, tables, traces, pictures and report."""
    command = ["-m", "hpcrowd", "demo", "--out", str(tmp_path / "demo")]
    figure("shell: demo", shell(benchmark, *command, rounds=3), "s", "<= 20")


def bench_import(benchmark: Any, figure: Callable[..., None]) -> None:
    """Import the package and one of its names, without simulating anything."""
    code = "import hpcrowd as hc; hc.read_swf"
    figure("shell: import of hpcrowd", shell(benchmark, "-c", code), "s", "<= 0.5")


def bench_help(benchmark: Any, figure: Callable[..., None]) -> None:
    """Show the help."""
    figure("shell: hpcrowd --help", shell(benchmark, "-m", "hpcrowd", "--help"), "s", "<= 0.5")


def used(arguments: tuple[str, ...], environment: Mapping[str, str]) -> tuple[float, float]:
    """Return the seconds of a ``python`` with these arguments: by the clock, and of processors."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def above(
    benchmark: Any,
    command: tuple[str, ...],
    libraries: str,
    *,
    bytecode: Path | None,
    rounds: int = 15,
) -> tuple[float, float]:
    """Return how much more a command takes than the import of some libraries, medians of each.

    Parameters
    ----------
    benchmark
        The fixture.
    command
        Arguments of ``python``.
    libraries
        What the other process imports.
    bytecode
        Folder in which Python keeps what it compiled of all sources, in the round before the first;
        None where it may keep nothing and finds only the bytecode of installed libraries.
    rounds
        Pairs of processes.

    Returns
    -------
    tuple of float
        Seconds by the clock, and of processors.
    """
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"
    }
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if bytecode is not None:
        del environment["PYTHONDONTWRITEBYTECODE"]
        environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
    pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []

    def pair() -> None:
        pairs.append((used(("-c", f"import {libraries}"), environment), used(command, environment)))

    benchmark.pedantic(pair, rounds=rounds, warmup_rounds=1)
    found = [
        median(mine[which] for _, mine in pairs[1:]) - median(base[which] for base, _ in pairs[1:])
        for which in (0, 1)
    ]
    return found[0], found[1]


@pytest.mark.parametrize("kept", [False, True], ids=["compiled anew", "bytecode kept"])
def bench_start_of_replay(
    benchmark: Any, trace_path: Any, figure: Callable[..., None], tmp_path: Path, kept: bool
) -> None:
    """A replay of KTH-SP2 above ``import mesa``."""
    trace = str(trace_path("KTH-SP2-1996-2.1-cln"))
    command = ("-m", "hpcrowd", "replay", trace, "--json")
    wall, cpu = above(benchmark, command, "mesa", bytecode=tmp_path if kept else None)
    name = f"start: replay KTH, {'bytecode kept' if kept else 'no bytecode'}"
    figure(f"{name}, above mesa", wall, "s", "<= 0.4")
    figure(f"{name}, above it, CPU", cpu, "s", "<= 0.4")


@pytest.mark.parametrize("kept", [False, True], ids=["compiled anew", "bytecode kept"])
def bench_start_of_help(
    benchmark: Any, figure: Callable[..., None], tmp_path: Path, kept: bool
) -> None:
    """The help of hpcrowd above ``import typer, rich``."""
    command = ("-m", "hpcrowd", "--help")
    wall, cpu = above(benchmark, command, "typer, rich", bytecode=tmp_path if kept else None)
    name = f"start: --help, {'bytecode kept' if kept else 'no bytecode'}"
    figure(f"{name}, above typer, rich", wall, "s", "<= 0.25")
    figure(f"{name}, above them, CPU", cpu, "s", "<= 0.25")
