"""What a change of the cluster does: the record, the base case, the change, and who gains.

A log is replayed without and with a change of settings, by users who submit as recorded (rigid) and
by users who react. :func:`what_if` returns a :class:`WhatIf`, which prints itself as a table, with
a sentence; ``hpcrowd what-if`` is the same on the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcrowd.environment.errors import QuantityError, not_one_of
from hpcrowd.environment.registry import imported
from hpcrowd.scenarios.kinds.base import with_settings
from hpcrowd.scenarios.kinds.replay import ReplayConfig
from hpcrowd.scenarios.kinds.trace_settings import READING
from hpcrowd.scenarios.terminal import Progress, plain_table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.simulation import Simulation
    from hpcrowd.environment.traces.trace import Trace

#: Users who do not react, with whom others are compared.
RIGID = "rigid"

#: Runs of each kind of users.
WHEN = ("before", "after")

#: Groups of users by their recorded processor-seconds, equally many in each.
GROUPS = ("light", "middle", "heavy")

#: Metrics in the table.
SHOWN = (
    "wait_mean_s", "wait_max_s", "bounded_slowdown_mean", "utilization",
    "throughput_jobs_per_day", "makespan_s", "lateness_mean_s", "jobs_rejected", "jobs_killed",
)  # fmt: skip

#: A user is better or worse off if its mean wait changes by more than this, s. Our choice.
NOTICED = 60.0

#: What the table of groups shows.
GROUPED = (
    "each user counts once; less, longer: by more than a minute; light, middle and heavy: a third "
    "of the users each, by recorded work"
)

#: Most users who are named among those who wait longer.
MOST_NAMED = 3

#: What fits ``scheduler=fitted``.
FITTED = "hpcrowd.scenarios.forecasts.fitting:with_found"


class Share(NamedTuple):
    """How a group of users fares, each counted once."""

    users: int
    before: float  #: mean over users of their mean waits, s
    after: float
    less: float  #: share of users who wait less, by more than :data:`NOTICED`
    longer: float  #: share of users who wait longer


@dataclass(frozen=True)
class WhatIf:
    """Runs before and after a change.

    In a terminal and in a notebook it is a table: the record, the base case, the change, and which
    users wait less or longer.
    """

    trace: str  #: name of the trace
    change: str  #: the settings that change, and their values
    #: Runs by users: ``rigid``, and those who react.
    before: dict[str, Run]
    after: dict[str, Run]

    @property
    def recorded(self) -> dict[str, Any]:
        """The metrics of the record by name; empty if it has no waits."""
        from hpcrowd.analysis.run import recorded_of

        return recorded_of(self.before[self._reacting])

    @property
    def _reacting(self) -> str:
        """The users who react; rigid ones if there are no others."""
        return list(self.before)[-1]

    @cached_property
    def lines(self) -> list[str]:
        """What was run, and what to know about it."""
        from hpcrowd.analysis.run import headline, warnings_of

        before, after = self.before[self._reacting], self.after[self._reacting]
        size = f"{before.processors:,} processors"
        if before.processors != after.processors:
            size = f"{after.processors:,} instead of {size}"
        notes = headline(before)[1:]
        known = "\n".join(notes)
        more = [one for run in (*self.before.values(), *self.after.values()) for one in run.remarks]
        more += [one for one in warnings_of(before) if one not in more]
        added = [f"  {one}" for one in dict.fromkeys(more) if one not in known]
        return [f"{self.trace}: {len(before.jobs):,} jobs, {self.change}: {size}", *notes, *added]

    def rows(self) -> Iterator[tuple[str, list[float | None]]]:
        """Yield each metric: its value in the record, and before and after, by users."""
        from hpcrowd.analysis.metrics import METRICS

        runs = [run for users in self.before for run in (self.before[users], self.after[users])]
        known = [metric.name for metric in METRICS if metric.name in SHOWN]
        for name in sorted(known, key=SHOWN.index):
            values = [run.metrics[name] for run in runs]
            if any(values) or not name.startswith("jobs_"):
                yield name, [self.recorded.get(name), *values]

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics as a frame, in the units of their names.

        Returns
        -------
        frame
            A row for each metric; a column ``recorded``, and for each kind of users ``before`` and
            ``after``.
        """
        import pandas as pd

        columns = [("recorded", ""), *((users, when) for users in self.before for when in WHEN)]
        found = dict(self.rows())
        frame = pd.DataFrame.from_dict(found, orient="index", dtype="float64")
        return frame.set_axis(pd.MultiIndex.from_tuples(columns), axis=1)

    def users(self, of: str = "") -> pd.DataFrame:
        """Return the users and their mean waits, s, those whose waits grow most first.

        Parameters
        ----------
        of
            Which users: ``rigid``, or those who react, also if empty.

        Returns
        -------
        frame
            By ``user`` number: ``name`` if the trace has names, ``jobs``, ``group``, and the mean
            wait ``before`` and ``after``, with its ``change``.
        """
        import pandas as pd

        jobs = self.before[of or self._reacting].jobs
        who, before, after = self._waits(of or self._reacting)
        frame = pd.DataFrame({"before": before, "after": after}, index=pd.Index(who, name="user"))
        frame["change"] = frame["after"] - frame["before"]
        frame.insert(0, "jobs", pd.Series(jobs.user).value_counts().reindex(who))
        of_group = {int(n): name for name, numbers in groups_of(jobs).items() for n in numbers}
        frame.insert(1, "group", frame.index.map(of_group))
        if jobs.names.get("user"):
            frame.insert(0, "name", [jobs.who(int(number)) for number in who])
        return frame.sort_values("change", ascending=False, kind="stable")

    def _waits(self, users: str) -> tuple[Int64s, Any, Any]:
        """Return users who ran jobs before and after, and their mean waits, s."""
        from hpcrowd.analysis.metrics import per_user

        old, new = (per_user(runs[users].jobs)["wait_mean_s"] for runs in (self.before, self.after))
        both, first, other = np.intersect1d(old[0], new[0], assume_unique=True, return_indices=True)
        return both, old[1][first], new[1][other]

    def shares(self, users: str) -> dict[str, Share]:
        """Return how the groups of :data:`GROUPS` fare, and ``all``; none without users."""
        who, before, after = self._waits(users)
        groups = groups_of(self.before[users].jobs) | {"all": who}
        found = {}
        for name, members in groups.items():
            mine = np.isin(who, members)
            if mine.any():
                old, change = before[mine], (after - before)[mine]
                means = float(old.mean()), float(after[mine].mean())
                less, longer = (change < -NOTICED).mean(), (change > NOTICED).mean()
                found[name] = Share(int(mine.sum()), *means, float(less), float(longer))
        return found

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        from hpcrowd.analysis.numbers import time_text

        def waits(users: str) -> str:
            runs = (self.after[users], self.before[users])
            new, old = (time_text(run.metrics["wait_mean_s"]) for run in runs)
            return f"{new} instead of {old}"

        users = self._reacting
        text = f"With {self.change}, jobs wait on average {waits(users)}"
        if users != RIGID:
            text += f" if users react ({users}), and {waits(RIGID)} if they submit as recorded"
        if "all" in (shares := self.shares(users)):
            less, longer = (f"{100 * share:.0f} %" for share in shares["all"][-2:])
            whose = " who react" if users != RIGID else ""
            text += f"; of the users{whose}, {less} wait less and {longer} longer"
        lost = self._more("jobs_rejected"), self._more("jobs_killed")
        for count, what in zip(lost, ("cannot run any more", "more are killed"), strict=True):
            if count > 0:
                text += f"; {count:,} jobs {what}"
        return f"{text}."

    def _more(self, count: str) -> int:
        """Return how many more there are of what a metric counts, of users who react."""
        runs = (self.after[self._reacting], self.before[self._reacting])
        after, before = (int(run.metrics[count]) for run in runs)
        return after - before

    def tables(self) -> list[Table]:
        """Return the tables for a terminal: metrics, and who waits less or longer."""
        from hpcrowd.analysis.metrics import format_metric, words_of

        heads = [f"{users}\n{when}" for users in self.before for when in WHEN]
        known = bool(self.recorded)
        table = plain_table("", *(["recorded"] if known else []), *heads)
        for name, (recorded, *values) in self.rows():
            cells = [format_metric(name, one) for one in values]
            beside = ["" if recorded is None else format_metric(name, recorded)] if known else []
            table.add_row(words_of(name), *beside, *cells)
        who = plain_table(
            "who waits", "", "users", "before", "after", "less", "longer", words=2,
            rows=[row for users in self.before for row in self._of_groups(users)],
        )  # fmt: skip
        return [table, who]

    def _of_groups(self, users: str) -> Iterator[tuple[str, ...]]:
        from hpcrowd.analysis.numbers import time_text

        for name, one in self.shares(users).items():
            waits = time_text(one.before), time_text(one.after)
            shares = f"{100 * one.less:.0f} %", f"{100 * one.longer:.0f} %"
            yield users, name, f"{one.users:,}", *waits, *shares

    def losers(self) -> str:
        """Return the users whose waits grow most, in a line; empty if no wait grows."""
        from hpcrowd.analysis.numbers import time_text

        who, before, after = self._waits(self._reacting)
        order = np.argsort(before - after, kind="stable")[:MOST_NAMED]
        jobs = self.before[self._reacting].jobs
        found = [
            f"user {jobs.who(int(who[n]))} from {time_text(before[n])} to {time_text(after[n])}"
            for n in order
            if after[n] - before[n] > NOTICED
        ]
        return f"waits that grow most ({self._reacting}): {', '.join(found)}" if found else ""

    def show(self, console: Console) -> None:
        """Print it on a ``rich`` console."""
        for line in self.lines:
            console.print(line, soft_wrap=True)
        for table in self.tables():
            console.print(table)
            console.print()
        for line in (GROUPED, self.losers(), self.sentence):
            if line:
                console.print(line, soft_wrap=True)

    def __repr__(self) -> str:
        from rich.console import Console

        text = StringIO()
        self.show(Console(file=text, width=120, highlight=False, markup=False))
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def _repr_html_(self) -> str:
        """Return its tables and lines for notebooks."""
        from html import escape

        parts = [f"<p>{'<br>'.join(map(escape, self.lines))}</p>"]
        for table in self.tables():
            heads = [f"<th>{escape(str(one.header))}</th>" for one in table.columns]
            rows = zip(*(one.cells for one in table.columns), strict=True)
            lines = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
            body = "".join(f"<tr>{line}</tr>" for line in ("".join(heads), *lines))
            parts.append(f"<table>{body}</table>")
        last = [line for line in (GROUPED, self.losers(), self.sentence) if line]
        return "".join([*parts, f"<p>{'<br>'.join(map(escape, last))}</p>"])

    def to_json(self) -> dict[str, Any]:
        """Return it fit for JSON: all metrics of all runs, and who waits less or longer."""
        return {
            "trace": self.trace,
            "change": self.change,
            "recorded": self.recorded,
            "users": {
                users: {
                    "before": self.before[users].summary(),
                    "after": self.after[users].summary(),
                    "groups": {name: one._asdict() for name, one in self.shares(users).items()},
                }
                for users in self.before
            },
            "sentence": self.sentence,
        }


def groups_of(jobs: JobTable) -> dict[str, Any]:
    """Return the numbers of the users of each group, by their recorded work."""
    work = (jobs.processors * (jobs.recorded_end - jobs.recorded_start)).astype(np.float64)
    users, place = np.unique(jobs.user, return_inverse=True)
    order = np.argsort(np.bincount(place, weights=work), kind="stable")
    return dict(zip(GROUPS, np.array_split(users[order], len(GROUPS)), strict=True))


def changed_settings(change: Mapping[str, Any] | str | Iterable[str]) -> dict[str, Any]:
    """Return the settings that change, given as a mapping, or as texts such as ``processors=2x``.

    Raises
    ------
    QuantityError
        When there are none, or one is not a setting of a replay that may change.
    """
    example = "write for example processors=+20%, in Python {'processors': '+20%'}"
    if isinstance(change, Mapping):
        found = dict(change)
    else:
        if not isinstance(change, str | list | tuple):
            raise QuantityError(f"change {change!r}: not a setting with its value; {example}")
        found = {}
        for text in [change] if isinstance(change, str) else change:
            name, equals, value = str(text).partition("=")
            if not equals or not name.strip() or not value.strip():
                raise QuantityError(f"change {text!r}: not a setting with its value; {example}")
            found[name.strip().lstrip("-").replace("-", "_")] = value.strip()
    if not found:
        raise QuantityError(f"change: nothing changes; {example}")
    known = [name for name in ReplayConfig.settings() if name not in (*READING, "strict", "seed")]
    for name in found:
        if name not in known:
            raise QuantityError(f"change {name!r}: {not_one_of(name, known)}")
    return found


@with_settings(ReplayConfig)
def what_if(
    trace: Trace | str | os.PathLike[str],
    change: Mapping[str, Any] | str | Sequence[str] = (),
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> WhatIf:
    """Replay a trace without and with a change, by rigid users and by users who react.

    All runs have the settings in common. ``users`` are those who react, beside rigid ones.

    Parameters
    ----------
    trace
        What was recorded: a trace, the path of one in any format, or ``archive:NAME``.
    change
        Settings of a replay that the change sets: by name, or as texts such as
        ``"processors=+20%"``.
    progress
        Called with what is done, and how much of it, now and then.

    Raises
    ------
    HpcrowdError
        One line that says what is wrong.

    Examples
    --------
    >>> from hpcrowd import parse_swf
    >>> lines = "1 0 0 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1", "2 0 60 60 1" + " -1" * 13
    >>> found = what_if(parse_swf("; MaxProcs: 1\\n" + "\\n".join(lines)), "processors=2x")
    >>> [run.metrics["wait_mean_s"] for run in (found.before["rigid"], found.after["rigid"])]
    [30.0, 0.0]
    """
    changed = changed_settings(change)
    if "users" in changed:
        settings["users"] = changed.pop("users")
        if not changed:
            raise QuantityError("change: only users, who are asked about it; give a setting more")
    base = ReplayConfig.configure(**settings)
    then = ReplayConfig.configure(**{**settings, **changed})
    plain = then.plain()
    same = [name for name in changed if plain[name] == base.plain()[name]]
    if len(same) == len(changed):
        raise QuantityError(f"change {same[0]} {plain[same[0]]}: is what the base case has already")
    words = [(then.difference(name, plain[name]) or [f"{name} {plain[name]}"]) for name in changed]
    given = base.given(trace)
    if progress is not None:
        progress("reading", 1, 1)
    who = base.plain()["users"]
    reacting = str(who["name"] if isinstance(who, dict) else who).partition("(")[0]
    runs: dict[str, dict[str, Run]] = {when: {} for when in WHEN}
    kinds = [(RIGID, RIGID), *([] if reacting == RIGID else [(reacting, base.users)])]
    for users, own in kinds:
        for when, config in zip(WHEN, (base, then), strict=True):
            number = sum(map(len, runs.values()))
            settled = _with_scheduler(config, given).model_copy(update={"users": own})
            watch = _watch(progress, f"{users}, {when}", number, len(given))
            runs[when][users] = settled.run(given, watch)
    text = ", ".join(word for one in words for word in one).replace("_", "-")
    return WhatIf(Path(given.source).name, text, runs["before"], runs["after"])


def _with_scheduler(config: ReplayConfig, trace: Trace) -> ReplayConfig:
    """Return a configuration whose scheduler is fitted to the trace, if it is to be."""
    if str(config.scheduler).partition(":")[0] != "fitted":
        return config
    found: ReplayConfig = imported(FITTED)(config, trace)
    return found


def _watch(progress: Progress | None, label: str, number: int, jobs: int) -> Any:
    """Return what is called with the simulation of one of the four runs; None for nothing."""
    if progress is None:
        return None

    def watch(model: Simulation) -> None:
        done = min(model.events, 2 * jobs)
        progress(label, 2 * jobs * number + done, 8 * jobs)

    return watch
