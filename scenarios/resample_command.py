"""The command ``hpcrowd resample``: one run, a summary for people or for programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from environment.errors import QuantityError
from environment.quantities import plural
from environment.swf import read_swf
from scenarios.resample_config import ResampleConfig
from scenarios.terminal import (
    print_json,
    say,
    say_if_compiling,
    simulation_progress,
    standard_output,
)

if TYPE_CHECKING:
    from analysis.run import Run


def settings(option: str, text: str | None, known: Iterable[str]) -> dict[str, float]:
    """Return what ``leave=0.1,away=2`` sets, nothing for None.

    Parameters
    ----------
    option, text
        Name of the option, and what was given.
    known
        Names that may be set.

    Raises
    ------
    QuantityError
        When it is not written so, or a name is not known.
    """
    names, found = tuple(known), {}
    for part in (text or "").split(",") if text else []:
        name, equals, value = part.strip().partition("=")
        try:
            if not equals or not name or name in found:
                raise ValueError
            number = float(value)
        except ValueError:
            raise QuantityError(
                f"{option} {text!r}: {part.strip()!r} sets nothing; write NAME=NUMBER, each once, "
                "with commas between them"
            ) from None
        if name not in names:
            raise QuantityError(
                f"{option} {text!r}: no setting {name!r}; there are {', '.join(names)}"
            )
        found[name] = int(number) if number.is_integer() else number
    return found


def resample_command(
    path: Path, config: ResampleConfig, *, out: Path | None, as_json: bool
) -> None:
    """Let the population of the trace at ``path`` work; print a summary, write results."""
    from analysis.results import check_replaceable, write_results

    if out is not None:
        check_replaceable(out)
    trace = read_swf(path)
    from scenarios.resample import resample

    say_if_compiling()
    with simulation_progress(len(trace)) as progress:
        run = resample(trace, config, progress=progress)
    if out is not None:
        write_results(run, out)
        say(f"Results are in {out}{'' if str(out).endswith('/') else '/'}")
    if as_json:
        print_json(run.summary())
        return
    from scenarios.replay_command import summary_table

    console = standard_output(highlight=False, markup=False)
    for line in headline(run):
        console.print(line, soft_wrap=True)
    console.print(summary_table(run))


def headline(run: Run) -> list[str]:
    """Return lines that say what was run, what the pool is, who came and went."""
    from analysis.population_accounts import account_lines

    pool = run.population["pool"]
    lines = [
        f"{run.configuration['trace']}: {len(run.jobs):,} jobs on {run.processors:,} processors, "
        f"{run.label}",
        f"  pool: {plural(pool['users_long_term'], 'long-term user')}, "
        f"{pool['users_temporary']:,} temporary ({pool['arrivals_per_week']:.2f} arrive per week), "
        f"{pool['jobs']:,} jobs in {plural(pool['weeks'], 'week')}",
    ]
    lines += [
        f"  {plural(count, 'user')} dropped ({plural(pool['jobs_dropped'][why], 'job')}): {why}"
        for why, count in pool["users_dropped"].items()
    ]
    for what, reasons in (("dropped", run.dropped), ("repaired", run.repaired)):
        lines += [f"  {plural(count, 'job')} {what}: {reason}" for reason, count in reasons.items()]
    lines += [f"  {line}" for line in account_lines(run.population)]
    if run.clock.note:
        lines.append(f"  {run.clock.note}")
    return lines
