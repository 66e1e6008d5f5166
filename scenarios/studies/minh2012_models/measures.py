"""Minh 2012, chapters 4 and 5: models of arrivals and of jobs, compared with the traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hpcrowd.scenarios.studies.minh2012_features.measures import ThesisTrace
from hpcrowd.scenarios.studies.minh2012_models.arrivals import CHOSEN, TIME_SCALES_S, ArrivalRuns
from hpcrowd.scenarios.studies.minh2012_models.jobs import DISTANCES, TITLES, JobRuns
from hpcrowd.scenarios.studies.minh2012_models.scheduling import (
    POLICIES,
    REQUIRED_LOADS,
    Schedule,
    slowdown_text,
)
from hpcrowd.scenarios.studies.published import Printed, published_rows
from hpcrowd.scenarios.studies.study import Requirement

#: The way with requirements, and the trace of Fig. 5.3.
REQUIRED_WAY, SCHEDULED = "thesis", "LLN"

#: Traces on which figures are required, if they are the ones of the thesis: models were tried on
#: them. On others everything is shown.
REQUIRED = ("HPC", "LLN")

#: Accepted deviations at T = 900 s: of the Hurst parameter, and of the share of zeros.
HURST_WITHIN, ZEROS_WITHIN = 0.1, 0.02

#: Required of the CV of interarrival times over that of the trace. LLN: that of the modified model,
#: at least, and of the plain one, less than. HPC: the nearer of the two, off by at most.
CV_LEAST, CV_PLAIN, CV_WITHIN = 0.75, 1 / 3, 0.1

#: Largest distances and differences of the comprehensive model.
MOST = {"run_time": 0.08, "processors": 0.03, "bags": 0.03, "entropy": 0.03, "spearman": 0.03}

#: "Results of applying the entropy approach on this kind of model should reach 1"; the thesis
#: prints 0.996 to 0.999.
NAIVE_LEAST = 0.99

#: The traces of the tables of the two chapters.
TABLED = ("NOR", "NIK", "LAN", "FS2", "FS3", "HPC", "LLN")

#: The series of the published tables.
PUBLISHED_SERIES = ("data", "plain", "modified", "model", "uniform")


def published(table: str, figure: str, trace: str, series: str) -> list[Printed]:
    """Return the published figures: for chapter 4 one at each time scale, for chapter 5 one.

    Empty if there is none.
    """
    if table.startswith("4"):
        for row in published_rows("minh2012_arrivals"):
            if [row[name] for name in ("table", "figure", "trace", "series")] == [
                table, figure, trace, series,
            ]:  # fmt: skip
                return [Printed(row[str(scale)]) for scale in TIME_SCALES_S]
        return []
    for row in published_rows("minh2012_comprehensive"):
        if [row[name] for name in ("table", "figure", "series")] == [table, figure, series]:
            return [Printed(row[trace])] if row.get(trace) else []
    return []


@dataclass(kw_only=True)
class TraceModels(ThesisTrace):
    """The results of one trace.

    Attributes
    ----------
    arrivals
        By time scale, s.
    jobs
        By way, a name of :data:`~.experiments.PLANNED`.
    schedules
        By way; Fig. 5.3.
    notes
        Notes of the fits, by way.
    """

    arrivals: Mapping[float, ArrivalRuns]
    jobs: Mapping[str, JobRuns]
    schedules: Mapping[str, Schedule]
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_required(self) -> bool:
        """Whether there are requirements on it."""
        return self.trace in REQUIRED and self.is_that_of_the_thesis

    def plain(self) -> dict[str, Any]:
        """Return the description of the trace and the notes of the fits, as plain data."""
        notes = {way: list(notes) for way, notes in self.notes.items()}
        return {**super().plain(), "notes": notes}

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The required figures of this trace."""
        if not self.is_required:
            return []
        found = [*self._arrivals(), *self._jobs(self.jobs[REQUIRED_WAY])]
        if self.trace == SCHEDULED:
            found += self._schedule(self.schedules[REQUIRED_WAY])
        return found

    def _need(self, what: str, ours: str, required: str, holds: bool) -> Requirement:
        return Requirement(self.trace, what, ours, required, bool(holds))

    def _arrivals(self) -> Iterator[Requirement]:
        runs = self.arrivals[TIME_SCALES_S[0]]
        trace, model = runs.of_trace("hurst"), runs.mean(CHOSEN, "hurst")
        yield self._need(
            "Hurst parameter, T = 900 s, chosen model",
            f"{model:.2f}",
            f"{trace:.2f} within {HURST_WITHIN}",
            abs(model - trace) <= HURST_WITHIN,
        )
        trace, model = runs.of_trace("zeros"), runs.mean("modified", "zeros")
        yield self._need(
            "zeros of the rates, T = 900 s, modified model",
            f"{100 * model:.1f} %",
            f"{100 * trace:.1f} % within {100 * ZEROS_WITHIN:g} points",
            abs(model - trace) <= ZEROS_WITHIN,
        )
        ratio = {name: runs.mean(name, "cv") / runs.trace.cv for name in ("plain", "modified")}
        if self.trace == "HPC":
            nearer = min(ratio, key=lambda name: abs(ratio[name] - 1))
            yield self._need(
                f"CV of times between jobs over the trace's, the nearer model ({nearer})",
                f"{ratio[nearer]:.2f}",
                f"1 within {CV_WITHIN}",
                abs(ratio[nearer] - 1) <= CV_WITHIN,
            )
            return
        for name, required, holds in (
            ("modified", f"at least {CV_LEAST}", ratio["modified"] >= CV_LEAST),
            ("plain", f"less than {CV_PLAIN:.2f}", ratio["plain"] < CV_PLAIN),
        ):
            what = f"CV of times between jobs over the trace's, {name} model"
            yield self._need(what, f"{ratio[name]:.2f}", required, holds)

    def _jobs(self, runs: JobRuns) -> Iterator[Requirement]:
        for name, most in MOST.items():
            if name in DISTANCES:
                found, what = runs.mean(name), f"KS distance, {DISTANCES[name]}"
                yield self._need(what, f"{found:.3f}", f"at most {most}", found <= most)
            else:
                trace, found = runs.of_trace(name), runs.mean(name)
                required = f"{trace:.3f} within {most}"
                near = abs(found - trace) <= most
                yield self._need(TITLES[name], f"{found:.3f}", required, near)
        least = min(runs.uniform)
        yield self._need(
            "normalized entropy, uniform model",
            f"{least:.3f}",
            f"at least {NAIVE_LEAST}",
            least >= NAIVE_LEAST,
        )

    def _schedule(self, schedule: Schedule) -> Iterator[Requirement]:
        for policy, load, row, column in schedule.points():
            if load in REQUIRED_LOADS:
                least, most = schedule.least[row, column], schedule.most[row, column]
                yield self._need(
                    f"slowdown, {POLICIES[policy]}, load {load:g}",
                    slowdown_text(schedule.trace.slowdown[row, column]),
                    f"{slowdown_text(least)} to {slowdown_text(most)}, the band of "
                    f"{len(schedule.workloads)}",
                    bool(schedule.inside[row, column]),
                )
