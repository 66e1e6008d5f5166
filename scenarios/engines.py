"""Engines that do tasks, such as the runs of a sweep: wrappers of ``concurrent.futures`` executors.

=========== =================================================================================
inline      this process, one run after the other
processes   processes of this machine (``concurrent.futures.ProcessPoolExecutor``)
dask        a Dask cluster: an existing one by its address, or one on this machine
=========== =================================================================================

:func:`each_of` gives tasks to an engine, a few at a time, and collects the results. When a worker
dies, the task that killed it is not known. The tasks in flight are then done one at a time: one
that kills its worker again, :data:`TRIES` times, has failed; the others are completed.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import nullcontext
from multiprocessing import connection
from typing import Any, override

from hpcrowd.environment.errors import HpcrowdError, QuantityError, check_choice, missing
from hpcrowd.environment.limits.numbers import (
    MOST_WORKERS,
    PROCESS_BYTES,
    check_memory,
    check_within,
    floating_errors_raise,
    raise_floating_errors,
)
from hpcrowd.environment.registry import Trust, trust, trusting
from hpcrowd.scenarios.main_script import hidden, is_needed

#: Engines by name.
ENGINES = ("processes", "dask", "inline")

#: Runs queued for each worker, so that none waits for work.
AHEAD = 3

#: Smallest number of runs in flight on a Dask cluster, which may grow while it works.
DASK_IN_FLIGHT = 64

#: How long to wait for a Dask cluster, s.
PATIENCE = "30s"


class Engine:
    """Does tasks: wraps an executor, any object with ``submit(function, task)`` -> future.

    Parameters
    ----------
    executor
        The executor; None where a subclass makes it.
    in_flight
        Largest number of tasks that are submitted to it at once.
    """

    #: Exceptions of a future whose task killed its workers again and again.
    fatal: tuple[type[BaseException], ...] = ()

    #: What tasks read from a file, if they do.
    reads: Any = None

    def __init__(self, executor: Executor | None = None, in_flight: int = 8) -> None:
        self._executor = executor
        self._in_flight = in_flight

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Give a task to a worker."""
        if self._executor is None:
            raise HpcrowdError(f"{type(self).__name__}: is closed")
        here = floating_errors_raise(), trust()
        return self._executor.submit(_as_here, (function, task, *here))

    def room(self) -> int:
        """Return the largest number of tasks in flight."""
        return self._in_flight

    def restart(self) -> None:
        """Begin again after the death of a worker has broken the executor.

        Raises
        ------
        HpcrowdError
            When that cannot be done here.
        """
        raise HpcrowdError("a worker died and its executor is broken; continue with --resume")

    def close(self) -> None:
        """Cancel tasks that have not begun, and close what was opened here."""


class Inline(Engine):
    """Does each task at once in this process."""

    def __init__(self) -> None:
        super().__init__(in_flight=1)

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Do a task and return its finished future."""
        future: Future[Any] = Future()
        future.set_result(function(task))
        return future


class Processes(Engine):
    """Processes of this machine.

    Parameters
    ----------
    workers
        How many; as many as there are cores unless given.
    work
        The function for :func:`do_own_work`: each process receives it once, so that it may hold
        large tables.
    """

    def __init__(
        self, workers: int | None = None, work: Callable[[Any], Any] | None = None
    ) -> None:
        self.workers = _checked(workers or cores())
        self._work = work
        self._hides: bool | None = None  # whether the program is hidden; unknown before a task
        super().__init__(self._new(), AHEAD * self.workers)

    def _new(self) -> ProcessPoolExecutor:
        # Forks of a process with threads, as progress bars have, hang.
        context = multiprocessing.get_context("spawn")
        try:
            return ProcessPoolExecutor(self.workers, context, _begin, (self._work,))
        except OSError as error:  # no semaphores: /dev/shm is missing, full or read-only
            raise HpcrowdError(
                f"processes cannot be started here: {error.strerror or error}, for example "
                "because /dev/shm cannot be written; use one worker, or --executor inline"
            ) from error

    @override
    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        # The first tasks begin the processes, which inherit that Ctrl-C waits; it comes here.
        if self._hides is None:
            sent = (self._work, function, task, self.reads)
            self._hides = not is_needed(sent, self.workers)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with hidden() if self._hides else nullcontext():
                return super().submit(function, task)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def restart(self) -> None:
        """End what is left of the processes and make new ones."""
        self.close()
        self._executor = self._new()

    def close(self) -> None:
        """End the processes without waiting for their tasks."""
        executor, self._executor = self._executor, None
        if isinstance(executor, ProcessPoolExecutor):
            # Python 3.14 has a method for this.
            workers = list((executor._processes or {}).values())
            manager: Any = executor._executor_manager_thread
            executor.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.join()
            if manager is not None:
                manager.join(1)  # it closes the queues


class Dask(Engine):
    """A Dask cluster.

    Parameters
    ----------
    address
        Of the scheduler, such as ``tcp://node1:8786``; None makes a cluster on this machine.
    workers
        How many, of a cluster on this machine; as many as there are cores unless given.

    Raises
    ------
    HpcrowdError
        When Dask is not installed or the cluster does not answer.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import dask
            import distributed
        except ImportError:
            raise HpcrowdError(f"--executor dask: {missing('distributed', 'dask')}") from None
        library: Any = distributed  # it is only partly typed
        self.cluster: Any = None
        self.fatal = (library.KilledWorker,)
        where: Any = address
        if address is None:
            count = _checked(workers or cores())
            # All begin at once.
            cure = "use as many as there are cores"
            check_memory(f"workers {count}", count * PROCESS_BYTES, cure)
            # Small runs need no memory limits, and the dashboard is not used.
            failures = {"distributed.scheduler.allowed-failures": 5}
            # It sends what a script defines by value.
            with dask.config.set(failures), hidden():
                self.cluster = where = _deaf_to_interrupts(
                    lambda: library.LocalCluster(
                        n_workers=count, threads_per_worker=1, memory_limit=0,
                        dashboard_address=None, processes=True, silence_logs=logging.ERROR,
                    )
                )  # fmt: skip
        try:
            self.client: Any = library.Client(where, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise HpcrowdError(
                f"--address {address}: no Dask scheduler answers there: {error}; start one, for "
                "example with dask-jobqueue, and give its address"
            ) from error
        super().__init__(self.client.get_executor(pure=False))

    def room(self) -> int:
        """Return a few runs for each thread; enough to make an adaptive cluster grow."""
        threads: dict[str, int] = self.client.nthreads()
        return max(DASK_IN_FLIGHT, AHEAD * sum(threads.values()))

    def close(self) -> None:
        """Cancel tasks that have not begun; end the cluster if it was started here.

        After Ctrl-C the workers started here are killed first: they may be busy for long.
        """
        self._executor = None
        logging.disable(logging.CRITICAL)  # cancelled tasks would be logged at length
        if self.cluster is not None and getattr(sys.exception(), "exit_code", 0) == 130:
            for child in multiprocessing.active_children():
                child.kill()
            return
        try:
            self.client.close()
            if self.cluster is not None:
                self.cluster.close()
        finally:
            logging.disable(logging.NOTSET)


def _checked(workers: int) -> int:
    """Return a number of processes, if it is from 1 to :data:`MOST_WORKERS`."""
    check_within("workers", workers, 1, MOST_WORKERS, "use as many as there are cores")
    return workers


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def engine_of(name: str, *, address: str | None = None, workers: int | None = None) -> Engine:
    """Return an engine by its name, see the module's table; a wrong option is refused."""
    check_choice("--executor", name, ENGINES)
    if address is not None and (name != "dask" or workers is not None):
        raise QuantityError(
            f"--address {address}: the Dask cluster there has its own workers; leave "
            "out --workers" if name == "dask" else f"--address {address}: is for --executor dask"
        )  # fmt: skip
    if name == "inline" and workers is not None:
        raise QuantityError(f"--workers {workers}: --executor inline has none; leave it out")
    if name == "dask":
        return Dask(address, workers)
    return Processes(workers) if name == "processes" else Inline()


def _deaf_to_interrupts(begin: Callable[[], Any]) -> Any:
    """Return the result of ``begin``, whose threads and processes do not receive Ctrl-C.

    It runs in a thread that does not, as they inherit that; this process still receives it.
    """

    begun: Future[Any] = Future()

    def run() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            begun.set_result(begin())
        except BaseException as error:  # noqa: BLE001 - raised again by the future
            begun.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return begun.result()


#: The function that a process received when it began; None without one.
_own_work: list[Callable[[Any], Any]] = []


def _as_here(work: tuple[Callable[[Any], Any], Any, bool, Trust]) -> Any:
    """Do a task with the trust of another process, and its errors of divisions and overflows."""
    function, task, strict, given = work
    if strict:
        raise_floating_errors()
    with trusting(given):
        return function(task)


def do_own_work(task: Any) -> Any:
    """Do a task with the function of this process, see :class:`Processes`."""
    return _own_work[0](task)


def _begin(work: Callable[[Any], Any] | None) -> None:
    """Ignore Ctrl-C, which the parent process handles, and end when the parent has ended."""
    if work is not None:
        _own_work[:] = [work]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent does not close its queues, so its workers would wait for ever.
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


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

    ``work`` does one task, and raises only errors that concern all of them; it is imported by name
    on other machines. An engine that cannot continue is an HpcrowdError.
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

    With several processes ``work`` is sent to each of them once, so that it may hold large tables;
    it and the tasks have to be picklable then. One process is this one, which does everything in
    order. They end with the loop, even if it is left early. A task that kills its process again and
    again is an HpcrowdError.
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
