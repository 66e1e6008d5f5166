"""The settings of a forecast, from which the options of ``hpcrowd forecast`` are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcrowd.analysis.forecast.futures import USERS
from hpcrowd.environment.clock import DAY, HOUR
from hpcrowd.environment.errors import QuantityError, check_choice, echo, not_one_of
from hpcrowd.environment.limits.numbers import MOST_RUNS, check_within
from hpcrowd.environment.state.state import ClusterState
from hpcrowd.environment.traces.trace import Trace

#: Longest forecast, days.
MOST_DAYS = 366

#: What a change may change.
CHANGES = ("processors", "scheduler", "overrun", "estimates", "machine")


def _setting(default: Any, about: str, **more: Any) -> Any:
    """Return a field (so RUF009 errs) that becomes an option, see ``takes_fields``."""
    return field(default=default, metadata={"about": about, **more})


@dataclass(frozen=True)
class ForecastSettings:
    """The settings of a forecast.

    Attributes
    ----------
    source
        A file: a snapshot, the queue of a Slurm, or a trace; or a state, or a trace.
    how
        How a trace is read.
    seed
        Seed of everything random.
    keep, executor, workers, address
        Where futures are kept, and what makes them.

    The others have their meanings beside them.
    """

    source: Path | ClusterState | Trace
    at: Any = _setting(  # noqa: RUF009
        None,
        "moment of a trace, a date or 30d since its origin, its last submission unless given; "
        "or when the queue was printed",
        metavar="WHEN",
    )
    past: Path | None = _setting(  # noqa: RUF009
        None, "accounting of the last weeks, for a queue of Slurm", metavar="FILE"
    )
    machine: tuple[Path, ...] = _setting(
        (),
        "nodes, partitions and rules of the machine: slurm.conf, scontrol show node, or a TOML "
        "file of `hpcrowd machine`; may be given several times",
        metavar="FILE",
    )
    processors: int | None = _setting(
        None, "size of the machine; as the input says unless given", min=1
    )
    how: Mapping[str, Any] = field(default_factory=dict)
    days: float = _setting(7.0, "how many days to foresee")
    futures: int = _setting(200, "how many futures to simulate", min=1, max=MOST_RUNS)
    seed: int = 0
    jobs: tuple[str, ...] = _setting(
        (),
        "a job that one would submit now: '64 processors for 6 h', '4 x 16 processors for 6 "
        "h', with ', user NAME' and ', in QUEUE' if you like",
        option="--job",
        metavar="JOB",
    )
    instead: tuple[str, ...] = _setting(
        (), "what one would submit instead of it, to compare", metavar="JOB"
    )
    changes: tuple[str, ...] = _setting(
        (),
        "a change to compare with: processors=128, scheduler=sjf, overrun=kill, "
        "estimates=exact, machine=FILE; may be given several times",
        option="--change",
        metavar="NAME=VALUE",
    )
    users: str = _setting("think-time", f"how users behave: {', '.join(USERS)}, or learned:FILE")
    scheduler: str | None = _setting(
        None, "scheduling policy; easy unless given, and slurm with a machine of Slurm"
    )
    estimates: str = _setting(
        "requested", "run times that the scheduler assumes, as for `hpcrowd replay`"
    )
    overrun: str = _setting(
        "keep", "whether jobs that exceed their requested time continue (keep) or end (kill)"
    )
    platform: Path | None = _setting(  # noqa: RUF009
        None,
        "TOML file of changes of the machine during the run, such as failures",
        metavar="FILE",
    )
    hindcasts: int = _setting(
        100,
        "earlier moments that bounds of starts are learned from; 0 leaves them as the futures say",
        min=0,
        max=10_000,
    )
    keep: Path | None = None
    executor: str = "processes"
    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        for name in ("past", "platform", "keep"):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, Path(given))
        for name, kind in (("machine", Path), ("jobs", str), ("instead", str), ("changes", str)):
            given = getattr(self, name)
            several = (given,) if isinstance(given, str | Path) else given
            object.__setattr__(self, name, tuple(map(kind, several)))
        try:
            object.__setattr__(self, "days", float(self.days))
        except (TypeError, ValueError):
            raise QuantityError(f"days {echo(self.days)}: must be a number of days") from None
        check_within("days", self.days, 1 / 24, MOST_DAYS)
        check_choice("overrun", self.overrun, ("keep", "kill"))
        if self.users not in USERS and not self.users.startswith("learned:"):
            raise QuantityError(f"users {self.users!r}: {not_one_of(self.users, USERS)}")
        if self.instead and not self.jobs:
            raise QuantityError("--instead: instead of what? Give that with --job")
        for change in self.changes:
            name, equals, value = change.partition("=")
            if not equals or not value or name not in CHANGES:
                raise QuantityError(
                    f"--change {change!r}: write NAME=VALUE, with a name of {', '.join(CHANGES)}"
                )

    @property
    def horizon(self) -> int:
        """How far, in whole hours, s."""
        return max(round(self.days * DAY / HOUR), 1) * HOUR
