"""JSON that is no log of jobs which can be read: what it is, and what to read instead.

Source: man pages of ``qstat``, ``pbsnodes``, ``condor_history``, ``bjobs``, ``oarstat``, ``flux
jobs`` and ``sinfo``, and what they print.
"""

from __future__ import annotations

import json

from hpcrowd.environment.traces.formats.common.files import json_keys

#: Keys of the outermost object, or of the objects in the outermost list, and what has them.
BY_KEYS = (
    (("ClusterId", "ProcId"),
     "a history of HTCondor as JSON; write it with condor_history -long"),
    (("pbs_version", "Jobs"),
     "output of qstat; read the accounting log, PBS_HOME/server_priv/accounting"),
    (("pbs_version", "nodes"),
     "output of pbsnodes: nodes, not jobs; read PBS_HOME/server_priv/accounting"),
    (("COMMAND", "RECORDS"),
     "output of LSF as JSON; read lsb.acct, which bacct reads, in the log folder of mbatchd"),
    (("cells", "nbformat"), "a Jupyter notebook, not a log of jobs; read the file that it reads"),
    (("type", "features"), "GeoJSON, a map, not a log of jobs"),
    (("jobs_in", "makespan_s"),
     "a result of hpcrowd; its jobs are in trace.swf.gz in the same folder"),
    (("label", "configuration"),
     "a result of hpcrowd; its jobs are in trace.swf.gz in the same folder"),
)  # fmt: skip

#: Lists of what Slurm prints about a machine, without a list of jobs.
OF_MACHINES = frozenset(("sinfo", "nodes", "partitions", "reservations"))

#: Times that only jobs of Flux have.
OF_FLUX = frozenset(("t_depend", "t_submit", "t_cleanup"))

FLUX = ("output of flux jobs; print columns, flux jobs -A -o '{id},{userid},{t_submit},{t_run},"
        "{t_cleanup},{ncores},{duration}', and read them with --map")  # fmt: skip

#: Keys that are shown of objects of unknown kind.
SHOWN = 4


def named_json(head: bytes) -> str:
    """Return what JSON that begins with ``head`` is, and the cure; empty if it is not known."""
    keys = json_keys(head)
    top = keys.get("", frozenset())
    for wanted, what in BY_KEYS:
        if top.issuperset(wanted):
            return what
    if "jobs" not in top and "meta" in top and not OF_MACHINES.isdisjoint(top):
        return "what Slurm prints about a machine; hpcrowd machine reads it, jobs: sacct --json"
    if not OF_FLUX.isdisjoint(top | keys.get("jobs", frozenset())):
        return FLUX
    if any({"owner", "state"} <= one and ("submissionTime" in one or "submission_time" in one)
           for one in keys.values()):  # fmt: skip
        return "output of oarstat; make a table of its jobs, such as CSV, and read it with --map"
    if not top or (not (lines := _is_lines(head)) and head.lstrip()[:1] != b"["):
        return ""
    given = "FILE, lines=True" if lines else "FILE"
    return (
        f"{'lines' if lines else 'a list'} of JSON objects with {', '.join(sorted(top)[:SHOWN])}; "
        f"make a table of it, pandas.read_json({given}).to_csv('jobs.csv'), and read it with --map"
    )


def _is_lines(head: bytes) -> bool:
    """Return whether the first line is an object, and the next one begins like one."""
    first, _, rest = head.strip().partition(b"\n")
    if rest and not rest.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict) and bool(rest)
    except (ValueError, RecursionError):
        return False
