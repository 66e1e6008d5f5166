"""Give tasks to an engine, a few at a time, and collect the results; workers may die.

When a worker dies, the task that killed it is not known. The tasks in flight are then done one at a
time: one that kills its worker again, :data:`TRIES` times, has failed; the others are completed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any

from hpcrowd.environment.errors import HpcrowdError
from hpcrowd.scenarios.sweeps.engines import Engine, Inline, Processes, do_own_work

#: Number of workers that a task may kill before it counts as failed.
TRIES = 3


class WorkerDied:
    """The result of a task that kills its workers."""

    def __init__(self, times: int) -> None:
        self.times = times


def each_of[Task, Result](
    engine: Engine, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[tuple[Task, Result | WorkerDied]]:
    """Yield each task with its result, as they finish; only a few tasks are read ahead.

    Parameters
    ----------
    engine
        Does the tasks.
    work
        Does one task, and raises only errors that concern all of them; imported by name on other
        machines.
    tasks
        Read when another one can be submitted.

    Raises
    ------
    HpcrowdError
        When the engine cannot continue.
    """
    coming = iter(tasks)
    flying: dict[Future[Any], Task] = {}
    suspects: deque[tuple[Task, int]] = deque()
    deaths = 0  # of the suspect in flight
    done: set[Future[Any]]
    more = True
    while True:
        lost: list[Task] = []
        while not lost:
            if suspects:
                if flying:
                    break
                task, deaths = suspects.popleft()
            elif more and len(flying) < engine.room():
                try:
                    task = next(coming)
                except StopIteration:
                    more = False
                    continue
                deaths = 0
            else:
                break
            try:
                flying[engine.submit(work, task)] = task
            except BrokenExecutor:
                lost.append(task)
        if not flying and not lost:
            if suspects or more:
                continue
            return
        done, _ = wait(flying, return_when=FIRST_COMPLETED) if flying else (set(), None)
        alone = len(flying) == 1 and not lost
        for future in done:
            task = flying.pop(future)
            try:
                result = future.result()
            except BrokenExecutor:
                lost.append(task)
            except engine.fatal:
                yield task, WorkerDied(TRIES)
            except HpcrowdError:
                raise
            except CancelledError as error:
                raise HpcrowdError(
                    "the cluster has ended, or cancelled a run; continue with --resume"
                ) from error
            except Exception as error:
                # Errors in a run are its result; this is an error of the worker.
                raise HpcrowdError(
                    f"a worker cannot do runs: {type(error).__name__}: {error}; workers need the "
                    "same environment and folders as this process"
                ) from error
            else:
                yield task, result
        if lost:
            lost += flying.values()
            flying.clear()
            engine.restart()
            if not alone:
                suspects.extend((one, 0) for one in lost)
            elif deaths + 1 < TRIES:
                suspects.appendleft((lost[0], deaths + 1))
            else:
                yield lost[0], WorkerDied(TRIES)


def each_in_processes[Task, Result](
    work: Callable[[Task], Result], tasks: Sequence[Task], processes: int
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result, in the order in which they finish.

    Parameters
    ----------
    work
        Does a task. With several processes it is sent to each of them once, so that it may hold
        large tables; it and the tasks have to be picklable then.
    tasks
        The tasks.
    processes
        Number of processes; 1 does everything in this process, in order. They end with the loop,
        even if it is left early.

    Raises
    ------
    HpcrowdError
        When a task kills its process again and again, or raises this error.
    """
    alone = min(processes, len(tasks)) <= 1
    engine = Inline() if alone else Processes(min(processes, len(tasks)), work)
    try:
        for task, result in each_of(engine, work if alone else do_own_work, tasks):
            if isinstance(result, WorkerDied):
                raise HpcrowdError(f"{task}: its process died {result.times} times")
            yield task, result
    finally:
        engine.close()
