"""The methods section of a paper about a study: what was run with what, and how it is reported.

Every sentence comes from the study, its inputs and the installed versions, so that the text is that
of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpcrowd.analysis.comparison.sweeps import USER_METRICS
from hpcrowd.analysis.metrics import METRICS
from hpcrowd.analysis.paired import RESAMPLES
from hpcrowd.analysis.results import versions
from hpcrowd.environment.quantities import plural
from hpcrowd.environment.registry import place_of
from hpcrowd.scenarios.kinds.base import checksum
from hpcrowd.scenarios.sweeps.study import SEED, Study

#: Settings that other sentences of the text mention.
TOLD = ("kind", SEED)


def methods_text(study: Study) -> str:
    """Return the paragraphs of a methods section, each in one line.

    Parameters
    ----------
    study
        The study; nothing is run.

    Raises
    ------
    HpcrowdError
        When an input cannot be read.
    """
    paragraphs = (_tools(), _workload(study), _design(study), _statistics(study), _metrics(study))
    return "\n\n".join(part for part in paragraphs if part)


def _tools() -> str:
    found = versions()
    others = ", ".join(f"{name} {number}" for name, number in found.items() if name != "hpcrowd")
    return f"The simulations were done with hpcrowd {found['hpcrowd']} ({others})."


def _workload(study: Study) -> str:
    """Return the kind of scenario, its inputs and own code with checksums, and settings."""
    first = study.first()
    scenario = study.scenario_at(first)
    points = [first] + [
        {**first, axis: value} for axis, values in study.axes.items() for value in values[1:]
    ]
    files, sources = dict[str, str](), dict[str, str]()
    for point in points:
        one = study.scenario_at(point)
        files |= {path.name: checksum(path) for path in one.files().values()}
        sources |= one.of_sources().get("sources_sha256", {})
    kind = type(scenario).model_fields["kind"].description
    sentences = [f"Each run simulates {kind} (hpcrowd {scenario.kind})."]
    if files:
        sentences.append(f"Input: {_sums(files)}.")
    if sources:
        sentences.append(f"Our own schedulers and users: {_sums(sources)}.")
    assert isinstance(study.scenario, dict)  # a file has been read
    given = {
        name: value
        for name, value in study.scenario.items()
        if name not in (*TOLD, *study.axes) and name not in scenario.files()
    }
    settings = ", ".join(f"{name} {_shown(value)}" for name, value in given.items())
    if settings:
        sentences.append(f"Settings: {settings}; all others have the defaults of this version.")
    else:
        sentences.append("All settings that are not varied have the defaults of this version.")
    return " ".join(sentences)


def _sums(files: dict[str, str]) -> str:
    return "; ".join(f"{name}, SHA-256 {number}" for name, number in sorted(files.items()))


def _design(study: Study) -> str:
    varied = {axis: values for axis, values in study.axes.items() if axis != SEED}
    factors = "; ".join(f"{axis} ({_values(values)})" for axis, values in varied.items())
    seeds = study.axes.get(SEED, [])
    sentences = []
    if varied:
        sentences.append(f"We varied {factors}.")
    if seeds:
        what = "Every combination was" if varied else "It was"
        sentences.append(
            f"{what} run with {plural(len(seeds), 'seed')} ({_values(seeds)}), "
            f"{plural(len(study), 'run')} in all; runs with the same seed draw the same random "
            "numbers."
        )
    else:
        sentences.append(f"That makes {plural(len(study), 'run')}.")
    if study.drawn is not None and study.posterior_file is not None:
        drawn = study.drawn
        names = ", ".join(f"{prior.name} ({prior.text} a priori)" for prior in drawn.priors)
        log = (drawn.provenance or {}).get("trace", "a log")
        sentences.append(
            f"Each seed took a draw of {names} from their joint posterior for {log} "
            f"({study.posterior_file.name}, SHA-256 {checksum(study.posterior_file)})."
        )
    if study.trim.text:
        sentences.append(
            f"Jobs submitted in {study.trim.text} of submissions do not count; utilization and "
            "throughput are those of the time that is left."
        )
    return " ".join(sentences)


def _statistics(study: Study) -> str:
    seeds, how = len(study.axes.get(SEED, [])), study.result
    if seeds < 2:
        return ""
    ratio = how.effects == "ratio"
    kind = "Student's"
    if how.interval == "predictive":
        kind = "predictive (quantiles of the runs)"
    if how.interval == "bootstrap":
        kind = f"percentile bootstrap (seeds resampled {RESAMPLES:,} times)"
    effects = (
        "geometric means of the ratios" if ratio else "means of the differences"
    ) + " to the run with the same seed and the first value of the setting"
    of = "; their intervals are those of the mean logarithm of the ratio" if ratio else ""
    return (
        f"We report means over the seeds with {100 * how.confidence:g} % intervals, {kind}. "
        f"Effects of a setting are {effects}, all else being equal{of}."
    )


def _metrics(study: Study) -> str:
    meanings = {metric.name: metric.meaning for metric in METRICS}
    listed = []
    for name in study.result.metrics:
        base, share = USER_METRICS.get(name, (name, ""))
        if base in meanings:
            over = f", {share[1:]}th percentile over users" if share else ""
            listed.append(f"{name} ({meanings[base]}{over})")
        else:
            listed.append(name)
    return f"Metrics: {'; '.join(listed)}."


def _values(values: Sequence[Any]) -> str:
    """Return the values of an axis; whole numbers in a row as a range."""
    numbers = all(isinstance(value, int) for value in values)
    if numbers and len(values) > 2 and list(values) == list(range(values[0], values[-1] + 1)):
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(_shown, values))


def _shown(value: Any) -> str:
    """Return a value as text, places of own code without their folders."""
    place = place_of(value)
    if place is not None and place.file is not None:
        return place._replace(module=place.file.name).text
    if isinstance(value, dict):
        inside = ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
        return f"({inside})"
    return ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)
