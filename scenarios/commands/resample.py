"""The command ``hpcrowd resample``: one run, a summary for people or for programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.commands.summary import keep_run, tell_run
from hpcrowd.scenarios.kinds.resample import ResampleConfig
from hpcrowd.scenarios.terminal import say_if_compiling, simulation_progress

if TYPE_CHECKING:
    from hpcrowd.agents.behaviours.decisions import DecisionLog


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
    path: Path,
    config: ResampleConfig,
    *,
    out: Path | None,
    as_json: bool,
    log: DecisionLog | None = None,
) -> None:
    """Let the population of the trace at ``path`` work; print a summary, write results."""
    from hpcrowd.analysis.results import check_replaceable

    if out is not None:
        check_replaceable(out)
    trace = read_trace(path)
    from hpcrowd.scenarios.kinds.resample import resample

    say_if_compiling()
    with simulation_progress(len(trace)) as progress:
        run = resample(trace, config, progress=progress, log=log)
    keep_run(run, out)
    tell_run(run, as_json=as_json)
