"""The example of the pages about policies: one small workload under each of them.

    python docs/policy_pictures.py [NAME ...]

draws the pictures, all or those named. The workload is ``docs/policies/example.swf``;
``generate.py`` takes the tables from here.

For a new policy: a page ``docs/policies/NAME.md`` with the sections of the others and the marked
place ``policy_NAME`` for its options (``-`` in the name is ``_`` there), an entry in PICTURES, a
row in the second table of ``index.md``, a line in ``mkdocs.yml``; then this script with its name
(with none if its last job ends after all others: the pictures share one scale), and
``generate.py``. ``tests/house/test_policy_pages.py`` says what is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from markdown_tables import table

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "policies"
PICTURES_FOLDER = ROOT / "docs" / "pictures" / "policies"
WORKLOAD = PAGES / "example.swf"

#: Policies that share the page of another one.
SHARED_PAGES = {
    "ljf": "sjf",
    "order": "sjf",
    "selective-categorized": "selective",
    "wfp3": "priority",
    "unicef": "priority",
    "multifactor": "priority",
    "fitted": "site",
}

#: Policies on shared pages that have no options, and no table of them.
WITHOUT_OPTIONS = ("sjf", "ljf")

#: Pictures by name: the scheduler as a user gives it, and the title.
PICTURES: dict[str, tuple[str, str]] = {
    "fcfs": ("fcfs", "FCFS: first come, first served"),
    "sjf": ("sjf", "SJF: shortest job first"),
    "ljf": ("ljf", "LJF: longest job first"),
    "easy": ("easy", "EASY backfilling"),
    "easy-sjbf": ("easy:backfill=sjbf", "EASY, shortest backfilled first"),
    "easy-largest": ("easy:backfill=largest", "EASY, largest backfilled first"),
    "easy-best-fit": ("easy:backfill=best-fit", "EASY, best fit backfilled first"),
    "conservative": ("conservative", "Conservative backfilling"),
    "selective": ("selective", "Selective backfilling"),
    "selective-categorized": ("selective-categorized", "Selective, by category"),
    "creasy": ("creasy", "CREASY"),
    "multi-queue": (
        "multi-queue:priorities=1:10,user-jobs=2",
        "Two queues, at most two jobs a user",
    ),
    "fair-share": ("fair-share:half-life=1d", "Fair share"),
    "site": ("site:hours=90m:0-1", "Long jobs do not start in the first hour"),
    "wfp3": ("wfp3", "WFP3"),
    "unicef": ("unicef:backfill=conservative", "UNICEF, with a plan"),
    "multifactor": ("multifactor", "Multifactor priority"),
    "slurm": ("slurm", "Slurm: multifactor priority and backfilling"),
    "adaptive": (
        "adaptive:every=2h,underload-positive=easy,overload-positive=sjf",
        "Adaptive: EASY, and SJF when overloaded",
    ),
}


def page_of(policy: str) -> str:
    """Return the name of the page of a policy."""
    return f"{SHARED_PAGES.get(policy, policy)}.md"


def names() -> dict[int, str]:
    """Return the letters of the jobs, by number."""
    return {number: chr(ord("A") + number - 1) for number in range(1, 27)}


def example(scheduler: Any) -> Any:
    """Return the run of the workload under a scheduler, with users who submit as recorded."""
    from hpcrowd.environment.traces.formats.swf import read_swf
    from hpcrowd.scenarios.kinds.replay import replay

    trace, more = read_swf(WORKLOAD), {}
    if str(scheduler).startswith("slurm"):
        from hpcrowd.environment.machine.model import Machine, NodeType, PrioritySettings

        nodes = (NodeType(name=f"n[1-{trace.processors}]", cores=1),)
        # Large jobs first, old ones before them: 1000 points after a day.
        priority = PrioritySettings(weight_size=100, weight_age=1000, max_age=86_400)
        more["machine"] = Machine(nodes=nodes, priority=priority)
    return replay(trace, users="rigid", scheduler=scheduler, **more)


def last_second() -> int:
    """Return when the last job ends under the slowest policy, s: the end of every picture."""
    return max(int(example(scheduler).jobs.end.max()) for scheduler, _ in PICTURES.values())


def minutes(seconds: float) -> str:
    """Return a time in whole minutes."""
    return f"{seconds / 60:.0f}"


def starts_table() -> str:
    """Return when each job starts under each policy, mean and longest wait, and the last end."""
    runs = {scheduler: example(scheduler) for scheduler, _ in PICTURES.values()}
    letters = [names()[int(number)] for number in next(iter(runs.values())).jobs.number]
    rows = []
    for scheduler, run in runs.items():
        jobs = run.jobs
        starts = [minutes(start) for start in jobs.start]
        waits = jobs.start - jobs.submit
        rows.append(
            (f"[`{scheduler}`]({page_of(scheduler.partition(':')[0])})", *starts,
             minutes(waits.mean()), minutes(waits.max()), minutes(jobs.end.max()))
        )  # fmt: skip
    return table(("policy", *letters, "mean wait", "longest wait", "last end"), rows)


def policies_table() -> str:
    """Return every policy with what it does, in short."""
    from hpcrowd.scenarios.commands.lists.policies import policies

    rows = [(f"[`{one.name}`]({page_of(one.name)})", one.does) for one in policies()]
    return table(("policy", "what it does"), rows)


def options_table(name: str) -> str:
    """Return the options of a policy."""
    from hpcrowd.environment.schedulers.names import SCHEDULERS
    from hpcrowd.scenarios.commands.lists.policies import options

    rows = [
        (f"`{one.name}`", f"`{one.default}`" if one.default else "not set", one.meaning)
        for one in options(SCHEDULERS[name])
    ]
    return table(("option", "default", "meaning"), rows) if rows else "It has no options.\n"


def keys_table() -> str:
    """Return the keys of orders."""
    from hpcrowd.environment.schedulers.ordered import KEYS

    return table(("key", "meaning"), [(f"`{name}`", key.meaning) for name, key in KEYS.items()])


def places_of_policies() -> dict[str, Callable[[], str]]:
    """Return what fills the marked places on the pages of policies."""
    from hpcrowd.environment.schedulers.names import SCHEDULERS

    places: dict[str, Callable[[], str]] = {
        "policies": policies_table,
        "policy_starts": starts_table,
        "policy_keys": keys_table,
    }
    for name in SCHEDULERS:
        if name not in WITHOUT_OPTIONS:
            places[f"policy_{name.replace('-', '_')}"] = partial(options_table, name)
    return places


def write_pictures(chosen: list[str] | None = None) -> None:
    """Draw the pictures, all or those named."""
    from hpcrowd.analysis.pictures.plots import write_picture
    from hpcrowd.analysis.pictures.small_gantt import small_gantt

    PICTURES_FOLDER.mkdir(parents=True, exist_ok=True)
    last = last_second()
    for name in chosen or list(PICTURES):
        scheduler, title = PICTURES[name]
        figure = small_gantt(example(scheduler), names=names(), title=title, last=last)
        write_picture(figure, PICTURES_FOLDER / f"{name}.png")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    write_pictures(sys.argv[1:])
