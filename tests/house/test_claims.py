"""Sentences of the documentation that draw a conclusion from random users: ten seeds each.

A case measures the range over seeds, and compares it with the figures on the page.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hpcrowd import Streams, Trace, replay, resample
from hpcrowd.analysis.comparison.numbers import measure
from hpcrowd.environment.clock import HOUR
from hpcrowd.environment.platform.changes import Failures, FailureTimes
from hpcrowd.environment.quantities import round_half_up
from hpcrowd.scenarios.demo import run_demo
from hpcrowd.scenarios.kinds.platform_files import PlatformConfig
from hpcrowd.scenarios.whatif import grid_or_isolated, outage_week

from tests.support.places import ROOT

SEEDS = range(10)

Measure = Callable[[Trace, Path], Iterator[dict[str, float]]]


def figures(text, words, values):
    """Return the figures behind some words of a page, and those that follow from values by seed.

    ``words: name:.1f >name:.0f 441`` are the least and largest value, the largest, and a figure.
    """
    begin, _, named = words.partition(": ")
    expected = []
    for one in named.split():
        name, _, form = one.partition(":")
        found = [value[name.lstrip(">")] for value in values] if form else []
        ends = (max,) if one.startswith(">") else (min, max)
        expected += [format(end(found), form) for end in ends] if form else [one]
    assert text.count(begin) == 1, begin
    behind = re.findall(r"\d(?:[\d,]*\d)?(?:\.\d+)?", text.partition(begin)[2][:900])
    return expected, behind[: len(expected)]


def bad_week(trace, folder):
    """Waits in a week of failures and in the one after, by kind of users."""
    page = (ROOT / "docs" / "guides" / "change-the-platform.md").read_text()
    found = re.search(r'title="bad-week.toml"\n(.*?)```', page, re.DOTALL)
    assert found is not None
    (folder / "bad-week.toml").write_text(found[1])

    def weeks(users, seed, platform):
        run = replay(trace, users=users, seed=seed, platform=platform and str(platform))
        bad = PlatformConfig.read(folder / "bad-week.toml").of(run.clock)[0]
        assert isinstance(bad, Failures)
        assert bad.until is not None
        jobs, length = run.jobs, bad.until - bad.start
        values: list[float] = []
        for first in (bad.start, bad.until):
            here = (jobs.submit >= first) & (jobs.submit < first + length)
            wait = (jobs.start - jobs.submit)[here].mean()
            work = jobs.processors[here] @ jobs.run_time[here]
            values += [float(wait), float(here.sum()), float(work)]
        return values

    usual = {users: weeks(users, 0, None) for users in ("rigid", "think-time")}
    for seed in SEEDS:
        rigid, think = (weeks(users, seed, folder / "bad-week.toml") for users in usual)
        yield {
            "rigid": rigid[0] / usual["rigid"][0],
            "rigid_after": rigid[3] / usual["rigid"][3],
            "jobs": think[1],
            "less": 100 * (1 - think[2] / usual["think-time"][2]),
            "wait": think[0] / usual["think-time"][0],
            "after": think[3] / usual["think-time"][3],
        }


def demo(trace, folder):
    """What EASY changes in the demo, without and with feedback."""
    for seed in SEEDS:
        waits, jobs = zip(
            *((run.metrics["wait_mean_s"] / HOUR, len(run.jobs)) for run in run_demo(28, seed)),
            strict=True,
        )
        yield {
            "oblivious": waits[0] - waits[1],
            "less": waits[2] - waits[3],
            "more": waits[3] - waits[2],
            "jobs": 100 * (jobs[3] / jobs[2] - 1),
        }


def user_means(jobs, values):
    """Return the mean over the jobs of each user, by user number."""
    _, place = np.unique(jobs.user, return_inverse=True)
    return np.asarray(np.bincount(place, weights=values) / np.bincount(place))


def fluid(trace, folder):
    """Fluid users next to rigid ones."""
    rigid = replay(trace, users="rigid")
    usual, waits = measure(rigid), user_means(rigid.jobs, rigid.jobs.start - rigid.jobs.submit)
    for seed in SEEDS:
        run = replay(trace, users="fluid", seed=seed)
        jobs, found = run.jobs, measure(run)
        late = user_means(jobs, jobs.submit - jobs.recorded_submit)
        yield {
            "less": (usual.wait_mean_s - found.wait_mean_s) / 60,
            "users": (waits - user_means(jobs, jobs.start - jobs.submit)).mean() / 60,
            "days": (found.makespan_s - usual.makespan_s) / 86400,
            "times": found.makespan_s / usual.makespan_s,
            "late": 100 * (late > 0).mean(),
            "activity": found.activity_p50,
        }


def distribution(trace, folder):
    """Users who draw their hours."""
    for seed in SEEDS:
        found = measure(replay(trace, users="distribution", seed=seed))
        yield {
            "distance": found.profile_distance,
            "activity": found.activity_p50,
            "wait": found.wait_mean_s / 60,
        }


def outage(trace, folder):
    """Fluid users in a week without the machine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(outage_week, "USERS", ("fluid",))
        for seed in SEEDS:
            patched.setattr(outage_week, "SEED", seed)
            usual, out = outage_week.table(trace).rows
            yield {"usual": float(usual[2]), "jobs": float(out[2]), "days": float(out[6])}


def giving_up(trace, folder):
    """Users who care how they are served, on a slow and on a fast machine."""
    for seed in SEEDS:
        values = {}
        for name, speed in (("slow", "0.5x"), ("fast", "2x")):
            found = resample(
                trace, days=112, speed=speed, satisfaction="habit", requested="at-least:2x",
                seed=seed,
            ).parts["population"].account  # fmt: skip
            values[name] = float(found["users_gave_up"])
            values[f"{name}_work"] = 100.0 * round(found["work_recorded_node_h_per_week"] / 100)
        yield values


def twice(trace, folder):
    """Twice the users on twice the nodes."""
    for seed in SEEDS:
        once = resample(trace, days=112, seed=seed)
        both = resample(trace, days=112, seed=seed, population="2x", processors="2x")
        yield {
            "once": once.metrics["wait_mean_s"] / HOUR,
            "twice": both.metrics["wait_mean_s"] / HOUR,
        }


def institutes(trace, folder):
    """Users drawn for three separate clusters."""
    jobs = grid_or_isolated.jobs_from_trace(trace).jobs
    size = trace.processors // grid_or_isolated.CLUSTERS
    narrow = jobs.take(np.flatnonzero(jobs.processors <= size))
    with pytest.MonkeyPatch.context() as patched:
        for seed in SEEDS:
            patched.setattr(grid_or_isolated, "SEED", seed)
            found = grid_or_isolated.run(narrow.copy(), trace, size, "think-time", "apart")
            yield {"wait": found.wait_h}


def generative(trace, folder):
    """Users who make up their work on the days that they were present."""
    recorded = len(grid_or_isolated.jobs_from_trace(trace).jobs)
    for seed in SEEDS:
        run = replay(trace, users="generative", seed=seed)
        yield {"more": 100 * (len(run.jobs) / recorded - 1)}


def closed_population(trace, folder):
    """Users who come on every day for ever."""
    for seed in SEEDS:
        run = replay(trace, users="shmueli-feitelson", seed=seed)
        yield {"hours": float(run.jobs.run_time.mean()) / HOUR}


#: Where figures of each measure are: a page, words of it, and the figures behind them.
CLAIMS: dict[Measure, dict[str, tuple[str, ...]]] = {
    bad_week: {
        "guides/change-the-platform.md": (
            "in the bad week their waits grow: rigid:.1f rigid_after:.1f",
            "Users who wait for their jobs submit: jobs:.0f 441 less:.0f wait:.1f after:.1f",
        )
    },
    demo: {
        "guides/demo.md": (
            "the step from FCFS to EASY saves oblivious users: oblivious:.1f",
            "Users who react submit: jobs:.0f >less:.1f >more:.1f",
        )
    },
    fluid: {
        "guides/compare.md": (
            "Fluid users wait less by either count: 0 9 less:.0f users:.0f days:.0f",
            "of the fluid users: late:.0f",
        ),
        "behaviours/fluid.md": (
            "the median activity length is: activity:.2f",
            "the makespan is: times:.2f",
        ),
    },
    distribution: {
        "behaviours/distribution.md": (
            "its distance from the record of KTH-SP2 is: distance:.2f",
            "half of the users finish in: activity:.2f",
        ),
        "behaviours/index.md": ("the mean wait on KTH-SP2 is: wait:.0f",),
    },
    outage: {
        "guides/what-if.md": ("over seeds 0 to 9 they submit: jobs:.0f usual:.0f days:.1f",),
    },
    giving_up: {
        "guides/populations.md": (
            "Over seeds 0 to 9,: slow:.0f fast:.0f slow_work:,.0f fast_work:,.0f",
        ),
    },
    twice: {
        "guides/populations.md": ("of 112 days on KTH-SP2, they wait: twice:.1f once:.1f",),
    },
    institutes: {"guides/grids.md": ("who keep their think times wait: wait:.1f",)},
    generative: {"behaviours/shmueli-feitelson.md": ("although it is not an input: 0 9 more:.0f",)},
    closed_population: {
        "behaviours/shmueli-feitelson.md": ("falls from 2.5 h to between: hours:.2f",),
    },
}


@pytest.mark.endurance
@pytest.mark.traces
@pytest.mark.parametrize("measured", CLAIMS, ids=lambda measured: measured.__name__)
def test_claim_holds_over_ten_seeds(measured, kth, tmp_path):
    """The ranges on the page are those over seeds 0 to 9."""
    values = list(measured(kth, tmp_path))
    for page, claims in CLAIMS[measured].items():
        text = " ".join((ROOT / "docs" / page).read_text().split())
        for words in claims:
            expected, behind = figures(text, words, values)
            assert expected == behind, words


def test_mean_of_short_gaps_is_as_documented():
    """Rounding half up biases means near a second as the page on time says."""
    page = " ".join((ROOT / "docs" / "background" / "time.md").read_text().split())
    drawn = np.asarray(round_half_up(np.random.default_rng(1).exponential(1.0, 400_000)))
    failures = FailureTimes(Failures(1, 1), Streams(1).generator("times"))
    at = [next(failures)[0] for _ in range(200_000)]
    assert drawn.mean() == pytest.approx(0.96, abs=0.01)
    assert at[-1] / len(at) == pytest.approx(1.35, abs=0.01)
    assert "mean of 0.96 s after rounding, and of 1.35 s where it is at least 1 s" in page
