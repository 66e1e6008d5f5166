"""Binary heaps of (time, job) in rows 0 and 1 of an array; ties in time go by job."""

from __future__ import annotations

from hpcrowd.environment.jobs import Int64Rows


def heap_push(heap: Int64Rows, size: int, time: int, job: int) -> None:
    """Put (time, job) into the binary heap in rows 0 and 1 of ``heap``, which holds ``size``."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[0, parent] < time or (heap[0, parent] == time and heap[1, parent] < job):
            break
        heap[0, i] = heap[0, parent]
        heap[1, i] = heap[1, parent]
        i = parent
    heap[0, i] = time
    heap[1, i] = job


def heap_pop(heap: Int64Rows, size: int) -> int:
    """Take the first of ``size`` entries out of the heap and return its job."""
    first = heap[1, 0]
    size -= 1
    time, job = heap[0, size], heap[1, size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            heap[0, other] < heap[0, child]
            or (heap[0, other] == heap[0, child] and heap[1, other] < heap[1, child])
        ):
            child = other
        if time < heap[0, child] or (time == heap[0, child] and job < heap[1, child]):
            break
        heap[0, i] = heap[0, child]
        heap[1, i] = heap[1, child]
        i = child
    heap[0, i] = time
    heap[1, i] = job
    return first
