"""The power of a machine from a TOML file::

    source = "measured at the sockets of 4 nodes, 2024"
    pue = 1.4

    [[nodes]]
    name = "thin"
    processors = 16
    idle = "117 W"        # a node that is on, without a job
    processor = "15 W"    # what a busy processor adds
    asleep = "14 W"
    on_time = "5m"
    on_energy = "35 kJ"

    [carbon]
    file = "SE3-2023.csv"
    repeat = "year"

    [sleep]
    after = "15m"

The tables ``[jobs]``, ``[cooling]``, ``[carbon]``, ``[tariff]``, ``[sleep]``, ``[cap]`` and
``[start]`` are optional. Powers and energies have a unit, durations are as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, override

from pydantic import BeforeValidator, Field, InstanceOf, PlainSerializer, model_validator

from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import MOST_PUE
from hpcrowd.environment.quantities import parse_energy, parse_power
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.scenarios.kinds.base import checksum
from hpcrowd.scenarios.kinds.fields import DAYS, Day, Duration, FileConfig, Strict

if TYPE_CHECKING:
    from hpcrowd.environment.jobs import Float64s, Int64s
    from hpcrowd.environment.power.caps import PowerCap
    from hpcrowd.environment.power.description import NodePower, Power
    from hpcrowd.environment.power.draws import Draw
    from hpcrowd.environment.signals.cooling import Cooling
    from hpcrowd.environment.signals.tariff import Tariff
    from hpcrowd.environment.traces.trace import Trace


def _parsed(what: str, unit: str, parse: Callable[[str], float]) -> BeforeValidator:
    """Return what reads a number from a text with its unit, such as the one that is named."""

    def read(value: Any) -> Any:
        if isinstance(value, bool | int | float):
            raise QuantityError(
                f"{what} {value}: without a unit; write for example '{value} {unit}'"
            )
        return parse(value) if isinstance(value, str) else value

    return BeforeValidator(read, json_schema_input_type=str)


def _text(unit: str) -> PlainSerializer:
    """Return what writes a number with its unit, digit by digit."""
    return PlainSerializer(lambda value: f"{Decimal(repr(value)):f} {unit}", when_used="json")


#: W, as a text such as ``90 W`` or ``1.2 kW``.
Watts = Annotated[float, _parsed("power", "W", parse_power), _text("W")]

#: J, as a text such as ``40 kJ`` or ``1 kWh``.
Joules = Annotated[float, _parsed("energy", "kJ", parse_energy), _text("J")]


#: What the power of a job depends on.
JobsBy = Literal["measured", "user", "group", "queue", "executable", "partition", "processors"]


class NodesConfig(Strict):
    """A type of nodes."""

    name: str = Field("node", description="of the type")
    idle: Watts = Field(description="of a node that is on without a job")
    processor: Watts = Field(description="what a busy processor adds")
    processors: int = Field(1, ge=1, description="of a node; of a pool of equal processors")
    gpu: Watts = Field(0.0, description="what a busy GPU adds")
    asleep: Watts = Field(0.0, description="of a node that is switched off or sleeps")
    on_time: Duration = Field(0, ge=0, description="time to switch a node on")
    on_energy: Joules = Field(0.0, description="energy to switch a node on")
    off_time: Duration = Field(0, ge=0, description="time to switch a node off")
    off_energy: Joules = Field(0.0, description="energy to switch a node off")
    nodes: str = Field(
        "",
        description="names of its nodes, as in n[1-4]; all that no other type names unless given",
    )

    def made(self) -> NodePower:
        """Return the type."""
        from hpcrowd.environment.power.description import NodePower

        return NodePower(**dict(self))


class SignalConfig(Strict):
    """A value over time from a CSV file, as grid operators and weather services publish it."""

    file: str = Field(description="CSV file")
    column: str = Field("", description="name of the column of values; detected unless given")
    time_column: str = Field("", description="name of the column of times; detected unless given")
    zone: str = Field(
        "", description="time zone of local times without an offset, such as Europe/Paris"
    )
    factor: float = Field(1.0, description="by which values are multiplied, as 0.001 for per MWh")
    gaps: Literal["error", "hold", "interpolate"] = Field(
        "error", description="missing values: an error, the value before, or a line between"
    )
    most: Duration = Field(10800, gt=0, description="longest gap that is filled")
    repeat: Literal["no", "week", "year"] = Field(
        "no", description="repeat it by whole weeks, or by years, to cover the run"
    )
    rows: tuple[tuple[str, str], ...] = Field(
        (), description="pairs of a column and a text: only lines with these texts count"
    )
    missing: tuple[str, ...] = Field((), description="more texts that mean a missing value")

    def read(self, folder: Path, least: float | None = None) -> Signal:
        """Return the signal; ``least`` is the smallest value that can be."""
        from hpcrowd.environment.signals.published import SignalFile

        values = dict(self)
        return SignalFile(folder / values.pop("file"), **values).read(least=least)


def _signal_text(given: Any) -> Any:
    if isinstance(given, SignalConfig):
        return given.model_dump(mode="json", exclude_defaults=True)
    return str(given.source)


#: A signal in a file, or in memory.
SignalChoice = Annotated[
    SignalConfig | InstanceOf[Signal], PlainSerializer(_signal_text, when_used="json")
]


def _read(given: SignalConfig | Signal, folder: Path, least: float | None = None) -> Signal:
    """Return a signal; ``least`` is the smallest value that can be."""
    if isinstance(given, SignalConfig):
        return given.read(folder, least)
    if least is not None:
        given.check_least(least)
    return given


class CoolingConfig(Strict):
    """Power usage effectiveness by outside temperature."""

    temperature: SignalChoice = Field(description="degrees Celsius over time")
    points: tuple[tuple[float, float], ...] = Field(
        min_length=1, description="pairs of a temperature and a PUE; straight lines between them"
    )

    def made(self, folder: Path) -> Cooling:
        """Return it, its file read."""
        from hpcrowd.environment.signals.cooling import Cooling

        return Cooling(_read(self.temperature, folder), self.points)


class PeriodConfig(Strict):
    """Hours with their own price."""

    price: float = Field(description="of a kWh; negative prices are possible")
    opens: Duration = Field(description="local time after midnight, such as 22h")
    closes: Duration = Field(description="before opens means on the next day")
    days: tuple[Day, ...] = Field(DAYS, description="days on which it opens, Mon to Sun")
    months: tuple[int, ...] = Field(
        tuple(range(1, 13)), description="months in which it opens, January is 1"
    )


class TariffConfig(Strict):
    """The price of electricity."""

    price: float = Field(0.0, description="of a kWh outside the periods")
    periods: tuple[PeriodConfig, ...] = Field((), description="hours with another price")
    energy: SignalChoice | None = Field(
        None, description="price of a kWh over time from a file, which is added"
    )
    peak_price: float = Field(
        0.0, ge=0, description="price per kW of the highest power of each month"
    )
    peak_window: Duration = Field(900, gt=0, description="over which that power is averaged")
    currency: str = Field("EUR", description="for messages")

    def made(self, folder: Path) -> Tariff:
        """Return the tariff."""
        from hpcrowd.environment.signals.tariff import Tariff, TariffPeriod

        periods = tuple(
            TariffPeriod(**{**dict(one), "days": tuple(map(DAYS.index, one.days))})
            for one in self.periods
        )
        energy = None if self.energy is None else _read(self.energy, folder)
        return Tariff(**{**dict(self), "periods": periods, "energy": energy})


class JobsConfig(Strict):
    """What jobs draw, if not the same for each processor."""

    by: JobsBy = Field(
        description="measured energy in the trace, with a prediction for jobs without; or a table "
        "by user, group, queue, executable, partition or number of processors"
    )
    watts: dict[str, Watts] = Field(
        {}, description="W per processor, its share of the idle node included, by name or range"
    )
    strength: float = Field(
        5.0, gt=0, description="jobs that the mean of a larger group counts for (our choice)"
    )


class SleepConfig(Strict):
    """Idle nodes are switched off."""

    after: Duration = Field(gt=0, description="time without a job after which a node goes off")
    spare: int = Field(0, ge=0, description="processors that stay on")


class LawConfig(Strict):
    """How slower processors draw less and need longer."""

    beta: float = Field(
        0.5, ge=0, le=1, description="share of the run time that depends on the frequency f: "
        "1 + beta (1/f - 1) (unconfirmed)",
    )  # fmt: skip
    exponent: float = Field(
        3.0, ge=0, le=6, description="what busy processors add is f to this power (unconfirmed)"
    )
    levels: tuple[float, ...] = Field(
        (1.0, 0.9, 0.8, 0.7, 0.6), min_length=1, description="frequencies, relative to the highest"
    )


class CapConfig(Strict):
    """A limit on the power of the machine, without cooling."""

    watts: Watts | None = Field(None, description="the limit")
    over_time: SignalChoice | None = Field(None, description="instead: W over time from a file")
    law: LawConfig | None = Field(
        None, description="slow running jobs down when the limit falls; they keep their speed "
        "unless given",
    )  # fmt: skip
    stop: Literal["requeue", "fail", "none"] = Field(
        "requeue",
        description="what happens to the newest jobs that do not fit below a lower limit; with "
        "none they run on above it",
    )

    @model_validator(mode="after")
    def _one_limit(self) -> CapConfig:
        if (self.watts is None) == (self.over_time is None):
            raise ValueError("give the limit either as watts or over_time")
        return self

    def made(self, folder: Path) -> PowerCap:
        """Return the limit."""
        from hpcrowd.environment.power.caps import PowerCap, SpeedLaw

        limit = self.watts if self.over_time is None else _read(self.over_time, folder, 0.0)
        law = None if self.law is None else SpeedLaw(**dict(self.law))
        assert limit is not None
        return PowerCap(limit, law=law, stop=self.stop)


class StartConfig(Strict):
    """Jobs with slack wait for clean or cheap energy."""

    follow: Literal["carbon", "price"] = Field("carbon", description="which signal they follow")
    slack: Duration = Field(43200, gt=0, description="longest time that a job waits for a window")
    slack_factor: float | None = Field(
        None, gt=0, description="instead of slack: a multiple of its requested time"
    )
    step: Duration = Field(1800, gt=0, description="starts are tried at multiples of this")
    shortest: Duration = Field(0, ge=0, description="jobs that request less start at once")
    share: float = Field(1.0, ge=0, le=1, description="probability that a user's jobs may wait")
    most_slack: Duration = Field(86400, gt=0, description="longest slack from slack_factor")
    threshold: float | None = Field(
        None, description="instead of the best window: wait only while the signal is above this"
    )
    forecast_error: float = Field(
        0.0, ge=0, le=10, description="relative error of the forecast; 0 foresees the signal"
    )
    min_gain: float = Field(0.0, ge=0, le=1, description="jobs that gain less start at once")


class PowerConfig(FileConfig):
    """What a machine draws, what that costs, and policies that save power."""

    DESCRIBES: ClassVar[str] = "a description of power"

    name: str = Field("power", description="for tables and pictures")
    source: str = Field("", description="where the figures come from")
    nodes: tuple[NodesConfig, ...] = Field(min_length=1, description="one table for each type")
    pue: float = Field(1.0, ge=1, le=MOST_PUE, description="power usage effectiveness")
    cooling: CoolingConfig | None = Field(None, description="instead of pue: by temperature")
    jobs: JobsConfig | None = Field(None, description="what jobs draw")
    carbon: SignalChoice | None = Field(None, description="carbon intensity over time, g/kWh")
    tariff: TariffConfig | None = Field(None, description="price of electricity")
    sleep: SleepConfig | None = Field(None, description="idle nodes are switched off")
    cap: CapConfig | None = Field(None, description="limit on power")
    start: StartConfig | None = Field(None, description="jobs wait for clean or cheap energy")

    def made(self, trace: Trace | None = None) -> Power:
        """Return the description, its files read.

        Energies of jobs that were not measured are predicted from those in the trace.
        """
        from hpcrowd.environment.power.description import Power
        from hpcrowd.environment.power.sleep import SleepRule
        from hpcrowd.environment.power.windows import StartWindow

        try:
            return Power(
                nodes=tuple(one.made() for one in self.nodes),
                draw=self._draw(trace),
                pue=self.pue if self.cooling is None else self.cooling.made(self.folder),
                carbon=None if self.carbon is None else _read(self.carbon, self.folder, 0.0),
                tariff=None if self.tariff is None else self.tariff.made(self.folder),
                sleep=None if self.sleep is None else SleepRule(**dict(self.sleep)),
                cap=None if self.cap is None else self.cap.made(self.folder),
                start=None if self.start is None else StartWindow(**dict(self.start)),
                source=self.source,
                notes=tuple(self._notes(trace)),
            )
        except QuantityError as error:
            raise QuantityError(f"{self.file.name if self.file else self.name}: {error}") from None

    @override
    def plain(self) -> dict[str, Any]:
        """Return its settings as a table, fit for JSON, with its name and without defaults."""
        return {"name": self.name, **self.model_dump(mode="json", exclude_defaults=True)}

    def _draw(self, trace: Trace | None) -> Draw | None:
        from hpcrowd.environment.power.draws import DrawTable, MeasuredDraw

        if self.jobs is None:
            return None
        if self.jobs.by == "measured":
            return MeasuredDraw(self.jobs.strength).fitted(trace)
        return DrawTable(self.jobs.by, self.jobs.watts)

    def _notes(self, trace: Trace | None) -> Iterator[str]:
        """Yield how good predictions of jobs' power are, if there are any."""
        if self.jobs is None or self.jobs.by != "measured" or trace is None:
            return
        from hpcrowd.environment.errors import ModelFitError
        from hpcrowd.environment.power.draws import MeasuredDraw

        try:
            score = MeasuredDraw(self.jobs.strength).judged(trace)
        except ModelFitError:
            yield "power of jobs: too few measurements to judge the prediction of others"
            return
        yield (
            f"power of jobs without a measurement: predicted, off by {100 * score.error:.0f} % on "
            f"average for {score.jobs:,} later jobs ({100 * score.error_of_mean:.0f} % with one "
            "mean for all)"
        )

    def measured(self, trace: Trace, rows: Int64s) -> Float64s | None:
        """Return the measured W per processor of jobs; -1 where unknown, None if not asked for.

        ``rows`` are those of the jobs in the trace, -1 for jobs that are not from it.
        """
        if self.jobs is None or self.jobs.by != "measured":
            return None
        from hpcrowd.environment.power.draws import MeasuredDraw

        watts = MeasuredDraw(self.jobs.strength).measured(trace)[rows]
        watts[rows < 0] = -1
        return watts

    @override
    def sums(self) -> dict[str, str]:
        found = super().sums()
        for one in self._signals():
            found[one.file] = checksum(self.folder / one.file)
        return found

    def _signals(self) -> list[SignalConfig]:
        return [
            one
            for one in (
                self.carbon,
                None if self.cooling is None else self.cooling.temperature,
                None if self.tariff is None else self.tariff.energy,
                None if self.cap is None else self.cap.over_time,
            )
            if isinstance(one, SignalConfig)
        ]
