"""The folder a run leaves behind: whole or absent.

=================== ==============================================================================
jobs.parquet        every job, the columns of :data:`hpcrowd.environment.jobs.MEANING`
reactions.parquet   what reactions did to jobs, if there were any, the columns of
                    :data:`hpcrowd.analysis.accounts.reactions.MEANING`
attempts.parquet    runs of jobs that the platform stopped, if there were any, the columns of
                    :data:`hpcrowd.environment.platform.timeline.MEANING`
components.parquet  which rows are components of one job, where a grid split some, the columns of
                    :data:`hpcrowd.analysis.record_files.MEANING`
visits.parquet      who came and went, where users do, the columns of :data:`MEANING`
trace.swf.gz        the run as a trace, see :meth:`hpcrowd.analysis.run.Run.to_trace`
summary.json        the metrics, see :meth:`hpcrowd.analysis.run.Run.summary`
provenance.json     configuration, seed, versions, checksums, wall times: enough to run it again
*.png               pictures, see :mod:`hpcrowd.analysis.pictures.plots`
=================== ==============================================================================
"""

from __future__ import annotations

import csv
import json
import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcrowd.analysis.accounts.platform import write_attempts
from hpcrowd.analysis.accounts.reactions import write_reactions
from hpcrowd.analysis.record_files import write_components, write_decisions, write_visits
from hpcrowd.analysis.run import Run
from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.environment.jobs import MEANING, Column, JobTable, State
from hpcrowd.environment.traces.formats.swf import write_swf

if TYPE_CHECKING:
    pass


#: Format of a folder; it counts up when a version could no longer read what another wrote.
FORMAT = 1

#: Distributions whose versions decide about the bytes of a run.
VERSIONS_OF = ("hpcrowd", "mesa", "numpy", "numba", "networkx", "pyarrow")


def check_replaceable(folder: str | os.PathLike[str], option: str = "--out") -> None:
    """Make sure that results may take the place of ``folder``, before they are computed.

    Parameters
    ----------
    folder
        The folder.
    option
        What names it on the command line.

    Raises
    ------
    HpcrowdError
        When something is there that hpcrowd did not write.
    """
    target = Path(folder)
    if target.exists() and not (
        target.is_dir() and ((target / "provenance.json").exists() or not any(target.iterdir()))
    ):
        raise HpcrowdError(
            f"{target}: exists and is not a folder of results; choose another {option}"
        )


@contextmanager
def whole_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes the place of ``folder`` when all went well.

    An existing folder is replaced only if hpcrowd wrote it (it holds a ``provenance.json``) or it
    is empty.

    Raises
    ------
    HpcrowdError
        When something else is there, or it cannot be written.
    """
    target = Path(folder)
    check_replaceable(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if target.exists():
            shutil.rmtree(target)
        temporary.rename(target)
    except OSError as error:
        raise HpcrowdError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_results(run: Run, folder: str | os.PathLike[str], *, plots: bool = True) -> None:
    """Write everything about a run into a folder that appears only when it is complete."""
    with whole_folder(folder) as place:
        write_run(run, place, plots=plots)


def write_run(run: Run, place: Path, *, plots: bool = True) -> None:
    """Write the files of a run into an existing folder."""
    write_parquet(run.jobs, place / "jobs.parquet")
    if run.reactions:
        write_reactions(run.jobs, run.reactions, place / "reactions.parquet")
    if run.decisions is not None:
        write_decisions(run.decisions, place / "decisions.parquet")
    if run.attempts:
        write_attempts(run.attempts, place / "attempts.parquet")
    if run.components is not None:
        write_components(run.jobs, run.components, place / "components.parquet")
    if run.visits:
        write_visits(run.visits, place / "visits.parquet")
    write_swf(run.to_trace(), place / "trace.swf.gz")
    write_json(run.summary(), place / "summary.json")
    if plots:
        from hpcrowd.analysis.pictures.plots import write_overview

        write_overview(run, place)
    write_json(provenance(run), place / "provenance.json")


def write_json(value: Any, path: Path) -> None:
    """Write ``value`` as readable JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def write_parquet(jobs: JobTable, path: Path) -> None:
    """Write the table of jobs; column meanings stand in the metadata of each field."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = pa.array([state.name.lower() for state in State])
    arrays, fields = [], []
    for column in Column:
        values = jobs.column(column)
        if column is Column.STATE:
            array = pa.DictionaryArray.from_arrays(pa.array(values, pa.int8()), words)
        else:
            array = pa.array(values)
        arrays.append(array)
        fields.append(
            pa.field(column.name.lower(), array.type, metadata={"meaning": MEANING[column]})
        )
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path, compression="zstd")


def version_of(name: str) -> str:
    """Return the version of a distribution, or that it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def versions() -> dict[str, str]:
    """Return the versions of Python and of what decides about the bytes of a run."""
    return {"python": platform.python_version()} | {name: version_of(name) for name in VERSIONS_OF}


def provenance(run: Run) -> dict[str, Any]:
    """Return where a run comes from: enough to run it again."""
    if run.stored is not None:
        return run.stored
    return {
        "format": FORMAT,
        "label": run.label,
        "configuration": run.configuration,
        "trace": run.source,
        "jobs_repaired": dict(run.repaired),
        "jobs_dropped": dict(run.dropped),
        "versions": versions(),
        "wall_s": run.wall_s,
    }


def write_csv(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as comma-separated values, floats in full; None is empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heading)
        writer.writerows(rows)
