"""A sweep: every run of a study, done by an engine, saved in a folder, collected in a frame."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.results import versions
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.quantities import plural
from hpcrowd.scenarios.kinds.base import Scenario, checksum
from hpcrowd.scenarios.sweeps.engines import Engine, Inline
from hpcrowd.scenarios.sweeps.folder import SweepFolder, locked
from hpcrowd.scenarios.sweeps.loop import WorkerDied, each_of
from hpcrowd.scenarios.sweeps.study import SEED, Study
from hpcrowd.scenarios.sweeps.worker import DONE, Outcome, Task, failed, work, write_shared
from hpcrowd.scenarios.unfinished import Interrupted

if TYPE_CHECKING:
    from hpcrowd.analysis.comparison.sweeps import SweepResult


#: Called with the number of finished runs, all runs, and failed runs.
Tell = Callable[[int, int, int], Any]

#: Hexadecimal digits of a key.
KEY = 20


@dataclass
class Planned:
    """A run of the design.

    Attributes
    ----------
    point
        Its settings on the axes.
    key
        Name of its files: the same for the same settings, inputs and trimming.
    scenario
        Its scenario; None if its settings contradict each other.
    error
        The contradiction.
    """

    point: dict[str, Any]
    key: str
    scenario: Scenario | None = None
    error: str = ""


@dataclass
class Sweep:
    """What a sweep has done so far.

    Attributes
    ----------
    total
        Runs of the study.
    kept
        Runs that were done before.
    over
        Finished runs, including those kept.
    failed
        Runs that failed.
    notes
        Notes for the user.
    result
        Frame and summary, once all runs have finished.
    """

    total: int
    kept: int = 0
    over: int = 0
    failed: int = 0
    notes: list[str] = field(default_factory=list)
    result: SweepResult | None = None


def sweep(
    study: Study,
    out: Path,
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
    with locked(out) as folder:
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
        """Return the file with the inputs of a scenario.

        Raises
        ------
        HpcrowdError
            When they cannot be prepared.
        """
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
    from hpcrowd.analysis.comparison.sweeps import Reporting, SweepResult

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
