"""The command ``hpcrowd run``: one scenario from a file."""

from __future__ import annotations

import sys
from pathlib import Path

from scenarios.scenario_file import read_scenario, scenario_toml
from scenarios.terminal import (
    print_json,
    say,
    say_if_compiling,
    simulation_progress,
    standard_output,
)


def run_command(path: Path, *, out: Path | None, show: bool, as_json: bool) -> None:
    """Run the scenario in a TOML file; print a summary, write results if asked for.

    Parameters
    ----------
    path
        The file.
    out
        Folder for results.
    show
        Only print the completed configuration, as TOML.
    as_json
        Print the summary as one JSON object.
    """
    scenario = read_scenario(path)
    if show:
        sys.stdout.write(scenario_toml(scenario))
        return
    from analysis.results import check_replaceable, write_results
    from scenarios.replay_command import headline, summary_table

    if out is not None:
        check_replaceable(out)
    prepared = scenario.prepare()
    say_if_compiling()
    with simulation_progress(1) as progress:
        run = scenario.run(prepared, progress)
    if out is not None:
        write_results(run, out)
        say(f"Results are in {out}")
    if as_json:
        print_json(run.summary())
        return
    console = standard_output(highlight=False, markup=False)
    if run.trace is None:
        console.print(f"{run.label}: {len(run.jobs):,} jobs on {run.processors:,} processors")
    for line in headline(run):
        console.print(line, soft_wrap=True)
    console.print(summary_table(run))
