"""A window of clean electricity.

Covers: a signal over time that users react to; shares of users who take part; carbon accounted for
by when jobs run, not by when they are submitted.

Story: electricity is dirtiest in the evening and cleanest around noon. The operator shows users a
carbon signal, and asks them to hold back jobs while it is above a threshold, until the window
opens again. The table shows what that saves when none, half or all of the users take part: the
carbon of each processor-hour, and the price that users pay in time. Jobs of this log run for hours
and wait for each other, so that a held job often runs into the next evening: much work moves, and
little carbon is saved. The signal is made up; only its daily shape matters (unconfirmed).

Run: ``python -m hpcrowd.scenarios.whatif.carbon_window TRACE``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcrowd.environment.clock import DAY, HOUR, Clock
from hpcrowd.environment.signals.signal import Signal
from hpcrowd.scenarios.whatif.scripts import ScriptTable, runs_of, script

if TYPE_CHECKING:
    from hpcrowd.analysis.run import Run
    from hpcrowd.environment.traces.trace import Trace


#: Carbon intensity by local hour of the day, g/kWh: wind at night, sun at noon, gas in the evening.
INTENSITY = (
    260, 250, 240, 240, 250, 280, 330, 360, 340, 290, 240, 210,
    200, 200, 220, 260, 330, 420, 470, 480, 450, 400, 340, 290,
)  # fmt: skip
THRESHOLD = 320  # g/kWh; above it users hold back
SHARES = (0.0, 0.5, 1.0)  # of users who take part
WATT = 10.0  # of a busy processor (unconfirmed); saved shares do not depend on it
USERS = {"rigid": "recorded", "adjusted": "batches"}  # which work comes next, by kind of users
SCHEDULER = "easy"
SEED = 0

HEAD = (
    "users",
    "take\npart (%)",
    "carbon\n(g/proc-h)",
    "carbon\n(kg)",
    "saved\n(%)",
    "held\n(proc-h)",
    "in the\nwindow (%)",
    "mean\nwait (h)",
    "makespan\n(days)",
)


def signal_of(trace: Trace, clock: Clock) -> Signal:
    """Return the intensity hour by hour, s of the run, for four times as long as the trace."""
    hours = np.arange(4 * (int(trace["submit"].max()) // HOUR + 24 * 30))
    local = (clock.wall(0) // HOUR + hours) % 24
    values = np.array(INTENSITY, np.float64)[local]
    return Signal(hours * HOUR - clock.wall(0) % HOUR, values, source="made-up carbon")


def runs(trace: Trace, signal: Signal) -> dict[str, dict[float, Run]]:
    """Return the runs by users, then by the share of them who take part."""
    from hpcrowd.agents.behaviours.energy.triggers import OnSignal
    from hpcrowd.agents.behaviours.reactions import Delay

    node = {"idle": "0 W", "processor": f"{WATT} W"}
    power = {"nodes": [node], "carbon": signal}
    trigger = OnSignal(signal, above=THRESHOLD, outside="off")
    variants = {
        share: {"reactions": [Delay(trigger, share=share)] if share else []} for share in SHARES
    }
    return runs_of(trace, USERS, variants, scheduler=SCHEDULER, seed=SEED, power=power)


def carbon(run: Run) -> tuple[float, float]:
    """Return g of all jobs, and g per processor-hour; 0 without jobs that ran."""
    energy = run.parts["power"].account
    grams = 1000 * energy["carbon_kg"] if energy else 0.0
    ran = run.jobs.over
    busy = float(run.jobs.processors[ran] @ run.jobs.lasted[ran]) / HOUR
    return grams, grams / busy if busy else 0.0


def row(users: str, share: float, run: Run, signal: Signal, before: float) -> tuple[str, ...]:
    """Return a line; ``before`` is the carbon of a processor-hour when no user takes part."""
    grams, each = carbon(run)
    submit = run.jobs.submit[run.jobs.submit >= 0]
    place = np.searchsorted(signal.times, submit, side="right") - 1
    inside = signal.values[np.clip(place, 0, len(signal.values) - 1)] <= THRESHOLD
    return (
        users,
        f"{100 * share:.0f}",
        f"{each:.3f}",
        f"{grams / 1000:,.1f}",
        f"{100 * (1 - each / before):.1f}" if before else "-",
        f"{run.parts['reactions'].account.get('work_moved_processor_s', 0) / HOUR:,.0f}",
        f"{100 * inside.mean():.1f}",
        f"{run.metrics['wait_mean_s'] / HOUR:.2f}",
        f"{run.metrics['makespan_s'] / DAY:.1f}",
    )


def table(trace: Trace) -> ScriptTable:
    """Replay a trace with every share of users who take part."""
    clock = Clock.of(trace.header)
    signal = signal_of(trace, clock)
    rows = []
    for users, by_share in runs(trace, signal).items():
        before = carbon(by_share[SHARES[0]])[1]
        rows += [row(users, share, run, signal, before) for share, run in by_share.items()]
    title = f"Jobs held while carbon is above {THRESHOLD} g/kWh: {Path(trace.source).name}"
    return ScriptTable(title, HEAD, rows, words=1)


#: Prints what a carbon window saves; returns the exit code.
main = script("carbon_window", lambda trace: [table(trace)])

if __name__ == "__main__":
    sys.exit(main())
