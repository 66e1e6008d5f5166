"""Share work among processes: independent tasks, results as they finish, Ctrl-C ends all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

#: The function of this process, where it is one of several.
_work: list[Callable[[Any], Any]] = []


def each_in_processes[Task, Result](
    work: Callable[[Task], Result], tasks: Sequence[Task], processes: int
) -> Iterator[tuple[int, Result]]:
    """Yield (place, result) of every task, in the order in which they finish.

    Parameters
    ----------
    work
        Does a task. With several processes it goes to each of them once, so that it may hold large
        tables; it and the tasks have to be picklable then.
    tasks
        What to do.
    processes
        How many share it; 1 does everything here, in order.

    Notes
    -----
    Workers leave Ctrl-C to this process, which ends them when it, or any error, ends the loop.
    """
    processes = min(processes, len(tasks))
    if processes <= 1:
        for place, task in enumerate(tasks):
            yield place, work(task)
        return
    from multiprocessing import get_context

    context = get_context("spawn")  # forks of a process with threads, as progress bars have, hang
    with context.Pool(processes, _begin, (work,)) as pool:  # leaving it ends the workers
        yield from pool.imap_unordered(_do, enumerate(tasks))


def _begin(work: Callable[[Any], Any]) -> None:
    """Take the function that this process is to use."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work[:] = [work]


def _do(numbered: tuple[int, Any]) -> tuple[int, Any]:
    place, task = numbered
    return place, _work[0](task)
