"""Work is shared among processes: every task once; errors and the end of a loop end the workers."""

import multiprocessing
import os

import pytest
from hpcrowd import HpcrowdError
from hpcrowd.errors import QuantityError
from hpcrowd.scenarios.sweeps.loop import each_in_processes


def divided(by):
    """Return 12 over a number, rounded down."""
    if by == 0:
        raise QuantityError("by 0: must not be 0")
    return 12 // by


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2, 9])
def test_every_task_is_done_once(processes):
    """However many share it, each task comes with its result, and errors come as they are."""
    found = dict(each_in_processes(divided, [1, 2, 3, 4], processes))
    assert {1: 12, 2: 6, 3: 4, 4: 3} == found
    assert [] == list(each_in_processes(divided, [], processes))
    with pytest.raises(QuantityError, match="by 0: must not be 0"):
        list(each_in_processes(divided, [1, 0, 2], processes))
    assert [] == multiprocessing.active_children()


def end_process(task):
    """Return the task; 0 kills the process, as a lack of memory does."""
    if task == 0:
        os._exit(1)
    return task


@pytest.mark.slow
def test_a_killed_process_is_named():
    """A task that kills its process again and again ends the loop instead of making it wait."""
    with pytest.raises(HpcrowdError, match="0: its process died 3 times"):
        list(each_in_processes(end_process, [1, 0, 2], 2))
    assert [] == multiprocessing.active_children()
    results = each_in_processes(divided, list(range(1, 100)), 2)
    next(results)
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt)
    assert [] == multiprocessing.active_children()
