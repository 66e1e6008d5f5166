"""What an event of Mesa for each arrival and completion would cost, without any scheduling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcrowd import JobTable
from hpcrowd.environment.frame import Frame

KTH = "KTH-SP2-1996-2.1-cln"


class Events(Frame):
    """Every job of a table arrives by one event and ends its run time later by another."""

    def __init__(self, jobs: JobTable) -> None:
        super().__init__()
        self.run_times = jobs.run_time.tolist()
        self.ended = 0
        for row, at in enumerate(jobs.recorded_submit.tolist()):
            self.call_at(at, self.arrive, row)

    def arrive(self, row: int) -> None:
        """Start at once."""
        self.call_at(self.time + self.run_times[row], self.end)

    def end(self) -> None:
        """Count."""
        self.ended += 1

    def run(self, until: int | None = None) -> None:
        """Run every event."""
        while self._event_list._events:
            self.time = self.next_event_time()
            self.run_events(self.time)


def bench_mesa_events(benchmark: Any, load: Any, figure: Callable[..., None]) -> None:
    """KTH-SP2: two events a job and nothing else."""
    jobs = load(KTH)[1]

    def run() -> None:
        model = Events(jobs)
        model.run()
        assert model.ended == len(jobs)

    benchmark.pedantic(run, rounds=5, warmup_rounds=1)
    cost = float(benchmark.stats.stats.median) / len(jobs)
    figure("KTH, two Mesa events a job, no scheduling", 1e6 * cost, "us a job", "")
