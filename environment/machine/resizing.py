"""Requests of jobs that get another number of processors, or whose memory is asked for."""

from __future__ import annotations

from math import gcd

from hpcrowd.environment.jobs import JobTable
from hpcrowd.environment.machine.requests import Ask


def resize(jobs: JobTable, row: int, before: int) -> None:
    """Bring a job's request in line with its processors, which were ``before``.

    Nodes shrink in proportion, at least to one. Tasks keep their cores if that divides the
    processors; else they get the largest number that divides both. GPUs per node or task follow
    nodes and tasks; those of the job stay.
    """
    requests, after = jobs.requests, int(jobs.processors[row])
    if requests is None or after == before:
        return

    def asked(ask: Ask) -> int:
        return int(requests[ask][row])

    for ask in (Ask.NODES, Ask.MAX_NODES):
        if asked(ask) > 0:
            requests.set(row, ask, max(-(-asked(ask) * after // before), 1))
    cores = max(asked(Ask.CORES_PER_TASK), 1)
    per_task = gcd(cores, after)
    tasks = after // per_task
    if asked(Ask.CORES_PER_TASK) > 0:
        requests.set(row, Ask.CORES_PER_TASK, per_task)
    if asked(Ask.TASKS) > 0:
        requests.set(row, Ask.TASKS, tasks)
    per_node, nodes = asked(Ask.TASKS_PER_NODE), asked(Ask.NODES)
    if per_node > 0:
        on_each = -(-tasks // nodes) if nodes > 0 else min(per_node * cores // per_task, tasks)
        requests.set(row, Ask.TASKS_PER_NODE, on_each)


def asked_memory(jobs: JobTable, row: int) -> dict[Ask, int]:
    """Return the MB per node or per core that a job asks for; none if it asks for none."""
    requests = jobs.requests
    found = {}
    for ask in (Ask.MEMORY_PER_NODE, Ask.MEMORY_PER_CORE):
        memory = -1 if requests is None else int(requests[ask][row])
        if memory >= 0:
            found[ask] = memory
    if not found and jobs.requested_memory[row] > 0:
        found[Ask.MEMORY_PER_CORE] = -(-int(jobs.requested_memory[row]) // 1024)
    return found
