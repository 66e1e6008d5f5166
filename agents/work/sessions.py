"""Cut a trace into the sessions and batches of its users.

A *session* is a period of continuous work of one user, a *batch* a set of its jobs that overlap.
The definitions are those of Zakay and Feitelson (JSSPP 2012; 2015, section IV), with the jobs of
one user in the order of submission, arr and end their submissions and ends:

========= =======================================================================================
arrival   same session while ``arr[i] - arr[i-1] <= threshold``; batches inside each session by Max
last      think time ``arr[i] - end[i-1]``; negative: same batch; up to the threshold: same session
max       the same with the latest end so far, ``arr[i] - max(end[:i])``
+cut      ends count at most ``cut`` after their submission when sessions are separated
preceding every job is a session; what it follows is known, :mod:`hpcrowd.agents.work.graph`
========= =======================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.jobs import Column, Int64s, JobTable
from hpcrowd.environment.quantities import parse_duration, plural

#: Session threshold of the Arrival definition, s (Zakay and Feitelson 2012: 40 to 100 min are
#: plausible, one hour is chosen).
ARRIVAL_THRESHOLD = 3600


@dataclass(frozen=True)
class SessionDefinition:
    """How submissions form sessions.

    Attributes
    ----------
    kind
        ``arrival``, ``last``, ``max`` or ``preceding``.
    threshold
        s; None makes each job a session of its own. Last and Max are used with 20 min
        (Zilber et al. 2005, after Zakay and Feitelson 2012).
    cut
        s after its submission at which a job counts as ended at the latest; None for no cut.
    """

    kind: Literal["arrival", "last", "max", "preceding"] = "arrival"
    threshold: int | None = ARRIVAL_THRESHOLD
    cut: int | None = None

    @classmethod
    def parse(cls, text: str) -> SessionDefinition:
        """Read ``arrival:60m``, ``arrival:job``, ``max:20m``, ``last:20m+cut:1h``, ``preceding``.

        Raises
        ------
        QuantityError
            When it is none of these.
        """
        if text == "preceding":
            return cls("preceding", None)
        main, plus, cut = text.partition("+")
        kind, _, threshold = main.partition(":")
        cut_word, _, cut_time = cut.partition(":")
        if (
            kind not in ("arrival", "last", "max")
            or not threshold
            or (plus and (cut_word != "cut" or kind == "arrival"))
            or (threshold == "job" and kind != "arrival")
        ):
            raise QuantityError(
                f"sessions {text!r}: not known; write for example arrival:60m, arrival:job, "
                "last:20m, max:20m, last:20m+cut:1h or preceding"
            )
        try:
            return cls(
                kind,  # type: ignore[arg-type]
                None if threshold == "job" else parse_duration(threshold),
                parse_duration(cut_time) if plus else None,
            )
        except QuantityError as error:
            raise QuantityError(f"sessions {text!r}: {error}") from None

    def __str__(self) -> str:
        if self.kind == "preceding":
            return self.kind
        main = f"{self.kind}:{'job' if self.threshold is None else f'{self.threshold}s'}"
        return main if self.cut is None else f"{main}+cut:{self.cut}s"


@dataclass(frozen=True)
class Sessions:
    """The sessions and batches of all users.

    Jobs are in ``rows`` user by user, by submission; batches, sessions and users are consecutive
    pieces of it, numbered from 0 in that order.

    Attributes
    ----------
    definition
        The definition of sessions.
    rows
        Rows in the table of jobs, shape (jobs,).
    session_first, batch_first
        Where in ``rows`` each session and batch begins, and the end; shape (sessions + 1,) and
        (batches + 1,).
    user_first
        Which session each user begins with, and the end, shape (users + 1,).
    users
        The users' numbers, ascending, shape (users,).
    start, end
        s; first submission and latest end of each session, as recorded, shape (sessions,).
    """

    definition: SessionDefinition
    rows: Int64s
    session_first: Int64s
    batch_first: Int64s
    user_first: Int64s
    users: Int64s
    start: Int64s
    end: Int64s

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        jobs, users = plural(len(self.rows), "job"), plural(len(self.users), "user")
        found = f"{plural(len(self), 'session')} of {users}"
        return f"<Sessions {self.definition}: {jobs} in {found}>"

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return len(self.batch_first) - 1

    @property
    def user_of_session(self) -> Int64s:
        """Place of each session's user in ``users``, shape (sessions,)."""
        return np.repeat(np.arange(len(self.users)), np.diff(self.user_first))

    def jobs_of(self, session: int) -> Int64s:
        """Return the rows of the jobs of a session, by submission."""
        return self.rows[self.session_first[session] : self.session_first[session + 1]]

    def of_user(self, user: int) -> range:
        """Return the sessions of the user with number ``user``."""
        place = int(np.searchsorted(self.users, user))
        if place == len(self.users) or self.users[place] != user:
            raise QuantityError(
                f"user {user}: not in the trace; its {len(self.users)} users go from "
                f"{self.users[0]} to {self.users[-1]}"
            )
        return range(int(self.user_first[place]), int(self.user_first[place + 1]))


def find_sessions(jobs: JobTable, definition: SessionDefinition | str | None = None) -> Sessions:
    """Cut the recorded jobs into sessions and batches, and note both in the table.

    Parameters
    ----------
    jobs
        The table; its columns SESSION and BATCH are filled.
    definition
        How, or its text; the default is ``arrival:60m``.

    Raises
    ------
    QuantityError
        When the table is empty.
    """
    if not len(jobs):
        raise QuantityError("jobs: none in the table; sessions are cut out of at least one")
    if isinstance(definition, str):
        definition = SessionDefinition.parse(definition)
    definition = definition or SessionDefinition()
    rows = np.lexsort((np.arange(len(jobs)), jobs.recorded_submit, jobs.user))
    user = jobs.user[rows]
    arrival = jobs.recorded_submit[rows]
    end = jobs.recorded_end[rows]
    new_user = np.ones(len(rows), bool)
    new_user[1:] = user[1:] != user[:-1]
    users = np.cumsum(new_user) - 1

    gap = np.zeros(len(rows), np.int64)  # compared with the threshold
    by_arrival = definition.kind in ("arrival", "preceding")
    if by_arrival:
        gap[1:] = np.diff(arrival)
    else:
        known = end if definition.cut is None else np.minimum(end, arrival + definition.cut)
        gap[1:] = arrival[1:] - _latest(known, users, definition)[:-1]
    if definition.threshold is None:
        new_session = np.ones(len(rows), bool)
    else:
        new_session = new_user | (gap > definition.threshold)
    sessions = np.cumsum(new_session) - 1

    within = sessions if by_arrival else users
    new_batch = new_session.copy()
    new_batch[1:] |= arrival[1:] >= _latest(end, within, definition)[:-1]

    jobs.matrix[Column.SESSION, rows] = sessions
    jobs.matrix[Column.BATCH, rows] = np.cumsum(new_batch) - 1
    session_first = _firsts(new_session)
    return Sessions(
        definition=definition,
        rows=rows,
        session_first=session_first,
        batch_first=_firsts(new_batch),
        user_first=_firsts(new_user[new_session]),
        users=user[new_user],
        start=arrival[new_session],
        end=np.maximum.reduceat(end, session_first[:-1]),
    )


def _latest(end: Int64s, group: Int64s, definition: SessionDefinition) -> Int64s:
    """Return the end that counts after each job: its own (Last), or the latest of its group."""
    if definition.kind == "last":
        return end
    low = end.min()
    step = int(end.max() - low) + 1
    latest: Int64s = np.maximum.accumulate(end - low + group * step) - group * step + low
    return latest


def _firsts(new: NDArray[np.bool_]) -> Int64s:
    return np.append(np.flatnonzero(new), len(new)).astype(np.int64)
