"""What saves energy, carbon and money, and what it costs users: KTH, HPC2N and Curie.

Covers: populations drawn from a trace, so that savings have intervals; switching idle nodes off;
night tariffs and carbon signals that half of the users follow; a policy that lets jobs wait for
clean energy; a cap on power; a fair budget of energy; the demand response of Madon et al. 2022.

Story: an operator is asked to save. Which measure saves much, which nearly nothing, and who pays
with waits or with work that is not done? Each population is the same for all measures, so each
saving is computed population by population.

Run: ``python -m hpcrowd.scenarios.studies.energy.run TRACE``; its page:
``python -m hpcrowd.scenarios.studies.refresh energy --traces FOLDER``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcrowd.analysis.energy.part import over_time_of
from hpcrowd.analysis.paired import Estimate, t_interval
from hpcrowd.analysis.pictures.plots import COLOURS, LEGEND, new_figure, panels, tidy
from hpcrowd.environment.clock import DAY, DAYS, HOUR, WEEK, Clock
from hpcrowd.environment.quantities import KWH
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.environment.signals.walls import walls_of
from hpcrowd.environment.streams import Streams
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import Trace
from hpcrowd.scenarios.studies.render import Picture, Table, page_parts
from hpcrowd.scenarios.studies.running import LOGS, Steps, find_logs, study_script
from hpcrowd.scenarios.terminal import Progress, progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hpcrowd.agents.behaviours.parts import Reaction
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.signals.signal import Signal


# ---- The setting of the study: a node's power, a tariff, and a carbon intensity that is made up --
# Logs of 1996 to 2012 are replayed as if their processors were those of one node type, so that logs
# differ in their workload alone. What is saved in percent depends on the ratios of the figures, not
# on their size.

#: W of a node of two processors with eight cores of 2.7 GHz: idle, all cores busy, switched off.
#: Georgiou et al. 2015 for the thin nodes of Curie (unconfirmed); nodes like these take 340 W under
#: Linpack (Brochard, EnA-HPC 2013).
IDLE_W, BUSY_W, OFF_W = 117.0, 358.0, 14.0

#: s and J to switch such a node on and off: Rais et al. 2018 for Taurus of Grid'5000 (unconfirmed).
ON_S, ON_J, OFF_S, OFF_J = 150, 18_966.0, 7, 657.0

#: Power usage effectiveness (our choice).
PUE = 1.3

#: EUR per kWh by day and from 22:00 to 6:00, and per kW of the highest power of a month (our
#: choice).
DAY_PRICE, NIGHT_PRICE, PEAK_PRICE = 0.30, 0.15, 10.0
NIGHT_BEGINS, NIGHT_ENDS = 22 * HOUR, 6 * HOUR

#: Processors of a node of each log: KTH and HPC2N from the archive's pages, Curie's thin nodes.
NODE_PROCESSORS = {"KTH": 1, "HPC2N": 2, "Curie": 16}

#: g/kWh by local hour of the day: wind at night, sun at noon, gas in the evening (made up).
INTENSITY = (
    260, 250, 240, 240, 250, 280, 330, 360, 340, 290, 240, 210,
    200, 200, 220, 260, 330, 420, 470, 480, 450, 400, 340, 290,
)  # fmt: skip

#: Days of wind and calm: standard deviation of the logarithm, and correlation of a day with the
#: next (made up).
WIND, LASTING = 0.25, 0.7

#: Seed of the days of wind.
SEED = 27


def power_of(log: str, **policies: Any) -> dict[str, Any]:
    """Return the description of power for a log, as a table, with policies such as ``sleep``."""
    count = NODE_PROCESSORS[log]
    return {
        "name": "power",
        "source": "see the page of the study",
        "pue": PUE,
        "nodes": [
            {
                "name": "thin",
                "processors": count,
                "idle": f"{IDLE_W} W",
                "processor": f"{(BUSY_W - IDLE_W) / count} W",
                "asleep": f"{OFF_W} W",
                "on_time": ON_S,
                "on_energy": f"{ON_J} J",
                "off_time": OFF_S,
                "off_energy": f"{OFF_J} J",
            }
        ],
        "tariff": {
            "price": DAY_PRICE,
            "peak_price": PEAK_PRICE,
            "periods": [
                {
                    "price": NIGHT_PRICE,
                    "opens": NIGHT_BEGINS,
                    "closes": NIGHT_ENDS,
                    "days": list(DAYS),
                }
            ],
        },
        **policies,
    }


def carbon_signal(clock: Clock, until: int) -> Signal:
    """Return a made-up carbon intensity by local hour, for a run that lasts ``until``, s."""
    times = np.arange((until + 2 * DAY) // HOUR) * HOUR - clock.wall(0) % HOUR
    walls = walls_of(clock, times)
    local, day = walls // HOUR % 24, walls // DAY - walls[0] // DAY
    stream = Streams(SEED).generator("wind")
    level, days = 0.0, []
    for _ in range(int(day.max()) + 1):
        level = LASTING * level + WIND * (1 - LASTING**2) ** 0.5 * stream.standard_normal()
        days.append(np.exp(level))
    values = np.array(INTENSITY, np.float64)[local] * np.array(days)[day]
    return Signal(times, values, source="made-up carbon")


def day_cap(clock: Clock, signal: Signal, low: float, high: float) -> Signal:
    """Return a limit on power, W, on the hours of a signal: low by day, high at night prices."""
    hour = walls_of(clock, signal.times) % DAY
    by_day = (hour >= NIGHT_ENDS) & (hour < NIGHT_BEGINS)
    return replace(signal, values=np.where(by_day, low, high), source="power by day")


# ---- what a measure saves --------------------------------------------------------------------

#: The measure that the others are compared with.
USUAL = "as usual"


@dataclass(frozen=True)
class Measured:
    """One run between two seconds, the same for all measures."""

    #: Energy, and the part that brought nobody a result.
    kwh: float
    wasted_kwh: float
    kg: float  #: Carbon.
    cost: float  #: Price of the energy, without that of monthly peaks.
    peak_kw: float  #: Highest power.
    #: Mean wait and mean bounded slowdown of the jobs submitted between the two seconds.
    wait_h: float
    slowdown: float
    work_h: float  #: Processor-hours of jobs that ran to their end, within the two seconds.
    lost: float  #: Part of the work of all users that they gave up, less what came back.
    asked: float  #: Jobs that users changed, as a part of all.
    #: Energy in the windows of a call for less load, and in the 24 h after each.
    window_kwh: float = 0.0
    after_kwh: float = 0.0

    @property
    def kwh_per_work(self) -> float:
        """kWh for 1,000 processor-hours of finished work."""
        return 1000 * self.kwh / self.work_h

    @property
    def kg_per_work(self) -> float:
        """kg of carbon for 1,000 processor-hours of finished work."""
        return 1000 * self.kg / self.work_h

    @property
    def cost_per_work(self) -> float:
        """Price of the energy for 1,000 processor-hours of finished work."""
        return 1000 * self.cost / self.work_h

    @property
    def kg_per_kwh(self) -> float:
        """Carbon intensity of its energy."""
        return self.kg / self.kwh

    @property
    def cost_per_kwh(self) -> float:
        """Mean price of its energy."""
        return self.cost / self.kwh


@dataclass(frozen=True)
class Savings:
    """The runs of one log by measure, one for each population."""

    log: str  #: Name of the log.
    #: By measure, in the order of the populations; :data:`USUAL` is among them.
    runs: Mapping[str, Sequence[Measured]]
    #: The same for calls for less load, by what users do; :data:`USUAL` is among them.
    calls: Mapping[str, Sequence[Measured]]
    facts: Mapping[str, Any]  #: Of the log and its machine.

    def _of(self, measure: str, what: str, call: bool) -> list[tuple[float, float]]:
        """Return something with a measure and as usual, population by population."""
        found = self.calls if call else self.runs
        pairs = zip(found[measure], found[USUAL], strict=True)
        return [(getattr(one, what), getattr(usual, what)) for one, usual in pairs]

    def saved(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return by how much less there is of an attribute of :class:`Measured` than as usual.

        In percent, with an interval; ``call``: by calls for less load.
        """
        pairs = self._of(measure, what, call)
        return t_interval([100 * (1 - one / usual) for one, usual in pairs])

    def more(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return by how much more of something there is than as usual, with its interval."""
        return t_interval([one - usual for one, usual in self._of(measure, what, call)])

    def mean(self, measure: str, what: str, *, call: bool = False) -> Estimate:
        """Return the mean of something with its interval."""
        return t_interval([one for one, _ in self._of(measure, what, call)])


# ---- tables, sentences and a picture ---------------------------------------------------------

#: Percent of energy for the same work: a measure saves much from here on, and nearly nothing if it
#: saves or needs less than this.
MUCH, LITTLE = 5.0, 3.0

#: What is saved for the same work, with words: attribute of a run.
SAVED = {"kwh_per_work": "energy", "kg_per_work": "carbon", "cost_per_work": "cost"}

#: Look of each of them.
LOOKS = {"kwh_per_work": "blue", "kg_per_work": "green", "cost_per_work": "orange"}


#: Columns of :func:`saving_rows` that compare a measure with as usual: percent less of something.
LESS = {
    "kwh": "energy, % less",
    "kg": "carbon",
    "cost": "cost",
    "work_h": "work done",
    "kwh_per_work": "energy per work",
    "kg_per_kwh": "carbon per kWh",
    "cost_per_kwh": "price per kWh",
}


def saving_rows(found: Savings) -> list[list[str]]:
    """Return a row for each measure: what it saves, and its price."""
    return [
        [
            measure,
            *(found.saved(measure, what).text() for what in LESS),
            found.more(measure, "wait_h").text(),
            f"{100 * found.mean(measure, 'lost').mean:.1f}",
            f"{100 * found.mean(measure, 'asked').mean:.0f}",
        ]
        for measure in found.runs
        if measure != USUAL
    ]


SAVING_HEAD = ["measure", *LESS.values(), "wait, h more", "given up, %", "jobs changed, %"]


def usual_rows(found: Sequence[Savings]) -> list[list[str]]:
    """Return a row for each log: what it uses as usual."""
    return [
        [
            one.log, f"{one.facts['processors']:,}", str(one.facts["seeds"]),
            f"{one.facts['weeks']}", one.mean(USUAL, "kwh").text(0),
            f"{100 * one.mean(USUAL, 'wasted_kwh').mean / one.mean(USUAL, 'kwh').mean:.0f}",
            one.mean(USUAL, "wait_h").text(), one.mean(USUAL, "kwh_per_work").text(0),
        ]
        for one in found
    ]  # fmt: skip


USUAL_HEAD = [
    "log", "processors", "populations", "weeks", "energy, kWh", "of it wasted, %", "mean wait, h",
    "kWh per 1,000 processor-hours",
]  # fmt: skip


def call_rows(found: Sequence[Savings]) -> list[list[str]]:
    """Return a row for each log and answer to calls for less load."""
    return [
        [
            one.log, answer, one.saved(answer, "window_kwh", call=True).text(),
            one.saved(answer, "after_kwh", call=True).text(),
            one.saved(answer, "kwh", call=True).text(2),
            one.more(answer, "wait_h", call=True).text(2),
            one.more(answer, "slowdown", call=True).text(),
            f"{100 * one.mean(answer, 'lost', call=True).mean:.2f}",
        ]
        for one in found
        for answer in one.calls
        if answer != USUAL
    ]  # fmt: skip


CALL_HEAD = [
    "log", "users", "energy in the windows, % less", "in the 24 h after", "in all",
    "wait, h more", "slowdown more", "work given up, %",
]  # fmt: skip


def tables(found: Sequence[Savings]) -> list[Table]:
    """Return the tables of the study, on a terminal or on the page."""
    shown = [Table("As usual", USUAL_HEAD, usual_rows(found), part="usual")]
    shown += [
        Table(
            f"{one.log}: saved, and its price; means over populations with 95 % intervals",
            SAVING_HEAD, saving_rows(one), part=f"saved-{one.log.lower()}",
        )
        for one in found
    ]  # fmt: skip
    if any(one.calls for one in found):
        shown.append(Table("Calls for less load", CALL_HEAD, call_rows(found), 2, "calls"))
    return shown


def summary_lines(found: Sequence[Savings]) -> list[str]:
    """Return what saves much and what saves nearly nothing, without the full stop."""
    names = [name for name in found[0].runs if name != USUAL]

    def span(name: str, what: str) -> tuple[float, float]:
        values = [one.saved(name, what).mean for one in found]
        return min(values), max(values)

    def waits(name: str) -> str:
        values = [one.more(name, "wait_h").mean for one in found]
        least, most = (round(value, 1) + 0.0 for value in (min(values), max(values)))  # no -0.0
        return f"{least:+.1f} to {most:+.1f} h"

    def described(name: str) -> str:
        (least, most), (low, high) = span(name, "kwh_per_work"), span(name, "work_h")
        price = f"mean wait {waits(name)}"
        if high >= 1:
            price += f", {low:.0f} to {high:.0f} % less work in the same time"
        return f"{name} ({least:.1f} to {most:.1f} %; {price})"

    much = [name for name in names if span(name, "kwh_per_work")[0] >= MUCH]
    little = [name for name in names if max(map(abs, span(name, "kwh_per_work"))) < LITTLE]
    other = [name for name in names if name not in (*much, *little)]
    more = [name for name in other if span(name, "kwh_per_work")[0] < 0]
    some = [name for name in other if name not in more]
    lines = [
        f"**{verdict}**: {'; '.join(map(described, chosen))}"
        for verdict, chosen in (
            ("Saves much energy for the same work", much),
            ("Saves some energy for the same work", some),
            (f"Saves nearly nothing, within {LITTLE:g} % either way", little),
            ("Needs more energy for the same work, on one log at least", more),
        )
        if chosen
    ]
    for what, words in (("kg_per_kwh", "cleaner"), ("cost_per_kwh", "cheaper")):
        best = sorted(names, key=lambda name, what=what: -span(name, what)[1])[:3]  # type: ignore[misc]
        said = "; ".join(
            f"{name} {span(name, what)[0]:.1f} to {span(name, what)[1]:.1f} %" for name in best
        )
        most = span(best[0], what)[1]
        lines.append(f"**Energy becomes {words}** by {most:.1f} % at most: {said}")
    return lines


def draw_savings(found: Sequence[Savings]) -> Figure:
    """Energy, carbon and cost saved by each measure, a panel for each log."""
    names = [name for name in found[0].runs if name != USUAL]
    figure = new_figure(
        12, 1.5 + 0.42 * len(names), "What saves energy, carbon and money, for the same work",
        "percent less than as usual for the same work; means over populations with 95 % intervals",
    )  # fmt: skip
    room = {"left": 0.27, "bottom": 0.1, "top": 0.83, "wspace": 0.08}
    drawn_on = panels(figure, 1, len(found), **room)
    for place, (axes, one) in enumerate(zip(drawn_on, found, strict=True)):
        tidy(axes, one.log)
        axes.axvline(0, color="#999999", linewidth=0.8)
        for offset, (what, words) in zip((-0.25, 0.0, 0.25), SAVED.items(), strict=True):
            estimates = [one.saved(name, what) for name in names]
            halves: Any = [each.half_width or 0.0 for each in estimates]
            axes.errorbar(
                [each.mean for each in estimates], [at + offset for at in range(len(names))],
                xerr=halves, fmt="o", markersize=4.5, capsize=2, linewidth=1.3,
                color=COLOURS[LOOKS[what]], label=words,
            )  # fmt: skip
        axes.set_yticks(range(len(names)), names if not place else [""] * len(names), fontsize=8.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel("saved, %", fontsize=8.5)
        if not place:
            figure.legend(
                *axes.get_legend_handles_labels(), loc="upper right", ncols=3,
                bbox_to_anchor=(0.985, 0.95), **(LEGEND | {"fontsize": 9}),
            )  # fmt: skip
    return figure


# ---- runs ------------------------------------------------------------------------------------

SEEDS = {"KTH": 10, "HPC2N": 10, "Curie": 5}  # populations drawn
WEEKS = {"KTH": 26, "HPC2N": 26, "Curie": 13}  # of users' submissions
WARM_UP = WEEK  # at the beginning, left out of all sums
SCHEDULER = "easy"
WHEN = "batches"  # users wait for their batches, and keep their think times
HALF = 0.5  # of the users take part
OFF_AFTER = 900  # s without a job after which a node is switched off
SLACK = 12 * HOUR  # longest wait for clean energy
CLEAN = 320.0  # g/kWh; above it users delay, degrade or renounce
CAPPED = 0.8  # of the highest possible power
BUDGET = 0.9  # of what jobs use in a month as usual, divided as the recorded work of users
MONTH = 30.44 * DAY  # a mean one

#: Windows of the demand response of Madon et al. 2022: one in each week, Wednesday, local time. The
#: paper has windows of its own (unconfirmed).
CALL_DAY, CALL_HOURS = 2, (16, 20)
ANSWERS = ("delay", "degrade", "reconfigure", "renounce")

#: Tables of policies, and what users do.
Chosen = tuple[dict[str, Any], tuple[Any, ...]]

#: The logs of the page.
STUDIED = ("KTH", "HPC2N", "Curie")


def drawn(trace: Trace, seed: int, weeks: int) -> Trace:
    """Return a population of a trace as a trace: its users, moved by whole weeks, as recorded."""
    from hpcrowd.scenarios.kinds.populations.resample import resample

    run = resample(trace, users="rigid", scheduler="recorded", seed=seed, days=7 * weeks, warm_up=0)
    return run.to_trace()


def reactions_of(signal: Signal) -> dict[str, tuple[Reaction, ...]]:
    """Return what users do, by the measure."""
    from hpcrowd.agents.behaviours.energy.triggers import OnSignal
    from hpcrowd.scenarios.kinds.part_files import reaction_from

    def dirty(do: str, share: float, **more: Any) -> tuple[Reaction, ...]:
        from hpcrowd.agents.behaviours.energy import sufficiency
        from hpcrowd.agents.behaviours.reactions import Delay

        kinds = {"delay": Delay, "degrade": sufficiency.Degrade, "renounce": sufficiency.Renounce}
        trigger = OnSignal(signal, above=CLEAN, outside="off")
        return (kinds[do](trigger, share=share, name=f"{do} while dirty", **more),)

    at_day = {"opens": NIGHT_ENDS, "closes": NIGHT_BEGINS, "days": list(DAYS)}
    night = {"do": "delay", "when": "during", "hours": at_day, "share": HALF}
    return {
        "half delay to the night tariff": (reaction_from(night),),
        "half delay while carbon is high": dirty("delay", HALF),
        "half degrade while carbon is high": dirty("degrade", HALF),
        "half degrade, all comes back": dirty("degrade", HALF, rebound=1.0),
        "half renounce while carbon is high": dirty("renounce", HALF),
    }


def measures_of(log: str, clock: Clock, signal: Signal, size: int) -> dict[str, Chosen]:
    """Return the tables of policies and the reactions of each measure; as usual comes first."""
    highest = size / NODE_PROCESSORS[log] * BUSY_W
    sleep = {"sleep": {"after": OFF_AFTER}}
    cap = {"over_time": day_cap(clock, signal, CAPPED * highest, highest)}
    start = {"start": {"follow": "carbon", "slack": SLACK}}
    assert CAPPED * BUSY_W > IDLE_W
    people = reactions_of(signal)
    dirty = "while carbon is high"
    return {
        USUAL: ({}, ()),
        "idle nodes off": (sleep, ()),
        "jobs wait for clean energy": (start, ()),
        f"by day at most {100 * CAPPED:.0f} % of the power": ({"cap": cap}, ()),
        **{name: ({}, reactions) for name, reactions in people.items()},
        f"half delay {dirty}, idle nodes off": (sleep, people[f"half delay {dirty}"]),
        f"half renounce {dirty}, idle nodes off": (sleep, people[f"half renounce {dirty}"]),
    }


def fair_budget(usual: Run) -> tuple[Reaction, ...]:
    """Return a reaction: jobs beyond a user's budget of the month wait for the next one."""
    from hpcrowd.scenarios.kinds.part_files import reaction_from

    account = over_time_of(usual.parts)
    assert account is not None
    monthly = usual.parts["power"].account["jobs_kwh"] * MONTH / (account.end - account.begin)
    return (
        reaction_from(
            {"do": "delay", "when": "budget", "machine_kwh": BUDGET * monthly, "fair": "record"}
        ),
    )


def measured_of(run: Run, begin: int, end: int, calls: Sequence[tuple[int, int]] = ()) -> Measured:
    """Return the measures of a run between two seconds."""
    from hpcrowd.analysis.metrics import bounded_slowdown
    from hpcrowd.analysis.pictures.power import wasted_of

    account, jobs = over_time_of(run.parts), run.jobs
    assert account is not None
    end = min(end, account.end)
    power, spent = account.curve, account.between(begin, end)
    mine = jobs.over & (jobs.submit >= begin) & (jobs.submit < end)
    within = np.minimum(jobs.end, end) - np.maximum(jobs.start, begin)
    work = float((jobs.processors * np.maximum(within, 0))[jobs.over].sum()) / HOUR
    wait = (jobs.start - jobs.submit)[mine]
    slow = bounded_slowdown((jobs.end - jobs.submit)[mine], jobs.lasted[mine])
    accounts = run.parts["reactions"].account
    lost = accounts.get("work_lost_processor_s", 0) - accounts.get("work_returned_processor_s", 0)
    needed = accounts.get("work_recorded_processor_s", 1)
    windows = [(a, min(b, end)) for a, b in calls if begin <= a < end]
    rest = [(b, min(b + DAY, end)) for _, b in windows if b < end]

    def kwh(spans: Sequence[tuple[int, int]]) -> float:
        return sum(float(power.integral(a, b)) for a, b in spans) / KWH

    return Measured(
        kwh=spent["energy_kwh"],
        wasted_kwh=float(wasted_of(account).integral(begin, end)) / KWH,
        kg=spent["carbon_kg"],
        cost=spent["energy_cost"],
        peak_kw=spent["power_peak_kw"],
        wait_h=float(wait.mean()) / HOUR,
        slowdown=float(slow.mean()),
        work_h=work,
        lost=lost / needed,
        asked=accounts.get("jobs", 0) / len(jobs),
        window_kwh=kwh(windows),
        after_kwh=kwh(rest),
    )


def calls_of(clock: Clock, begin: int, end: int) -> list[tuple[int, int]]:
    """Return the windows of calls for less load between two seconds."""
    found: list[tuple[int, int]] = []
    week = clock.wall(begin) // WEEK
    while True:
        local = week * WEEK + CALL_DAY * DAY
        first, last = (clock.second_at(local + hour * HOUR) for hour in CALL_HOURS)
        week += 1
        if first >= end:
            return found
        if first >= begin:
            found.append((first, last))


def simulated(
    log: str,
    population: Trace,
    signal: Signal,
    seed: int,
    policies: Mapping[str, Any],
    reactions: tuple[Reaction, ...],
) -> Run:
    """Return a replay of a population with policies and reactions."""
    from hpcrowd.agents.presets import Recipe
    from hpcrowd.scenarios.kinds.replay import replay

    users: Callable[..., Any] = Recipe(WHEN, reactions=reactions)
    power = {**power_of(log, **policies), "carbon": signal}
    return replay(population, users=users, scheduler=SCHEDULER, power=power, seed=seed)


def run_energy(
    log: str,
    trace: Trace,
    *,
    seeds: int | None = None,
    weeks: int | None = None,
    progress: Progress | None = None,
) -> Savings:
    """Run every measure on every population of a log, a name of :data:`STUDIED`.

    Numbers of populations and of weeks are those of :data:`SEEDS` and :data:`WEEKS` unless given.
    Progress is called before each run.
    """
    from hpcrowd.scenarios.kinds.part_files import reaction_from

    seeds, weeks = seeds or SEEDS[log], weeks or WEEKS[log]
    runs: dict[str, list[Measured]] = {}
    answers: dict[str, list[Measured]] = {}
    steps = Steps(seeds * (13 + len(ANSWERS)), progress)
    for seed in range(seeds):
        steps.begin(f"{log}, population {seed}")
        population = drawn(trace, seed, weeks)
        clock = Clock.of(population.header)
        end = weeks * WEEK
        signal = carbon_signal(clock, 4 * end)
        called = calls_of(clock, WARM_UP, end)

        simulate = partial(simulated, log, population, signal, seed)
        measures = measures_of(log, clock, signal, trace.processors)
        for name, (policies, reactions) in measures.items():
            steps.begin(f"{log}, population {seed}, {name}")
            run = simulate(policies, reactions)
            runs.setdefault(name, []).append(measured_of(run, WARM_UP, end, called))
            if name == USUAL:
                budget = fair_budget(run)
        steps.begin(f"{log}, population {seed}, budget")
        found = measured_of(simulate({}, budget), WARM_UP, end, called)
        runs.setdefault(f"fair budgets of {100 * BUDGET:.0f} % of the energy", []).append(found)
        answers.setdefault(USUAL, []).append(runs[USUAL][-1])
        for answer in ANSWERS:
            steps.begin(f"{log}, population {seed}, {answer} when called")
            reaction = reaction_from({"do": answer, "when": "during", "periods": called})
            run = simulate({}, (reaction,))
            answers.setdefault(answer, []).append(measured_of(run, WARM_UP, end, called))
    facts = {"processors": trace.processors, "seeds": seeds, "weeks": weeks}
    return Savings(log, runs, answers, facts)


def page_contents(traces: Path) -> tuple[dict[str, str], list[Picture]]:
    """Run the study; return the generated parts of its page by name, and its picture."""
    paths = find_logs(traces, {name: LOGS[name] for name in STUDIED}, STUDIED)
    with progress_bar() as progress:
        found = [run_energy(name, read_trace(paths[name]), progress=progress) for name in STUDIED]
    parts = page_parts(summary_lines(found), tables(found))
    return parts, [Picture.of("energy", draw_savings, found)]


def measured_tables(trace: Trace, progress: Progress) -> list[Table]:
    """Run the measures on a trace, as one of KTH's nodes unless its name says another log."""
    name = next((log for log in STUDIED if log.lower() in Path(trace.source).name.lower()), "KTH")
    return tables([run_energy(name, trace, progress=progress)])


#: Runs the measures on a trace; prints tables; returns the exit code.
main = study_script("energy", measured_tables)

if __name__ == "__main__":
    sys.exit(main())
