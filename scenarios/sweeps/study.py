"""A study from a TOML file: a scenario, and the settings that vary::

    [scenario]
    kind = "replay"
    trace = "log.swf.gz"
    users = "think-time"

    [axes]
    scheduler = ["easy", "fcfs"]
    speed = ["1x", "0.5x"]
    seed = 20

    [trim]
    warm_up = "7d"
    cool_down = "7d"

All combinations of the values are run; the last axis of the file varies fastest. With ``posterior =
"FILE"``, of ``hpcrowd calibrate``, each seed also takes a draw of all its parameters. An error
message gives file, line, setting, value, rule and cure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from hpcrowd.analysis.comparison.sweeps import ROW_METRICS
from hpcrowd.analysis.metrics import METRICS
from hpcrowd.environment.errors import HpcrowdError, QuantityError, first_mistake, not_one_of
from hpcrowd.environment.limits.numbers import MOST_RUNS
from hpcrowd.environment.quantities import format_duration
from hpcrowd.environment.registry import imported, text_of
from hpcrowd.environment.schedulers.base import Scheduler, options_of
from hpcrowd.scenarios.kinds.base import Scenario, takes_settings
from hpcrowd.scenarios.kinds.fields import Duration, Strict
from hpcrowd.scenarios.kinds.files import SettingError, Source, scenario_in, scenario_of

#: What reads the posterior of a calibration.
POSTERIOR = "hpcrowd.analysis.calibration.posterior:read_posterior"

#: The value of an axis that leaves out an optional setting.
NONE = "none"

SEED = "seed"

#: Seeds of a study with a posterior, unless it has an axis of seeds: two draws lie beyond each end
#: of a 95 % interval.
DRAWS = 80


class TrimConfig(Strict):
    """The parts of each run that are not counted."""

    warm_up: Duration = Field(
        0, ge=0, description="jobs submitted in this time after the first one do not count"
    )
    cool_down: Duration = Field(
        0, ge=0, description="jobs submitted in this time before the last one do not count"
    )

    @property
    def text(self) -> str:
        """What is left out, in words; empty if nothing is."""
        ends = (("first", self.warm_up), ("last", self.cool_down))
        return " and ".join(f"the {end} {format_duration(time)}" for end, time in ends if time)


class ResultConfig(Strict):
    """What is reported on the runs."""

    metrics: tuple[str, ...] = Field(
        ("wait_mean_s", "bounded_slowdown_mean", "utilization", "throughput_jobs_per_day"),
        min_length=1,
        description="metrics of the tables and pictures; frame.csv has all of them, also those of "
        "some kinds only, such as site.grid.wait_s or population.throughput_jobs_per_week",
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="of the intervals")
    interval: Literal["student", "bootstrap", "predictive"] = Field(
        "student",
        description="intervals over the seeds: of the mean, Student's or the percentile bootstrap, "
        "for results with heavy tails and at least 8 seeds; or predictive, which contains that "
        "share of the runs, the default with a posterior",
    )
    effects: Literal["difference", "ratio"] = Field(
        "difference",
        description="effects of an axis, paired by seed: differences to its first value, or the "
        "geometric mean of ratios",
    )
    across: str = Field("", description="the axis across the pictures; the first unless given")
    pictures: Literal["png", "pdf", "svg"] = Field("png", description="format of the pictures")

    @field_validator("metrics")
    @classmethod
    def _known(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        for name in metrics:
            if name not in ROW_METRICS and "." not in name:
                known = ", ".join(metric.name for metric in METRICS)
                raise ValueError(
                    f"{name!r} is not a metric; choose among {known}, or over users "
                    "wait_mean_s_users_p50 and the like"
                )
        return metrics


class Study(Strict):
    """A scenario, and the settings that vary.

    Attributes
    ----------
    folder
        Folder of the files that settings name; not part of the TOML file.
    """

    name: str = Field("", description="for tables and pictures; the name of the file unless given")
    scenario: str | dict[str, Any] = Field(
        description="the scenario that the axes vary: a table, or the file of one"
    )
    axes: dict[str, Any] = Field(
        description="settings that vary, each with its values; seed may be a number of seeds, and "
        "names may have dots, such as platform.changes.0.processors; the value none leaves an "
        "optional setting out"
    )
    posterior: str | None = Field(
        None,
        description="file of `hpcrowd calibrate`: each seed takes a draw of all its parameters, "
        "and the population comes from there; 80 seeds unless an axis has others",
    )
    keep: Literal["metrics", "jobs"] = Field(
        "metrics", description="what is kept of each run: metrics; or also its jobs, in jobs/"
    )
    trim: TrimConfig = Field(TrimConfig(), description="parts of each run that are not counted")
    result: ResultConfig = Field(ResultConfig(), description="what is reported")
    folder: Path = Field(Path(), exclude=True, description="folder of the files that it names")

    @field_validator("scenario", "axes", mode="before")
    @classmethod
    def _as_text(cls, values: Any) -> Any:
        """Write your own schedulers and behaviours as their places, which other processes load."""
        return _described(values)

    def __len__(self) -> int:
        return prod(len(values) for values in self.axes.values())

    def points(self) -> Iterator[dict[str, Any]]:
        """Yield the settings of each run, in the order of the design: the last varies fastest."""
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def settings(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return all settings of a run.

        Raises
        ------
        QuantityError
            When the place of a setting does not exist.
        """
        given = {name: value for name, value in point.items() if value != NONE}
        assert isinstance(self.scenario, dict)  # a file has been read
        base = self.scenario
        if self.drawn is not None:
            base = self._with_draw(base, self.drawn, given.get(SEED, base.get(SEED, 0)))
        values = takes_settings(base, given)
        for name in point.keys() - given.keys():
            values.pop(name, None)
        return values

    @property
    def posterior_file(self) -> Path | None:
        """The file of the posterior; None without one."""
        return None if self.posterior is None else self.folder / self.posterior

    @cached_property
    def drawn(self) -> Any:
        """The posterior that seeds draw from; None without one.

        Raises
        ------
        ModelFileError
            When it cannot be read.
        """
        if self.posterior_file is None:
            return None
        return imported(POSTERIOR)(self.posterior_file)

    def _with_draw(self, scenario: Mapping[str, Any], posterior: Any, seed: Any) -> dict[str, Any]:
        """Return the settings of the scenario with the draw of a seed."""
        values, own = dict(scenario), posterior.settings or {}
        drawn = posterior.draw(seed if isinstance(seed, int) else 0)
        if values.get("kind") != own.get("kind"):
            raise QuantityError(
                f"kind {values.get('kind')!r}: the posterior is of {own.get('kind')!r} "
                "scenarios; take that kind, or another posterior"
            )
        for head in dict.fromkeys(name.split(".")[0] for name in drawn):
            if head not in values and isinstance(own.get(head), dict):
                assert self.posterior_file is not None
                place = self.posterior_file.absolute().parent / posterior.folder
                more = {"folder": str(place)} if head == "users" else {}
                values[head] = {**own[head], **more}
            elif isinstance(values.get(head), str):
                raise QuantityError(
                    f"{head} {values[head]!r}: come from the posterior; leave it out"
                )
        return takes_settings(values, drawn)

    def check_drawn(self) -> None:
        """Check that no axis varies what is drawn.

        Raises
        ------
        QuantityError
            When one does.
        """
        drawn = [] if self.drawn is None else [prior.name for prior in self.drawn.priors]
        for axis in self.axes:
            for name in drawn:
                if name == axis or name.startswith(f"{axis}.") or axis.startswith(f"{name}."):
                    raise QuantityError(
                        f"axes.{axis}: {name} is drawn from the posterior; leave one of the two out"
                    )

    def scenario_at(self, point: Mapping[str, Any]) -> Scenario:
        """Return the scenario of a run.

        Raises
        ------
        QuantityError
            When settings contradict each other.
        """
        return scenario_of(self.settings(point), self.folder)

    def check_across(self) -> None:
        """Check that there is an axis across the pictures.

        Raises
        ------
        QuantityError
            When the one that is named is none, or is the seed.
        """
        known = [axis for axis in self.axes if axis != SEED]
        if self.result.across and self.result.across not in known:
            raise QuantityError(
                f"across {self.result.across!r}: {not_one_of(self.result.across, known)}"
            )

    def first(self) -> dict[str, Any]:
        """Return the first value of each axis."""
        return {name: values[0] for name, values in self.axes.items()}


def _described(value: Any, what: str = "setting") -> Any:
    if isinstance(value, Mapping):
        return {name: _described(one, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_described(one, what) for one in value]
    if isinstance(value, Scheduler):
        for option in options_of(type(value)):
            if not hasattr(value, option):
                raise QuantityError(
                    f"{what} {value.name}: has no attribute {option}, so that the value of that "
                    f"option is not known; write self.{option} = {option} in its __init__"
                )
    return text_of(what, value) if callable(value) or hasattr(value, "seam") else value


#: The settings and tables that a file may have.
IN_FILE = [name for name in Study.model_fields if name != "folder"]


def read_study(path: str | os.PathLike[str]) -> Study:
    """Read a study from a TOML file.

    Raises
    ------
    QuantityError
        When it cannot be read or something in it is wrong; with file, line, value and rule.
    """
    source = Source.read(path, "a sweep", "a scenario")
    path = source.path
    source.only(IN_FILE)
    try:
        study = Study.model_validate(source.values)
    except ValidationError as error:
        raise source.mistake(first_mistake(error), error.errors()[0]["loc"]) from None
    base, folder = _base(source)
    axes = dict(_axes(source, study.axes))
    result = study.result
    if study.posterior is not None:
        axes.setdefault(SEED, list(range(DRAWS)))
        if "interval" not in result.model_fields_set:
            result = result.model_copy(update={"interval": "predictive"})
    if not axes:
        raise source.mistake("axes: none; write at least one, for example seed = 20", ["axes"])
    _check_runs(source, "", prod(len(values) for values in axes.values()))
    found = {"name": study.name or path.stem, "scenario": base, "axes": axes, "folder": folder}
    if study.posterior is not None:
        found["posterior"] = str((path.parent / study.posterior).absolute())
    study = study.model_copy(update=found | {"result": result})
    _check(study, source)
    return study


def _base(source: Source) -> tuple[dict[str, Any], Path]:
    """Return the settings of the scenario, and where its files are."""
    named = source.values["scenario"]
    if isinstance(named, dict):
        return named, source.path.parent
    other = Source.read(source.path.parent / named, "a scenario")
    other.only(["scenario"])
    if not isinstance(other.values.get("scenario"), dict):
        scenario_in(other)  # raises what is missing
    values: dict[str, Any] = other.values["scenario"]
    return values, other.path.parent


def _axes(
    source: Source, table: Mapping[str, Any], way: Sequence[str] = ()
) -> Iterator[tuple[str, list[Any]]]:
    """Yield names and values of axes; a nested table is the beginning of a dotted name."""
    for part, values in table.items():
        place = [*way, part]
        name = ".".join(place)
        if isinstance(values, dict):
            yield from _axes(source, values, place)
            continue
        if name == SEED and isinstance(values, int) and not isinstance(values, bool):
            _check_runs(source, name, values)
            values = list(range(values))
        message = ""
        if not isinstance(values, list):
            message = f"{values!r}: must be a list of values, for example {name} = [{values!r}]"
        elif not values:
            message = "no values; give at least one"
        elif len({json.dumps(value, default=str) for value in values}) < len(values):
            message = f"{values!r}: has a value twice; give it once"
        if message:
            raise source.mistake(f"axes.{name}: {message}", ["axes", *place])
        yield name, values


def _check_runs(source: Source, axis: str, runs: int) -> None:
    """Check that a study is not larger than any that ends."""
    if runs > MOST_RUNS:
        what = f"axes.{axis} {runs:,}" if axis else f"axes: {runs:,} runs"
        place = ["axes", *axis.split(".")] if axis else ["axes"]
        raise source.mistake(f"{what}: at most {MOST_RUNS:,} runs; take fewer values", place)


def _check(study: Study, source: Source) -> None:
    """Check every value of every axis together with the first values of the others."""
    try:
        study.check_across()
    except QuantityError as error:
        raise source.mistake(f"result.{error}", ["result", "across"]) from None
    try:
        study.check_drawn()
    except HpcrowdError as error:
        raise source.mistake(str(error), ["posterior"]) from None
    first = study.first()
    _check_point(study, source, first, None)
    for name, values in study.axes.items():
        # All seeds are alike, so that one is enough.
        for place, value in enumerate(values[1:2] if name == SEED else values):
            _check_point(study, source, {**first, name: value}, (name, place))


def _check_point(
    study: Study, source: Source, point: dict[str, Any], axis: tuple[str, int] | None
) -> None:
    try:
        study.scenario_at(point)
    except QuantityError as error:
        place = error.place if isinstance(error, SettingError) else ()
        name = axis[0] if axis else ""
        # The error may be in the first value of another axis: the one that the message names.
        if axis is None and place:
            head = str(place[0]).split(".")[0]
            name = next((one for one in study.axes if one.split(".")[0] == head), "")
        elif axis is None:
            name = next((one for one in study.axes if str(error).startswith(f"{one}: ")), "")
        if name:
            value = f"[{axis[1]}]" if axis else ""
            where = ["axes", *name.split(".")]
            raise source.mistake(f"axes.{name}{value}: {error}", where) from None
        named = source.values["scenario"]
        base = source if isinstance(named, dict) else Source.read(source.path.parent / named)
        raise base.mistake(str(error), ["scenario", *place]) from None


def study_toml(study: Study) -> str:
    """Return a study as TOML with every setting and its meaning; it can be read again."""
    import tomlkit

    from hpcrowd.scenarios.kinds.files import scenario_table

    document = tomlkit.document()
    fields = Study.model_fields
    for name, value in (
        ("name", study.name),
        ("keep", study.keep),
        *([] if study.posterior is None else [("posterior", study.posterior)]),
    ):
        document.add(tomlkit.comment(f"{name}: {fields[name].description}"))
        document.add(name, tomlkit.item(value))
    table = scenario_table(study.scenario_at(study.first()))
    document.add("scenario", table)
    axes = tomlkit.table()
    axes.add(tomlkit.comment(f"{len(study):,} runs; the last axis varies fastest"))
    for name, values in study.axes.items():
        axes.add(tomlkit.key(name.split(".")), tomlkit.item(values))
    document.add("axes", axes)
    for name, part in (("trim", study.trim), ("result", study.result)):
        table = tomlkit.table()
        for setting, about in type(part).model_fields.items():
            table.add(tomlkit.comment(f"{setting}: {about.description}"))
            table.add(setting, tomlkit.item(part.model_dump(mode="json")[setting]))
        document.add(name, table)
    return tomlkit.dumps(document)
