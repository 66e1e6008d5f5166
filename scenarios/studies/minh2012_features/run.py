"""Reproduce Minh 2012, chapter 3, from the traces it used: features of workloads.

Several versions of a log may be there. The one of which as many jobs completed as Table 3.1 says,
or nearly as many, is measured; the others are named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from hpcrowd.analysis.features.workload import Workload
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.scenarios.studies.minh2012_features.report import Reproduction
from hpcrowd.scenarios.studies.minh2012_features.study import (
    TraceOutcomes,
    published_jobs,
    study_trace,
)
from hpcrowd.scenarios.studies.options import TRACES
from hpcrowd.scenarios.studies.running import ARCHIVE, Log, Steps, find_versions, run_study
from hpcrowd.scenarios.terminal import Progress

#: The logs of Table 3.1 that can be read, by their abbreviations; cleaned where there is such a
#: version, as in the thesis.
STUDIED = {
    "FS0": Log("DAS2-fs0-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS1": Log("DAS2-fs1-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS2": Log("DAS2-fs2-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS3": Log("DAS2-fs3-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "FS4": Log("DAS2-fs4-2003-1.swf", f"{ARCHIVE}/l_das2/"),
    "OSC": Log("OSC-Clust-2000-*-cln.swf", f"{ARCHIVE}/l_osc/"),
    "HPC": Log("HPC2N-2002-*-cln.swf", f"{ARCHIVE}/l_hpc2n/"),
    "LLU": Log("LLNL-uBGL-2006-*.swf", f"{ARCHIVE}/l_llnl_ubgl/"),
    "LLA": Log("LLNL-Atlas-2006-*-cln.swf", f"{ARCHIVE}/l_llnl_atlas/"),
    "LLN": Log("LLNL-Thunder-2007-*-cln.swf", f"{ARCHIVE}/l_llnl_thunder/"),
    "SDB": Log("SDSC-BLUE-2000-*-cln.swf", f"{ARCHIVE}/l_sdsc_blue/"),
    "SDD": Log("SDSC-DS-2004-*-cln.swf", f"{ARCHIVE}/l_sdsc_ds/"),
    "LAN": Log("LANL-O2K-1999-*.swf", f"{ARCHIVE}/l_lanl_o2k/"),
}


def reproduce_minh2012_features(
    traces: Annotated[str | os.PathLike[str], TRACES],
    progress: Progress | None = None,
    *,
    only: Iterable[str] = STUDIED,
) -> Reproduction:
    """Run the study on every trace of it that is there.

    Parameters
    ----------
    traces
        Folder with the traces, plain or gzipped.
    progress
        Called before each step.
    only
        Abbreviations of the traces to look for.

    Raises
    ------
    TraceError
        When there is no trace at all, or one that cannot be read or has no job.
    """
    wanted = set(only)
    logs = {name: log for name, log in STUDIED.items() if name in wanted}
    found = find_versions(traces, logs)
    steps = Steps(len(found), progress)
    outcomes = {}
    for name, paths in found.items():
        steps.begin(f"{name}: {paths[0].name}")
        outcomes[name] = study_versions(name, paths)
    steps.end()
    return Reproduction(outcomes)


def study_versions(name: str, paths: Sequence[Path]) -> TraceOutcomes:
    """Measure a trace, of several versions the one that comes nearest to Table 3.1.

    Parameters
    ----------
    name
        Its abbreviation, a name of :data:`STUDIED`.
    paths
        The versions of its log, at least one.
    """
    read = [(path, read_trace(path)) for path in paths]
    measured = [
        (path, trace, Workload.from_trace(trace, name=log_name(path))) for path, trace in read
    ]
    path, trace, workload = min(measured, key=lambda one: abs(len(one[2]) - published_jobs(name)))
    facts: dict[str, Any] = {
        "source": path.name,
        "sha256": trace.sha256,
        "other_versions": [other.name for other in paths if other != path],
    }
    return study_trace(name, workload, facts)


def log_name(path: Path) -> str:
    """Return the name of a log's file without its suffixes."""
    return path.name.removesuffix(".gz").removesuffix(".swf")


def run_minh2012_features(traces: Path, *, out: Path | None, as_json: bool) -> bool:
    """Reproduce the study for the command line; return whether all required figures are reached.

    Parameters
    ----------
    traces
        Folder with the traces.
    out
        Folder to write; None writes nothing.
    as_json
        Print exactly one JSON object instead of tables.
    """
    return run_study(
        lambda progress: reproduce_minh2012_features(traces, progress), out=out, as_json=as_json
    )
