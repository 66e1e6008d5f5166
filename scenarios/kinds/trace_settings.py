"""Settings of runs that begin with a trace, which the kinds replay and resample share."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast, get_args, override

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from hpcrowd.environment.clock import Clock
from hpcrowd.environment.errors import QuantityError, check_choice
from hpcrowd.environment.limits.numbers import LEAST_SPEED, MOST_SPEED, check_within
from hpcrowd.environment.quantities import (
    is_multiple,
    parse_factor,
    parse_processors,
    plural,
)
from hpcrowd.environment.registry import imported, located, text_of
from hpcrowd.environment.schedulers.estimates import Estimates, Predictor, parse_estimates
from hpcrowd.environment.schedulers.names import SCHEDULER_NAMES
from hpcrowd.environment.traces.requested_times import RequestedTimes
from hpcrowd.environment.traces.trace import (
    Conversion,
    Conversions,
    Trace,
    as_trace,
    assumed,
    jobs_from_trace,
)
from hpcrowd.scenarios.kinds.base import Scenario, checksum
from hpcrowd.scenarios.kinds.fields import (
    FOLDER,
    FileConfig,
    Processors,
    SchedulerChoice,
    Sessions,
    Strict,
    read_as,
)

if TYPE_CHECKING:
    from hpcrowd.agents.work.recorded import Work
    from hpcrowd.environment.cluster import ClusterSpec
    from hpcrowd.environment.jobs import Int64s, JobTable
    from hpcrowd.environment.traces.formats.common.base import FormatOptions


#: The column of Slurm's accounting that becomes the queue.
QueueOf = Literal["partition", "qos"]

_QUEUE_FILE = re.compile(r"(?<=file=)[^,]+")


#: Where the maps of your own tables are read, and found.
TABLES = "hpcrowd.environment.traces.formats.tables"

#: Settings of how a trace is read: what the file itself does not say.
READING = ("input_format", "map", "zone", "queue", "anonymise")


def reading_options(
    input_format: str | None = None,
    map: str | Path | None = None,  # noqa: A002 as the option is called
    zone: str | None = None,
    queue: str | None = None,
    anonymise: bool | None = None,
    *,
    strict: bool = False,
) -> FormatOptions:
    """Return how a trace is read, from the settings of :data:`READING` and ``strict``.

    A trace with a mapping is your own table, unless the format is given.
    """
    from hpcrowd.environment.traces.formats.common.base import FormatOptions
    from hpcrowd.environment.traces.formats.registry import parse_format
    from hpcrowd.environment.traces.headers import parse_zone

    parse_zone(zone)
    queue = queue or "partition"
    check_choice("queue", queue, get_args(QueueOf))
    table = None
    if map is not None:
        table = imported(f"{TABLES}.mapping:read_mapping")(map_file(map))
    name = input_format or (None if map is None else "table")
    known = None if name is None else parse_format(name).name
    return FormatOptions(
        zone=zone, queue=cast("QueueOf", queue), mapping=table, format=known,
        anonymise=bool(anonymise), strict=strict,
    )  # fmt: skip


def map_file(name: str | Path, folder: Path | None = None) -> Path:
    """Return the file of a map: one that comes with hpcrowd, else a path relative to a folder."""
    from hpcrowd.environment.traces.formats.registry import map_path

    return map_path(name, folder)


def reading_words(how: Mapping[str, Any]) -> list[str]:
    """Return the options of how traces are read as words of a command line."""
    given = {name.replace("_", "-"): value for name, value in how.items() if value is not None}
    return [
        word
        for name, value in given.items()
        for word in ((f"--{name}",) if value is True else (f"--{name}", str(value)))
    ]


class TraceReading(Strict):
    """The settings of how a trace is read."""

    input_format: str | None = Field(
        None, description="format of the trace; detected unless given, see `hpcrowd convert --list`"
    )
    map: str | None = Field(
        None,
        description="TOML file that maps the columns of your own table to fields; or a map that "
        "comes with hpcrowd, see `hpcrowd convert --list`",
    )
    zone: str | None = Field(
        None,
        description="time zone of local times in the trace, such as Europe/Stockholm; UTC unless "
        "given",
    )
    queue: QueueOf | None = Field(
        None,
        description="what of Slurm is the queue of a job: partition or qos; partition unless given",
    )
    anonymise: bool | None = Field(
        None, description="replace names of users, groups and programs, in all outputs"
    )

    @field_validator("zone", "input_format")
    @classmethod
    def _known(cls, value: str | None, info: ValidationInfo) -> str | None:
        given: dict[str, Any] = {str(info.field_name): value}
        reading_options(**given)
        return value

    def reading(self, folder: Path) -> FormatOptions:
        """Return how the trace is read; the mapping of a table is relative to a folder."""
        given = {name: getattr(self, name) for name in READING}
        if self.map is not None:
            given["map"] = map_file(self.map, folder)
        return reading_options(**given, strict=getattr(self, "strict", False))


def _speed(text: str) -> None:
    check_within("speed", parse_factor(text, "speed"), LEAST_SPEED, MOST_SPEED)


class TraceScenario(TraceReading, Scenario):
    """The settings of a run that begins with a trace."""

    INPUT: ClassVar[str] = "trace"

    trace: str | None = Field(None, description="trace in any format, or `archive:NAME`")
    sessions: Sessions = Field(
        "arrival:60m",
        description="how submissions form sessions: arrival:60m, arrival:job, last:20m, max:20m, "
        "or preceding (fields 17 and 18)",
    )
    scheduler: SchedulerChoice = Field(
        "easy",
        description=f"scheduling policy: {', '.join(SCHEDULER_NAMES)} (the recorded waits); "
        "with options as name:option=value,option=value; or your own as FILE.py:CLASS. "
        "`hpcrowd policies` describes them",
    )
    estimates: str | Estimates | Predictor = Field(
        "requested",
        description="run times that the scheduler assumes: requested, exact, a multiple of the "
        "requested time such as 1.5x, or a predictor as in `hpcrowd predict`: last-two, nearest, "
        "history:SDSC04, or FILE.json",
    )
    processors: Processors = Field(
        "1x",
        description="size of the machine: a number, or a multiple of the trace's such as 2x, 1.2 "
        "or +20%",
    )
    speed: Annotated[str, read_as(_speed)] = Field(
        "1x", description="speed of the processors; run times are divided by it"
    )
    requested: Annotated[str, read_as(RequestedTimes.parse)] = Field(
        "given",
        description="requested times: given; at-least:2x (at least twice the run time); where "
        "missing, missing:7d, missing:queue (the longest one there) or "
        "missing:long=14d,debug=30m,2d; or tsafrir:18h or tsafrir:fitted (modelled where missing; "
        "with +all for every job)",
    )
    job_processors: Literal["requested", "allocated"] = Field(
        "requested", description="which processors field of the trace is the size of a job"
    )
    overrun: Literal["given", "keep", "kill"] = Field(
        "given",
        description="whether jobs that exceed their requested time continue (keep) or are killed; "
        "given: killed where the trace says `AllowOveruse: No`, as workloads of Batsim do",
    )
    strict: bool = Field(False, description="fail instead of repairing or dropping jobs")

    @field_validator("scheduler", mode="before")
    @classmethod
    def _with_queues(cls, scheduler: Any) -> Any:
        return _queues_in(scheduler, FOLDER.get()) if isinstance(scheduler, str) else scheduler

    @field_validator("estimates")
    @classmethod
    def _known_estimates(
        cls, estimates: str | Estimates | Predictor, info: ValidationInfo
    ) -> str | Estimates | Predictor:
        if isinstance(estimates, Predictor):
            estimates.check_ready()
        elif isinstance(estimates, str):
            if estimates.endswith(".json"):
                estimates = str(info.data["folder"] / estimates)
            parse_estimates(estimates)
        return estimates

    @field_validator("speed", "estimates", mode="before")
    @classmethod
    def _as_multiple(cls, value: Any) -> Any:
        """Take a number for a multiple: 0.5 for 0.5x."""
        value = value.item() if isinstance(value, np.generic) else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"{value:g}x" if is_number else value

    @field_validator("processors", mode="before")
    @classmethod
    def _as_whole(cls, value: Any) -> Any:
        """Take 64.0 for 64, and the numbers of numpy for those of Python."""
        value = value.item() if isinstance(value, np.generic) else value
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @override
    @classmethod
    def shared_settings(cls) -> tuple[str, ...]:
        others = ("trace", "strict", *READING, *Scenario.model_fields)
        names = [name for name in TraceScenario.model_fields if name not in others]
        return (*names, "seed", "strict", *READING)

    @property
    def _model(self) -> Path | None:
        """The file of the model behind the estimates, if there is one."""
        named = isinstance(self.estimates, str) and self.estimates.endswith(".json")
        return Path(str(self.estimates)) if named else None

    @override
    def files(self) -> dict[str, Path]:
        found = {}
        if self.trace is not None:
            found["trace"] = self.trace_file(self.trace)
        if self.map is not None:
            found["map"] = map_file(self.map, self.folder)
        if self._model is not None:
            found["estimates"] = self._model
        return found | super().files()

    @override
    def sums(self) -> dict[str, str]:
        found = super().sums()
        if self._model is not None:
            found[str(self.estimates)] = checksum(self._model)
        if self.map is not None:
            found[self.map] = checksum(self.files()["map"])
        return found

    @override
    def completed(self) -> dict[str, Any]:
        scheduler = text_of("scheduler", self.scheduler)
        scheduler = located(_queues_in(scheduler, Path.cwd()), Path.cwd())
        return {**super().completed(), "scheduler": scheduler}

    @override
    def identity(self) -> dict[str, Any]:
        found = super().identity()
        queues = _QUEUE_FILE.search(str(self.scheduler))
        if queues:
            found["scheduler"] = _QUEUE_FILE.sub(checksum(Path(queues[0])), str(self.scheduler))
        return found

    @override
    def objects(self) -> dict[str, Any]:
        name = str(self.estimates)
        settings: dict[str, Any] = getattr(self.estimates, "to_json", dict)()
        estimates = {"name": name, **settings} if settings else name
        return super().objects() | {"estimates": estimates}

    def difference(self, name: str, value: Any) -> list[str]:
        """Return the words for a setting and its plain value in a label; none for the default."""
        default = type(self).model_fields[name].default
        if default in (getattr(self, name), value):
            return []
        if isinstance(value, dict):
            return [f"{name} {value['name']}" if "name" in value else f"other {name}"]
        return [f"{name} {value}"]

    @override
    def title(self) -> str:
        return f"{Path(str(self.trace)).name}, {self.label()}"

    def conversion(self) -> Conversion:
        """Return how the trace is converted."""
        return Conversion(
            job_processors=self.job_processors,
            requested=self.requested,
            speed=parse_factor(self.speed, "speed"),
            seed=self.seed,
        )

    def read(self, trace: str | os.PathLike[str] | None = None) -> Trace:
        """Read a trace, that of the settings unless another is given."""
        from hpcrowd.environment.traces.formats.registry import read_trace

        return read_trace(
            self.files()["trace"] if trace is None else trace, options=self.reading(self.folder)
        )

    def given(self, trace: Trace | str | os.PathLike[str]) -> Trace:
        """Return a trace as a function is given one: a trace, a run, or the path of one to read.

        It is an error if settings say how to read one that has been read already.
        """
        if isinstance(trace, str | os.PathLike):
            return self.read(trace)
        for name in READING:
            if getattr(self, name) is not None:
                raise QuantityError(
                    f"{name}: the trace has been read already; give its path, or read it with "
                    "FormatOptions"
                )
        return as_trace(trace)

    def recorded(self, trace: Trace, conversion: Conversion) -> tuple[Conversions, Work]:
        """Return the jobs of a trace, and the sessions of all users."""
        from hpcrowd.agents.work.recorded import Work
        from hpcrowd.agents.work.sessions import SessionDefinition

        converted = jobs_from_trace(trace, conversion, strict=self.strict)
        definition = SessionDefinition.parse(self.sessions)
        return converted, Work.recorded(trace, converted, definition, strict=self.strict)

    @classmethod
    def users_from(cls, users: Any, folder: Path) -> FileConfig | None:
        """Return the users that a table, a file relative to a folder, or an object describes.

        None if they are described in a way that no part knows.
        """
        return None

    def behaviour_and_clusters(self) -> tuple[Any, Mapping[str, ClusterSpec]]:
        """Return how users behave, and the clusters beside the first that they may submit to."""
        return getattr(self, "users", None), {}

    def ask(self, jobs: JobTable, trace: Trace, rows: Int64s) -> None:
        """Note what jobs ask for beside processors, if that is known and counts.

        ``rows`` are those of the jobs in the trace.
        """

    def size(self, trace: Trace) -> int:
        """Return the processors of the cluster; multiples are of the machine of the trace."""
        return parse_processors(self.processors, trace.processors if self._scaled else 1)

    @property
    def _scaled(self) -> bool:
        """Whether the size is a multiple of that of the trace."""
        return is_multiple(self.processors)

    def size_note(self, trace: Trace) -> str:
        """Return what was assumed about the size of the machine; empty if the settings give it."""
        return trace.size.note if self._scaled else ""

    def notes(self, trace: Trace, converted: Conversions) -> list[str]:
        """Return what reading the trace dropped, repaired or assumed, in words, one line each."""
        told = assumed(self.size_note(trace), Clock.of(trace.header).note)
        return [*converted.notes, *told, *self.limits(trace, converted.jobs)]

    def overruns(self, trace: Trace) -> str:
        """Return ``keep`` or ``kill`` for jobs that exceed their requested time."""
        return trace.header.overrun(self.overrun)

    def limits(self, trace: Trace, jobs: JobTable) -> list[str]:
        """Return what is doubtful about the trace, and what it says about jobs that are too long.

        Those exceed their requested time.
        """
        over = int((jobs.run_time > jobs.requested_time).sum())
        if not over or self.overrun != "given" or trace.header.overrun() == "keep":
            return trace.doubts
        return [
            *trace.doubts,
            f"{plural(over, 'job')} longer than requested: killed then, as the trace says "
            "(AllowOveruse: No); --overrun keep lets them run",
        ]

    def cluster(self, trace: Trace) -> ClusterSpec:
        """Return the cluster that the settings describe, for the jobs of a trace."""
        from hpcrowd.environment.cluster import ClusterSpec

        return ClusterSpec(self.size(trace), self.scheduler, estimates=self.estimates)


def _queues_in(scheduler: str, folder: Path) -> str:
    """Return the text of a scheduler, with the full path of its table of queues if it has one."""
    return _QUEUE_FILE.sub(lambda found: str(folder / found[0]), scheduler)
