"""Checks of decayed usage for the audit of a run: added up anew, period by period."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hpcrowd.environment.machine.model import Account, Machine, Partition, Qos
from hpcrowd.environment.schedulers.slurm.billing import reset_around

#: s; sums of usage that differ by less are equal.
ROUNDED = 1e-6


class Charge(NamedTuple):
    """A run that counts on an account of usage."""

    start: int
    end: int  #: of a run that goes on the latest
    held: Mapping[str, int]
    counts: float = 1.0  #: UsageFactor


def billed(machine: Machine, partition: Partition, tres: Mapping[str, int]) -> int:
    """Return what a job is billed."""
    weights = partition.billing_weights or {"cpu": 1.0}
    parts = [weight * tres.get(name, 0) for name, weight in weights.items()]
    return int(max(parts) if machine.priority.max_tres else sum(parts))


def usage_faults(
    machine: Machine, rule: Qos | Account, now: int, ran: Iterable[Charge],
    running: Iterable[Charge],
) -> Iterator[str]:  # fmt: skip
    """Yield what is wrong with a start at a second.

    ``ran`` are all runs that began by then, ``running`` those that go on, with the one that starts.
    """
    priority, period = machine.priority, machine.priority.calculation_period

    def calculated(second: int) -> int:
        return second - (second - machine.scheduling.calculation_phase) % period

    last = calculated(now)
    decays = not (isinstance(rule, Qos) and rule.no_decay)
    kept = 1 - 0.693 / priority.half_life if decays and priority.half_life else 1.0
    since = reset_around(priority.usage_reset, last, *machine.began)[0]
    for name, most in rule.limits.group_tres_minutes.items():
        spent = 0.0
        for run in ran:
            until = calculated(run.start) + period
            while run.held.get(name) and until <= last and until - period < run.end:
                seconds = min(run.end, until) - max(run.start, until - period)
                if until >= since:
                    amount = run.held[name] * run.counts * seconds
                    spent += amount * kept**seconds * kept ** (last - until)
                until += period
        left = 0
        if machine.scheduling.safe_limits:
            left = sum(
                one.held.get(name, 0) * max(one.end - max(last, one.start), 0) for one in running
            )
        if spent >= 60 * most or (left and spent + left > 60 * most + ROUNDED):
            yield f"{spent:.3f} s of {name} used, against {most} minutes"
