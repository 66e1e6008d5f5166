"""Binary heaps of (time, job); ties in time go by job."""

from __future__ import annotations

from dataclasses import dataclass

from hpcrowd.environment.engine.kernel.arrays import rows
from hpcrowd.environment.jobs import Int64Rows


@dataclass(eq=False, slots=True)
class Heap:
    """Times (s) and jobs, of which the first is the least."""

    table: Int64Rows  #: shape (2, entries)

    time, job = rows("table", 2)


def heap_push(heap: Heap, size: int, time: int, job: int) -> None:
    """Put (time, job) into a heap of ``size`` entries."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap.time[parent] < time or (heap.time[parent] == time and heap.job[parent] < job):
            break
        heap.time[i] = heap.time[parent]
        heap.job[i] = heap.job[parent]
        i = parent
    heap.time[i] = time
    heap.job[i] = job


def heap_pop(heap: Heap, size: int) -> int:
    """Take the first of ``size`` entries out of the heap and return its job."""
    first = heap.job[0]
    size -= 1
    time, job = heap.time[size], heap.job[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            heap.time[other] < heap.time[child]
            or (heap.time[other] == heap.time[child] and heap.job[other] < heap.job[child])
        ):
            child = other
        if time < heap.time[child] or (time == heap.time[child] and job < heap.job[child]):
            break
        heap.time[i] = heap.time[child]
        heap.job[i] = heap.job[child]
        i = child
    heap.time[i] = time
    heap.job[i] = job
    return first
