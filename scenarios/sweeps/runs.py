"""A sweep: every run of a study, done by an engine, saved in a folder, collected in a frame.

:func:`methods_text` is the methods section of a paper about it: what was run with what, and how it
is reported. Every sentence comes from the study, its inputs and the installed versions.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcrowd.analysis.comparison.sweeps import USER_METRICS, Reporting, SweepResult
from hpcrowd.analysis.metrics import METRICS
from hpcrowd.analysis.paired import RESAMPLES
from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.registry import place_of
from hpcrowd.scenarios.engines import Engine, Inline, WorkerDied, each_of
from hpcrowd.scenarios.kinds.base import Scenario, checksum
from hpcrowd.scenarios.sweeps.folder import SweepFolder, locked
from hpcrowd.scenarios.sweeps.study import SEED, Study
from hpcrowd.scenarios.sweeps.worker import DONE, Outcome, Task, failed, work, write_shared
from hpcrowd.scenarios.unfinished import Interrupted

#: Called with the number of finished runs, all runs, and failed runs.
Tell = Callable[[int, int, int], Any]

#: Hexadecimal digits of a key.
KEY = 20


@dataclass
class Planned:
    """A run of the design."""

    point: dict[str, Any]  #: its settings on the axes
    key: str  #: name of its files: the same for the same settings, inputs and trimming
    scenario: Scenario | None = None  #: its scenario; None if its settings contradict each other
    error: str = ""  #: the contradiction


@dataclass
class Sweep:
    """What a sweep has done so far."""

    total: int  #: runs of the study
    kept: int = 0  #: runs that were done before
    over: int = 0  #: finished runs, including those kept
    failed: int = 0  #: runs that failed
    notes: list[str] = field(default_factory=list)  #: notes for the user
    result: SweepResult | None = None  #: frame and summary, once all runs have finished


def sweep(
    study: Study,
    out: str | os.PathLike[str],
    *,
    engine: Engine | None = None,
    resume: bool = False,
    progress: Tell | None = None,
) -> Sweep:
    """Do all remaining runs of a study, and write its results.

    Parameters
    ----------
    study
        What to run.
    out
        Folder; see :mod:`hpcrowd.scenarios.sweeps.folder`.
    engine
        Engine for the runs; this process unless given. It is left open.
    resume
        Continue in a folder that holds runs of this study. Failed runs are tried again.
    progress
        Called after each run.

    Returns
    -------
    Sweep
        With the frame of all runs; it does not depend on the engine or the order of the runs.

    Raises
    ------
    HpcrowdError
        When the folder is of another study or in use, or the engine cannot continue.
    """
    study.check_across()
    study.check_drawn()
    with locked(Path(out)) as folder:
        found = Sweep(len(study))
        found.notes = folder.begin(_identity(study), resume=resume)
        try:
            _run_all(study, folder, engine or Inline(), found, progress)
            found.result = collect(study, folder)
            folder.land(found.result.write)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted: {found.over - found.failed:,} of {plural(found.total, 'run')} are "
                f"done and kept in {out}; continue with the same command and --resume"
            ) from None
        folder.remove_inputs()
        return found


def _run_all(
    study: Study, folder: SweepFolder, engine: Engine, found: Sweep, progress: Tell | None
) -> None:
    with folder.index.open("a", encoding="utf-8") as index:

        def note(outcome: Outcome) -> None:
            folder.add(outcome, index)
            found.over += 1
            found.failed += outcome.state != DONE
            if progress is not None:
                progress(found.over, found.total, found.failed)

        for task, outcome in each_of(engine, work, _tasks(study, folder, found, note)):
            if isinstance(outcome, WorkerDied):
                outcome = failed(
                    task.key, f"its worker died {outcome.times} times (out of memory, or killed)"
                )
            note(outcome)


def _tasks(
    study: Study, folder: SweepFolder, found: Sweep, note: Callable[[Outcome], None]
) -> Iterator[Task]:
    """Yield the remaining runs; note those whose settings contradict each other as failed."""
    shared = _Shared(folder.path.absolute())
    out = folder.path.absolute()
    told = {"study": study.name, "versions": versions()}
    for run in planned(study):
        if folder.states.get(run.key) == DONE:
            found.kept += 1
            found.over += 1
            continue
        try:
            if run.scenario is None:
                raise HpcrowdError(run.error)
            inputs = shared.of(run.scenario)
        except HpcrowdError as error:
            note(failed(run.key, str(error)))
            continue
        yield Task(
            key=run.key,
            settings=study.settings(run.point),
            files=study.folder.absolute(),
            shared=inputs,
            out=out,
            keep=study.keep,
            warm_up=study.trim.warm_up,
            cool_down=study.trim.cool_down,
            told={**told, "point": run.point, "scenario": run.scenario.identity()},
        )


class _Shared:
    """Inputs in files that workers map into memory; each is prepared when first needed.

    Files from before are never read, since they can run code: nobody knows the names of these.
    """

    def __init__(self, out: Path) -> None:
        self._folder = out / "inputs"
        self._now = secrets.token_hex(8)
        self._versions = versions()
        self._wrong: dict[str, str] = {}

    def of(self, scenario: Scenario) -> Path:
        """Return the file with the inputs of a scenario."""
        key = _hash({"sharing": scenario.sharing(), "versions": self._versions})
        path = self._folder / f"{key}-{self._now}.shared"
        if key in self._wrong:
            raise HpcrowdError(self._wrong[key])
        if not path.exists():
            try:
                write_shared(scenario.prepare(), path)
            except HpcrowdError as error:
                self._wrong[key] = str(error)
                raise
        return path


def planned(study: Study) -> Iterator[Planned]:
    """Yield the runs of a study in the order of the design, with their keys."""
    more = {"trim": study.trim.model_dump(), "keep": study.keep}
    for point in study.points():
        try:
            scenario = study.scenario_at(point)
            yield Planned(point, _hash({"scenario": scenario.identity(), **more}), scenario)
        except HpcrowdError as error:
            settings = study.settings(point)
            yield Planned(point, _hash({"settings": settings, **more}), error=str(error))


def collect(study: Study, folder: SweepFolder) -> SweepResult:
    """Return the results of all finished runs, in the order of the design."""
    outcomes = folder.outcomes()
    rows = []
    for run in planned(study):
        outcome = outcomes.get(run.key)
        if outcome is not None:
            rows.append((run.point, run.key, outcome.state, outcome.row, outcome.error))
    reporting = Reporting(**study.result.model_dump())
    return SweepResult.of(study.name, study.axes, rows, reporting)


def status(study: Study, out: Path) -> dict[str, Any]:
    """Return the state of a sweep, without disturbing it: all runs, done, failed, errors."""
    outcomes = SweepFolder(out).outcomes()
    mine = [outcomes[run.key] for run in planned(study) if run.key in outcomes]
    wrong = [outcome for outcome in mine if outcome.state != DONE]
    return {
        "study": study.name,
        "runs": len(study),
        "done": len(mine) - len(wrong),
        "failed": len(wrong),
        "errors": sorted({outcome.error for outcome in wrong}),
    }


def _identity(study: Study) -> dict[str, Any]:
    """Return what identifies a study, fit for JSON."""
    first = study.first()
    scenario = study.scenario_at(first)
    files, drawn = scenario.files(), study.posterior_file
    others = [
        study.scenario_at({**first, name: value}).files()
        for name, values in study.axes.items()
        if name != SEED
        for value in values
    ]
    return {
        "name": study.name,
        "base": {name: one for name, one in scenario.identity().items() if name not in files},
        "axes": [name.split(".")[0] for name in (*study.axes, SEED)],
        "inputs": ({} if drawn is None else {f"posterior {drawn.name}": checksum(drawn)})
        | {
            f"{name} {os.path.relpath(path, study.folder)}": checksum(path)
            for some in (files, *others)
            for name, path in some.items()
        },
        "versions": versions(),
    }


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY]


# ---- the methods section ----------------------------------------------------------------------

#: Settings that other sentences of the text mention.
TOLD = ("kind", SEED)


def methods_text(study: Study) -> str:
    """Return the paragraphs of a methods section, each in one line; nothing is run."""
    paragraphs = (_tools(), _workload(study), _design(study), _statistics(study), _metrics(study))
    return "\n\n".join(part for part in paragraphs if part)


def _tools() -> str:
    found = versions()
    others = ", ".join(f"{name} {number}" for name, number in found.items() if name != "hpcrowd")
    return f"The simulations were done with hpcrowd {found['hpcrowd']} ({others})."


def _workload(study: Study) -> str:
    """Return the kind of scenario, its inputs and own code with checksums, and settings."""
    first = study.first()
    scenario = study.scenario_at(first)
    points = [first] + [
        {**first, axis: value} for axis, values in study.axes.items() for value in values[1:]
    ]
    files, sources = dict[str, str](), dict[str, str]()
    for point in points:
        one = study.scenario_at(point)
        files |= {path.name: checksum(path) for path in one.files().values()}
        sources |= one.of_sources().get("sources_sha256", {})
    kind = type(scenario).model_fields["kind"].description
    sentences = [f"Each run simulates {kind} (hpcrowd {scenario.kind})."]
    if files:
        sentences.append(f"Input: {_sums(files)}.")
    if sources:
        sentences.append(f"Our own schedulers and users: {_sums(sources)}.")
    assert isinstance(study.scenario, dict)  # a file has been read
    given = {
        name: value
        for name, value in study.scenario.items()
        if name not in (*TOLD, *study.axes) and name not in scenario.files()
    }
    settings = ", ".join(f"{name} {_shown(value)}" for name, value in given.items())
    if settings:
        sentences.append(f"Settings: {settings}; all others have the defaults of this version.")
    else:
        sentences.append("All settings that are not varied have the defaults of this version.")
    return " ".join(sentences)


def _sums(files: dict[str, str]) -> str:
    return "; ".join(f"{name}, SHA-256 {number}" for name, number in sorted(files.items()))


def _design(study: Study) -> str:
    varied = {axis: values for axis, values in study.axes.items() if axis != SEED}
    factors = "; ".join(f"{axis} ({_values(values)})" for axis, values in varied.items())
    seeds = study.axes.get(SEED, [])
    sentences = []
    if varied:
        sentences.append(f"We varied {factors}.")
    if seeds:
        what = "Every combination was" if varied else "It was"
        sentences.append(
            f"{what} run with {plural(len(seeds), 'seed')} ({_values(seeds)}), "
            f"{plural(len(study), 'run')} in all; runs with the same seed draw the same random "
            "numbers."
        )
    else:
        sentences.append(f"That makes {plural(len(study), 'run')}.")
    if study.drawn is not None and study.posterior_file is not None:
        drawn = study.drawn
        names = ", ".join(f"{prior.name} ({prior.text} a priori)" for prior in drawn.priors)
        log = (drawn.provenance or {}).get("trace", "a log")
        sentences.append(
            f"Each seed took a draw of {names} from their joint posterior for {log} "
            f"({study.posterior_file.name}, SHA-256 {checksum(study.posterior_file)})."
        )
    if study.trim.text:
        sentences.append(
            f"Jobs submitted in {study.trim.text} of submissions do not count; utilization and "
            "throughput are those of the time that is left."
        )
    return " ".join(sentences)


def _statistics(study: Study) -> str:
    seeds, how = len(study.axes.get(SEED, [])), study.result
    if seeds < 2:
        return ""
    ratio = how.effects == "ratio"
    kind = "Student's"
    if how.interval == "predictive":
        kind = "predictive (quantiles of the runs)"
    if how.interval == "bootstrap":
        kind = f"percentile bootstrap (seeds resampled {RESAMPLES:,} times)"
    effects = (
        "geometric means of the ratios" if ratio else "means of the differences"
    ) + " to the run with the same seed and the first value of the setting"
    of = "; their intervals are those of the mean logarithm of the ratio" if ratio else ""
    return (
        f"We report means over the seeds with {100 * how.confidence:g} % intervals, {kind}. "
        f"Effects of a setting are {effects}, all else being equal{of}."
    )


def _metrics(study: Study) -> str:
    meanings = {metric.name: metric.meaning for metric in METRICS}
    listed = []
    for name in study.result.metrics:
        base, share = USER_METRICS.get(name, (name, ""))
        if base in meanings:
            over = f", {share[1:]}th percentile over users" if share else ""
            listed.append(f"{name} ({meanings[base]}{over})")
        else:
            listed.append(name)
    return f"Metrics: {'; '.join(listed)}."


def _values(values: Sequence[Any]) -> str:
    """Return the values of an axis; whole numbers in a row as a range."""
    numbers = all(isinstance(value, int) for value in values)
    if numbers and len(values) > 2 and list(values) == list(range(values[0], values[-1] + 1)):
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(_shown, values))


def _shown(value: Any) -> str:
    """Return a value as text, places of own code without their folders."""
    place = place_of(value)
    if place is not None and place.file is not None:
        return place._replace(module=place.file.name).text
    if isinstance(value, dict):
        inside = ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
        return f"({inside})"
    return ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)
